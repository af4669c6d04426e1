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
