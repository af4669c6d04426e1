"""Advantages over a critic written from the formulas, in plain Python floats. Imports nothing of acpo_trl.

A completion is (turns, end): a turn is (reward, values of its tokens), reward None where unscored, the first value that
of the state the turn starts from; end is the value behind a completion that a limit ended, None for others.
Advantages are the weighted sum of later deltas, A[k] = sum over j >= k of (gamma lam)^(j - k) delta[j].
"""

import math

NOTHING = math.nan


def sum_of_deltas(rewards, values, behind, gamma, lam):
    next_values = [*values, behind][1:]
    deltas = [r + gamma * n - v for r, n, v in zip(rewards, next_values, values, strict=True)]
    return [sum((gamma * lam) ** (j - k) * deltas[j] for j in range(k, len(deltas))) for k in range(len(deltas))]


def steps_of(turns):
    """[turn, reward, values of tokens] of turns with tokens; rewards of the others moved to a neighbour."""
    if all(reward is None for reward, _ in turns):
        return []
    steps, early = [], 0.0
    for k, (reward, tokens) in enumerate(turns):
        if tokens:
            steps.append([k, (reward or 0.0) + early, tokens])
            early = 0.0
        elif steps:
            steps[-1][1] += reward or 0.0
        else:
            early += reward or 0.0
    return steps


def whiten(entries):
    """Entries with weights."""
    if len(entries) < 2:
        return [value for value, _ in entries]
    copies = [value for value, weight in entries for _ in range(weight)]
    mean = sum(copies) / len(copies)
    variance = sum((value - mean) ** 2 for value in copies) / (len(copies) - 1)
    return [(value - mean) / math.sqrt(variance + 1e-8) for value, _ in entries]


def over_turns(completions, gamma, lam, normalization, bootstrap):
    advantages = [[0.0 for _ in turns] for turns, _ in completions]
    targets = [[NOTHING for _ in turns] for turns, _ in completions]
    entries = []
    for i, (turns, end) in enumerate(completions):
        steps = steps_of(turns)
        values = [tokens[0] for _, _, tokens in steps]
        behind = end if bootstrap and end is not None else 0.0
        for (k, _, tokens), advantage in zip(
            steps, sum_of_deltas([r for _, r, _ in steps], values, behind, gamma, lam), strict=True
        ):
            targets[i][k] = advantage + tokens[0]
            entries.append((i, k, advantage, len(tokens) if normalization == "token" else 1))
    scaled = [value for _, _, value, _ in entries]
    if normalization != "none":
        scaled = whiten([(value, weight) for _, _, value, weight in entries])
    for (i, k, _, _), value in zip(entries, scaled, strict=True):
        advantages[i][k] = value
    return advantages, targets


def of_tokens(completions, advantages_of, normalization, bootstrap):
    """`advantages_of(steps, behind)` gives the advantages of a completion's tokens."""
    advantages, targets, flat = [], [], []
    for turns, end in completions:
        steps = steps_of(turns)
        learned = advantages_of(steps, end if bootstrap and end is not None else 0.0)
        values = [value for _, _, tokens in steps for value in tokens]
        silent = sum(len(tokens) for _, tokens in turns) - len(values)  # all of an unscored completion
        advantages.append([*learned, *[0.0] * silent])
        targets.append([*(a + v for a, v in zip(learned, values, strict=True)), *[NOTHING] * silent])
        flat += learned
    if normalization == "token":
        scaled = iter(whiten([(value, 1) for value in flat]))
        advantages = [[0.0 if math.isnan(target) else next(scaled) for target in row] for row in targets]
    return advantages, targets


def ppo(completions, gamma=1.0, lam=0.95, normalization="token", bootstrap=True):
    def advantages_of(steps, behind):
        rewards = [r for _, reward, tokens in steps for r in (*[0.0] * (len(tokens) - 1), reward)]
        return sum_of_deltas(rewards, [value for _, _, tokens in steps for value in tokens], behind, gamma, lam)

    return of_tokens(completions, advantages_of, normalization, bootstrap)


def bilevel_gae(completions, turn_gamma=0.95, gamma=1.0, lam=1.0, normalization="token", bootstrap=True):
    def advantages_of(steps, behind):
        ends = [tokens[-1] for _, _, tokens in steps]
        of_turns = sum_of_deltas([reward for _, reward, _ in steps], ends, behind, turn_gamma, lam)
        return [
            advantage
            for (_, _, tokens), end, of_turn in zip(steps, ends, of_turns, strict=True)
            for advantage in sum_of_deltas([*[0.0] * (len(tokens) - 1), of_turn + end], tokens, 0.0, gamma, lam)
        ]

    return of_tokens(completions, advantages_of, normalization, bootstrap)
