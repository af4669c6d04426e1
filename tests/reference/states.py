"""Advantages of turns from the same state, from the formulas in plain Python floats. Imports nothing of acpo_trl.

`episodes[i][k]` is (state, action, reward) of turn k of completion i; action None is a turn without tokens, reward None
is unscored. Completions of a group follow each other.
"""

import math

from .turns import groups, rewards_to_go, total


def compare(value, others, epsilon, std=True, correction=1):
    """z-score of a value among others, itself one of them."""
    if len(others) < 2:
        return 0.0
    mean = sum(others) / len(others)
    variance = sum((other - mean) ** 2 for other in others) / (len(others) - correction)
    return (value - mean) / (math.sqrt(variance) + epsilon) if std else value - mean


def rewards(episode):
    return [reward for _, _, reward in episode]


def steps_of(group, gamma):
    """(completion, turn, state, rewards to go) of each turn with tokens of a scored completion, if two are scored."""
    if sum(total(rewards(episode)) is not None for episode in group) < 2:
        return []
    return [
        (i, k, state, rewards_to_go(rewards(episode), gamma)[k])
        for i, episode in enumerate(group)
        for k, (state, action, _) in enumerate(episode)
        if action is not None and total(rewards(episode)) is not None
    ]


def gigpo(
    episodes, size, omega=1.0, gamma=0.95, std=True, per_step=False, guard=True, epsilon=1e-4, invalid=(), penalty=0.0
):
    """`invalid` has the (completion, turn) that pay `penalty`."""
    advantages = [[0.0 for _ in episode] for episode in episodes]
    for start, group in zip(range(0, len(episodes), size), groups(episodes, size), strict=True):
        fines = {
            (i, k): penalty * ((start + i, k) in invalid)
            for i, episode in enumerate(group)
            for k in range(len(episode))
        }
        steps = [(i, k, state, value - fines[i, k]) for i, k, state, value in steps_of(group, gamma)]
        totals = [total(rewards(episode)) for episode in group]
        peers = [totals[i] - fines[i, k] for i, k, _, _ in steps] if per_step else [t for t in totals if t is not None]
        first_turns = {(i, k) for i, k, _, _ in steps if k == 0}
        for i, k, state, value in steps:
            alike = [step for step in steps if step[2] == state]
            is_start = {step[:2] for step in alike} == first_turns
            by_state = 0.0 if guard and is_start else compare(value, [step[3] for step in alike], epsilon, std)
            if per_step:
                by_total = compare(totals[i] - fines[i, k], peers, epsilon, std)
            else:
                by_total = compare(totals[i], peers, epsilon, std) - fines[i, k]
            advantages[start + i][k] = by_total + omega * by_state
    return advantages


def hgpo(episodes, size, max_history=2, alpha=1.0, gamma=0.95, first=1, renormalize=True, epsilon=1e-4):
    advantages = [[0.0 for _ in episode] for episode in episodes]
    weights = [(level + first) ** alpha for level in range(max_history + 1)]
    for start, group in zip(range(0, len(episodes), size), groups(episodes, size), strict=True):
        steps = steps_of(group, gamma)
        for i, k, _, value in steps:
            terms = []
            for level in range(min(max_history, k) + 1):
                mine = [state for state, _, _ in group[i][k - level : k + 1]]
                peers = [
                    other
                    for j, m, _, other in steps
                    if m >= level and [state for state, _, _ in group[j][m - level : m + 1]] == mine
                ]
                if len(peers) > 1:
                    terms.append((weights[level], compare(value, peers, epsilon, correction=0)))
            denominator = sum(weight for weight, _ in terms) if renormalize else sum(weights)
            advantages[start + i][k] = sum(w * a for w, a in terms) / denominator if terms else 0.0
    return advantages


def transitions(episode):
    states = [state for state, _, _ in episode] + ["the end"]
    return [(states[k], action, states[k + 1]) for k, (_, action, _) in enumerate(episode)]


def salt(episodes, size, rloo=False, epsilon=1e-4):
    advantages = []
    for group in groups(episodes, size):
        totals = [total(rewards(episode)) for episode in group]
        scored = [value for value in totals if value is not None]
        own = [None if value is None else compare(value, scored, epsilon, std=not rloo) for value in totals]
        if rloo and len(scored) > 1:
            own = [None if value is None else value * len(scored) / (len(scored) - 1) for value in own]
        for episode, mine in zip(group, own, strict=True):
            row = []
            for edge in transitions(episode):
                with_it = [a for a, e in zip(own, group, strict=True) if a is not None and edge in transitions(e)]
                row.append(0.0 if mine is None else sum(with_it) / len(with_it))
            advantages.append(row)
    return advantages
