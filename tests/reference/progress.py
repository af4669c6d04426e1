"""IGPO and SPA-RL written from the formulas, in plain Python floats. Imports nothing of acpo_trl.

`episodes[i][k]` is one turn of completion i, a dict with `reward` (None: unscored) and `tokens` (how many), and
`belief` (None: unknown) for IGPO, `contribution` and `valid` for SPA-RL. Completions of a group follow each other.
"""

import math

from .turns import by_index, groups, rewards_to_go, total, z


def rewards(episode):
    return [turn["reward"] for turn in episode]


def gain_of(before, after, log):
    if before is None or after is None:
        return None
    return after - before if log else math.exp(after) - math.exp(before)


def gains(episode, log):
    """For each turn but the last; a turn without tokens hands its gain to the last one with tokens before it."""
    moved = [None for _ in episode]
    taker = None
    for k in range(len(episode) - 1):
        taker = k if episode[k]["tokens"] else taker
        gain = gain_of(episode[k]["belief"], episode[k + 1]["belief"], log)
        if gain is not None and taker is not None:
            moved[taker] = (moved[taker] or 0.0) + gain
    return moved


def population_z(values):
    scored = [value for value in values if value is not None]
    if not scored:
        return [0.0 for _ in values]
    mean = sum(scored) / len(scored)
    variance = sum((value - mean) ** 2 for value in scored) / len(scored)
    std = math.sqrt(variance + 1e-8) if len(scored) > 1 else 1.0
    return [0.0 if value is None else (value - mean) / (std + 1e-6) for value in values]


def igpo(episodes, size, log=True, joint=False, gamma=1.0):
    advantages = []
    for group in groups(episodes, size):
        outcomes = [total(rewards(episode)) for episode in group]
        if sum(outcome is not None for outcome in outcomes) < 2:
            outcomes = [None for _ in group]
        # A completion that counts, and has turns.
        own = [
            gains(episode, log) if outcome is not None else [None for _ in episode]
            for episode, outcome in zip(group, outcomes, strict=True)
        ]
        flat = [gain for row in own for gain in row]
        if joint:
            normalised = population_z(flat + outcomes)
            by_gain, by_outcome = iter(normalised[: len(flat)]), normalised[len(flat) :]
        else:
            by_gain, by_outcome = iter(population_z(flat)), population_z(outcomes)
        for i, episode in enumerate(group):
            row = [next(by_gain) for _ in episode]
            if episode:
                row[-1] = by_outcome[i]
            to_go = rewards_to_go(row, gamma)
            counts = outcomes[i] is not None
            advantages.append([a if counts and turn["tokens"] else 0.0 for a, turn in zip(to_go, episode, strict=True)])
    return advantages


def fused(episode, alpha, beta, rescale, share_rest=False):
    """None for turns without tokens and completions that nobody scored."""
    outcome = total(rewards(episode))
    if outcome is None:
        return [None for _ in episode]
    scale = 1.0
    contributed = sum(turn["contribution"] for turn in episode if turn["tokens"])
    if rescale and abs(contributed) > 1e-4:
        scale = outcome / contributed
    steps = sum(1 for turn in episode if turn["tokens"])
    share = (outcome - scale * contributed) / steps if share_rest and steps else 0.0
    return [
        alpha * (scale * turn["contribution"] + share) + beta * turn["valid"] if turn["tokens"] else None
        for turn in episode
    ]


def spa_rl(
    episodes, size, alpha=1.0, beta=0.5, gamma=1.0, rescale=False, baseline="turn", grounding="local", share_rest=False
):
    advantages, targets = compared_returns(
        episodes, size, alpha, beta * (grounding == "fused"), gamma, rescale, baseline, share_rest
    )
    if grounding == "local":
        for episode, row in zip(episodes, advantages, strict=True):
            for k, turn in enumerate(episode):
                if turn["tokens"] and not turn["valid"] and total(rewards(episode)) is not None:
                    row[k] -= beta
    return advantages, targets


def compared_returns(episodes, size, alpha, beta, gamma, rescale, baseline, share_rest):
    columns, targets = [], []
    for episode in episodes:
        row = fused(episode, alpha, beta, rescale, share_rest)
        to_go = rewards_to_go(row, gamma)
        columns.append([None if r is None else g for r, g in zip(row, to_go, strict=True)])
        targets.append(total(rewards(episode)) if any(turn["tokens"] for turn in episode) else None)
    if baseline == "turn":
        return by_index(columns, columns, size, z), targets
    advantages = []
    for group in groups(columns, size):
        flat = iter(z([value for row in group for value in row]))
        advantages += [[next(flat) for _ in row] for row in group]
    return advantages, targets
