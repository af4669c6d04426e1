"""Advantages of turns written from the formulas, in plain Python floats. Imports nothing of acpo_trl.

`rewards[i][k]` is the reward of turn k of completion i, None where it is unscored; completions of a group follow each
other. z(x) = (x - mean) / (std + 1e-4) with Bessel's correction, over the scored entries; 0 for fewer than two of them.
"""

import math


def z(values):
    scored = [value for value in values if value is not None]
    if len(scored) < 2:
        return [0.0 for _ in values]
    mean = sum(scored) / len(scored)
    std = math.sqrt(sum((value - mean) ** 2 for value in scored) / (len(scored) - 1))
    return [0.0 if value is None else (value - mean) / (std + 1e-4) for value in values]


def total(turns):
    scored = [reward for reward in turns if reward is not None]
    return sum(scored) if scored else None


def groups(rows, size):
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def outcome(rewards, size, gamma=1.0):
    advantages = []
    for group in groups(rewards, size):
        for turns, value in zip(group, z([total(turns) for turns in group]), strict=True):
            advantages.append([value * gamma ** (len(turns) - 1 - k) for k in range(len(turns))])
    return advantages


def rewards_to_go(turns, gamma):
    if total(turns) is None:
        return [None for _ in turns]
    return [sum((turns[j] or 0.0) * gamma ** (j - k) for j in range(k, len(turns))) for k in range(len(turns))]


def process(rewards, size, gamma=0.95):
    advantages = []
    for group in groups(rewards, size):
        returns = [rewards_to_go(turns, gamma) for turns in group]
        flat = iter(z([value for turns in returns for value in turns]))
        advantages += [[next(flat) for _ in turns] for turns in returns]
    return advantages


def local(rewards):
    return [[reward or 0.0 for reward in turns] for turns in rewards]


def discounted(rewards, size, gamma=0.95, failure=0.0):
    judged = [[*turns[:-1], failure if turns[-1] == 0 else turns[-1]] if turns else [] for turns in rewards]
    return process(compared(judged, size), size, gamma)


def compared(rewards, size):
    """Without completions that are the only scored one of their group."""
    kept = []
    for group in groups(rewards, size):
        num_scored = sum(total(turns) is not None for turns in group)
        kept += group if num_scored > 1 else [[None for _ in turns] for turns in group]
    return kept


def by_index(columns, rewards, size, compare):
    """`compare` the values of a group at each turn index; `columns[i][k]` is the value of turn k of completion i."""
    advantages = [[0.0 for _ in turns] for turns in rewards]
    for start in range(0, len(rewards), size):
        rows = range(start, start + size)
        for k in range(max(len(rewards[i]) for i in rows)):
            reaching = [i for i in rows if k < len(rewards[i])]
            for i, value in zip(reaching, compare([columns[i][k] for i in reaching]), strict=True):
                advantages[i][k] = value
    return advantages


def center(values):
    scored = [value for value in values if value is not None]
    return [0.0 if value is None else value - sum(scored) / len(scored) for value in values]


def turn_rtg(rewards, size, gamma=1.0):
    return by_index([rewards_to_go(turns, gamma) for turns in rewards], rewards, size, z)


def milestone(rewards, size, gamma=0.95):
    return by_index([rewards_to_go(turns, gamma) for turns in rewards], rewards, size, center)


def kevin(rewards, size, mode="sum", gamma=0.4):
    if mode == "sum":
        return process(rewards, size, gamma)
    advantages = []
    for group in groups(rewards, size):
        best = [
            [
                None
                if total(turns) is None
                else max((turns[j] or 0.0) * gamma ** (j - k) for j in range(k, len(turns)))
                for k in range(len(turns))
            ]
            for turns in group
        ]
        flat = iter(z([value for turns in best for value in turns]))
        advantages += [[next(flat) for _ in turns] for turns in best]
    return advantages


def gtpo_turn(rewards, size, gamma=0.9):
    return process(compared(rewards, size), size, gamma)


def by_completion(values, size):
    return [value for group in groups(values, size) for value in z(group)]


def mt_grpo(rewards, size, alpha=1.0, form="paper"):
    by_outcome = by_completion([turns[-1] if turns else None for turns in rewards], size)
    if form == "code":
        by_sum = by_completion([total(turns[:-1]) for turns in rewards], size)
        by_total = by_completion([total(turns) for turns in rewards], size)
        return [
            [by_total[i]]
            if len(turns) == 1
            else [by_outcome[i] + (alpha * by_sum[i] if k == 0 else 0.0) for k in range(len(turns))]
            for i, turns in enumerate(rewards)
        ]
    advantages = by_index([[*turns[:-1], None] if turns else [] for turns in rewards], rewards, size, z)
    for i, turns in enumerate(rewards):
        for k in reversed(range(len(turns))):
            if k == len(turns) - 1:
                advantages[i][k] = by_outcome[i]
            else:
                advantages[i][k] += alpha * advantages[i][k + 1]
    return advantages
