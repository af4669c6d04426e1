"""Rewards to go, each compared with those of the other completions at the same turn."""

import torch
from torch import Tensor

from .process import rewards_to_go
from .table import TurnRewards, standardize


def standardize_by_index(values: Tensor, num_generations: int) -> Tensor:
    """Standardize each turn index over the completions of the group with a value there.

    Args:
        values: (N, K), NaN for unscored.
        num_generations: rows in a group.

    Returns:
        (N, K), 0 for unscored entries and where fewer than two completions of the group have a value.
    """
    advantages = torch.zeros_like(values)
    for turn in range(values.size(1)):
        advantages[:, turn] = standardize(values[:, turn], num_generations)
    return advantages


def turn_rtg(turns: TurnRewards, *, gamma: float = 1.0) -> Tensor:
    """Rewards to go, standardized at each turn index over the completions that reach it.

    The rewards are summed before the baseline is taken off, so the baseline of turn k is one number for all that reach
    k. Taken off turn by turn and summed afterwards, its number of terms would depend on when the policy stops, which
    biases the gradient where rewards come before the last turn.

    Args:
        turns: (N, K).
        gamma: discount for each turn.

    Returns:
        (N, K), 0 for turns that do not exist, rows that nobody scored, and a turn that only one completion reaches.

    Source: verl-project/verl#7244, for the bias.
    """
    return standardize_by_index(rewards_to_go(turns, gamma), turns.num_generations)
