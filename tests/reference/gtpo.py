"""GTPO, GRPO-S and trajectory GTPO written from the formulas, in plain Python floats. Imports nothing of acpo_trl.

A completion is (reward, tokens): reward None where nobody scored it, tokens a list of (id, entropy) of the tokens that
the policy produced. Completions of a group follow each other.
"""

import math

from .turns import groups, z


def population_z(values):
    if len(values) < 2:
        return [0.0 for _ in values]
    mean = sum(values) / len(values)
    std = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / (std + 1e-8) for value in values]


def shaped(weights, others, base, scale):
    """Reward of a weight among those of its side, itself one of them."""
    return base + scale * weights / sum(others) * len(others)


def weight(entropy, reward, floor):
    entropy = max(entropy, floor)
    return entropy if reward > 0 else 1 / entropy


def standardize(rewards, joint):
    """`rewards` maps (completion, place) to a reward, positive for successes."""
    advantages = {}
    sides = [list(rewards)] if joint else [[key for key in rewards if (rewards[key] > 0) is up] for up in (True, False)]
    for keys in sides:
        advantages |= dict(zip(keys, population_z([rewards[key] for key in keys]), strict=True))
    return advantages


def gtpo(completions, size, alpha1=1.0, alpha2=0.1, joint=True, floor=1e-3):
    result = []
    for group in groups(completions, size):
        scored = [(i, r, tokens) for i, (r, tokens) in enumerate(group) if r is not None]
        rewards = {}
        for i, reward, tokens in scored:
            for t, (_, entropy) in enumerate(tokens):
                alive = [
                    weight(other[t][1], reward, floor)
                    for _, r, other in scored
                    if len(other) > t and (r > 0) is (reward > 0)
                ]
                value = shaped(weight(entropy, reward, floor), alive, alpha1, alpha2)
                rewards[i, t] = value if reward > 0 else -value
        advantages = standardize(rewards, joint)
        result += [[advantages.get((i, t), 0.0) for t in range(len(tokens))] for i, (_, tokens) in enumerate(group)]
    return result


def mean_entropy(tokens):
    return sum(entropy for _, entropy in tokens) / len(tokens)


def grpo_s(completions, size, beta1=1.0, beta2=0.1, joint=True, floor=1e-3):
    result = []
    for group in groups(completions, size):
        scored = [(i, r, tokens) for i, (r, tokens) in enumerate(group) if r is not None and tokens]
        rewards = {}
        for i, reward, tokens in scored:
            side = [weight(mean_entropy(other), reward, floor) for _, r, other in scored if (r > 0) is (reward > 0)]
            value = shaped(weight(mean_entropy(tokens), reward, floor), side, beta1, beta2)
            rewards[i, 0] = value if reward > 0 else -value
        advantages = standardize(rewards, joint)
        result += [[advantages.get((i, 0), 0.0)] * len(tokens) for i, (_, tokens) in enumerate(group)]
    return result


def shared_run(ids, rivals):
    """How many of the first ids each stand at their place in one of the rivals."""
    length = 0
    while length < len(ids) and any(len(r) > length and r[length] == ids[length] for r in rivals):
        length += 1
    return length


def conflicts(group, advantages):
    """For each completion and token: shared with completions of the other sign, from the start or the end on."""
    result = []
    for (_, tokens), advantage in zip(group, advantages, strict=True):
        ids = [i for i, _ in tokens]
        rivals = [[i for i, _ in t] for (_, t), a in zip(group, advantages, strict=True) if a * advantage < 0]
        first, last = shared_run(ids, rivals), shared_run(ids[::-1], [rival[::-1] for rival in rivals])
        result.append([t < first or t >= len(ids) - last for t in range(len(ids))])
    return result


def gtpo_trajectory(completions, size, initial_entropy, gamma=0.1, limit=0.6931471805599453):
    result = []
    for group in groups(completions, size):
        advantages = z([reward for reward, _ in group])
        masks = conflicts(group, [0.0 if abs(a) < 1e-4 else a for a in advantages])
        for (reward, tokens), advantage, mask in zip(group, advantages, masks, strict=True):
            row = []
            for is_conflict in mask:
                mean = mean_entropy(tokens)
                keep = reward is not None and (initial_entropy > limit or mean <= limit)
                factor = 1 if not is_conflict else 2 if advantage > 0 else 0
                row.append((advantage - gamma * mean) * factor if keep else 0.0)
            result.append(row)
    return result
