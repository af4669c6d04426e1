"""SALT: what several completions did alike gets the mean of their advantages."""

import torch
from torch import Tensor

from .given import given
from .state import (
    NONE,
    check_choice,
    comparable,
    count_alike,
    label,
    normalize,
    prompts,
    state_labels,
)
from .table import EPSILON, TurnRewards


def salt(turns: TurnRewards, *, trajectory: str = "grpo", epsilon: float = EPSILON) -> Tensor:
    """Mean advantage of the completions of the group that contain the turn's transition, each counted once.

    A transition is a state, an action and the state after it; the last turn of a completion leads to the end.

    Args:
        turns: (N, K), with state and action keys.
        trajectory: advantage of a completion: "grpo" (z-score) or "rloo" (reward - mean of the others).
        epsilon: added to the standard deviation.

    Returns:
        (N, K), 0 for turns that do not exist or belong to a completion that is unscored or the only scored one of its
        group.

    Raises:
        ValueError: no keys, or an unknown choice.

    Source: arXiv:2510.20022; the rule itself from a later paper's description, as no program was published.
    """
    check_choice("trajectory", trajectory, ("grpo", "rloo"))
    turns = comparable(turns)
    is_scored = turns.exists & ~turns.totals.isnan().unsqueeze(1)
    edges = _transitions(turns)
    rows = torch.arange(len(edges), device=edges.device).unsqueeze(1)
    pairs = (edges * len(edges) + rows)[is_scored].unique()  # a loop is one transition
    edge, row = pairs // len(edges), pairs % len(edges)
    advantages = _of_completions(turns, trajectory, epsilon)[row]
    sums = advantages.new_zeros(edges.numel()).index_add(0, edge, advantages)
    means = sums / edge.bincount(minlength=len(sums))
    return torch.where(is_scored, means[edges], 0)


def _transitions(turns: TurnRewards) -> Tensor:
    """(N, K), equal for equal transitions of a group."""
    states = state_labels(turns)
    next_states = states.roll(-1, dims=1).masked_fill(turns.is_last, NONE)
    return label(states, given(turns, "action_keys"), next_states)


def _of_completions(turns: TurnRewards, trajectory: str, epsilon: float) -> Tensor:
    """(N,)"""
    totals, groups = turns.totals, prompts(turns)
    advantages = normalize(totals, groups, epsilon, by_std=trajectory == "grpo")
    if trajectory == "grpo":
        return advantages
    count = count_alike(totals, groups)
    return advantages * count / (count - 1).clamp(min=1)
