"""Entropy-weighted GTPO and GRPO-S: success praised most where the policy hesitated, failure where it was sure."""

from typing import NamedTuple

import torch
from torch import Tensor

from .given import given
from .needs import needs
from .state import check_choice, count_alike, label, normalize, prompts
from .table import TokenTable, TurnRewards

EPSILON = 1e-8


@needs("tokens")
def gtpo(
    turns: TurnRewards,
    *,
    alpha1: float = 1.0,
    alpha2: float = 0.1,
    normalization: str = "joint",
    entropy_floor: float = 1e-3,
    success_above: float = 0.0,
) -> Tensor:
    """Rewards of tokens, +-(alpha1 + alpha2 * w / mean w), as z-scores with the population's standard deviation.

    w is the entropy in a success and its inverse in a failure. The mean is over the group's successes, or failures, at
    the same token; so the second terms of a column sum up to alpha2 times how many completions are that long. Tokens
    are counted without those of the environment: the third that the policy produced stands beside the third.

    The mean reward of successes is exactly alpha1 + alpha2. "joint" therefore leaves every success above 0 and every
    failure below, as long as each side has more than alpha2 / (2 (alpha1 + alpha2)) of the group's tokens: 4.5 % by
    default. "separate", the formula as published, takes alpha1 out: each side has tokens of either sign.
    A group without successes, or failures, is compared with itself and still has a gradient.

    Args:
        turns: (N, K), with tokens.
        alpha1: reward of the outcome.
        alpha2: reward of the entropy.
        normalization: over the tokens of the group, "joint", or "separate" for successes and failures.
        entropy_floor: in nats; without it one sure token of a failure would take all that its column has.
        success_above: the total reward that a success exceeds.

    Returns:
        (N, T), 0 for tokens of the environment and completions that nobody scored.

    Raises:
        ValueError: no tokens, or an unknown normalization.

    Source: arXiv:2508.04349, known second hand but for its abstract; the standard deviation is our reading.
    """
    sides = _sides(turns, success_above)
    entropies = sides.entropies.clamp(min=entropy_floor)
    columns = label(sides.number.expand_as(entropies), sides.place)
    rewards = shaped_rewards(entropies, sides.is_success, columns, alpha1, alpha2)
    return _standardize(rewards, sides, normalization).to(turns.values.dtype)


@needs("tokens")
def grpo_s(
    turns: TurnRewards,
    *,
    beta1: float = 1.0,
    beta2: float = 0.1,
    normalization: str = "joint",
    entropy_floor: float = 1e-3,
    success_above: float = 0.0,
) -> Tensor:
    """`gtpo` with one reward for each completion, from its mean entropy; z-scores over completions.

    Args:
        turns: (N, K), with tokens.
        beta1: reward of the outcome.
        beta2: reward of the entropy.
        normalization: over the completions of the group, "joint", or "separate" for successes and failures.
        entropy_floor: in nats, of the mean.
        success_above: the total reward that a success exceeds.

    Returns:
        (N, T), the same for all tokens of the policy; 0 for the others and completions that nobody scored.

    Raises:
        ValueError: no tokens, or an unknown normalization.

    Source: arXiv:2508.04349, which also replaces the ratio by the mean over a completion's tokens; this does not.
    """
    sides = _sides(turns, success_above)
    entropies = sides.entropies.nanmean(dim=1, keepdim=True).clamp(min=entropy_floor)
    rewards = shaped_rewards(entropies, sides.is_success, label(sides.number), beta1, beta2)
    advantages = _standardize(rewards, sides, normalization).to(turns.values.dtype)
    return torch.where(sides.entropies.isnan(), 0, advantages)


def shaped_rewards(entropies: Tensor, is_success: Tensor, labels: Tensor, base: float, scale: float) -> Tensor:
    """Give +-(base + scale * w / mean w), the mean over the entries of equal label.

    Args:
        entropies: (N, T) above 0, NaN for entries that do not count.
        is_success: (N, 1) bool.
        labels: (N, T), as `label` gives them.
        base: reward of the outcome.
        scale: reward of the entropy.

    Returns:
        (N, T), NaN for entries that do not count.
    """
    weights = torch.where(is_success, entropies, 1 / entropies)
    is_scored = ~weights.isnan()
    sums = weights.new_zeros(labels.numel()).index_add(0, labels[is_scored], weights[is_scored])
    shaping = weights * count_alike(weights, labels) / sums[labels]
    return torch.where(is_success, 1, -1) * (base + scale * shaping)


def policy_entropies(tokens: TokenTable) -> Tensor:
    """(N, T), NaN for tokens that the policy did not produce.

    In float64: 1e-8 beside a standard deviation would blow up the rounding of equal rewards in float32.
    """
    return tokens.entropies.double().masked_fill(tokens.turn_ids < 0, torch.nan)


class _Sides(NamedTuple):
    """The successes and the failures of each group."""

    entropies: Tensor
    """(N, T), NaN for tokens of the environment and completions that nobody scored."""
    place: Tensor
    """(N, T), which of its completion's tokens of the policy it is, from 1."""
    is_success: Tensor
    """(N, 1) bool."""
    number: Tensor
    """(N, 1), an even one for the failures of a group and the next one for its successes."""


def _sides(turns: TurnRewards, success_above: float) -> _Sides:
    tokens: TokenTable = given(turns, "tokens")
    totals = turns.totals.unsqueeze(1)
    is_success = totals > success_above
    entropies = policy_entropies(tokens).masked_fill(totals.isnan(), torch.nan)
    number = 2 * prompts(turns).unsqueeze(1) + is_success
    return _Sides(entropies, (tokens.turn_ids >= 0).cumsum(dim=1), is_success, number)


def _standardize(rewards: Tensor, sides: _Sides, normalization: str) -> Tensor:
    check_choice("normalization", normalization, ("joint", "separate"))
    number = sides.number if normalization == "separate" else sides.number // 2
    return normalize(rewards, label(number.expand_as(rewards)), EPSILON, correction=0)
