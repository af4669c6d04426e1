"""Rewards of single turns, handed to the turns that led to them."""

import torch
from torch import Tensor

from .table import TurnRewards, existing, standardize


def rewards_to_go(turns: TurnRewards, gamma: float) -> Tensor:
    """Give G[k] = r[k] + gamma * G[k + 1], an unscored turn counting as 0.

    Returns:
        (N, K), NaN for turns that do not exist and rows that nobody scored.
    """
    returns = existing(turns).values.nan_to_num(nan=0.0)
    for turn in reversed(range(returns.size(1) - 1)):
        returns[:, turn] += gamma * returns[:, turn + 1]
    return torch.where(turns.is_scored, returns, torch.nan)


def process(turns: TurnRewards, *, gamma: float = 0.95) -> Tensor:
    """Discounted rewards to go, standardized over all turns of the group.

    Args:
        turns: (N, K).
        gamma: discount for each turn.

    Returns:
        (N, K), 0 for turns that do not exist and rows that nobody scored.
    """
    return standardize(rewards_to_go(turns, gamma), turns.num_generations)


def discounted(turns: TurnRewards, *, gamma: float = 0.95, failure: float = 0.0) -> Tensor:
    """The outcome handed back by discount, then standardized over all turns of the group.

    G[k] = gamma ** (K_i - 1 - k) * R, then z over the turns: every turn of a failure worth 0 gets the same advantage,
    and long completions weigh more in the mean. `outcome` takes the two steps in the other order.

    Args:
        turns: (N, K).
        gamma: discount for each turn.
        failure: what a reward of exactly 0 on the last turn counts as, before discounting. -1 gives a failure's first
            turns less blame than its last ones.

    Returns:
        (N, K), 0 for turns that do not exist, rows that nobody scored and groups with one scored row.
    """
    has_failed = turns.is_last & (turns.values == 0)
    return process(compared(turns._replace(values=turns.values.masked_fill(has_failed, failure))), gamma=gamma)


def compared(turns: TurnRewards) -> TurnRewards:
    """Leave completions unscored that are the only scored one of their group.

    Standardized over its own turns, the discount alone would praise a success's last turns and blame its first.
    """
    is_scored = (~turns.totals.isnan()).view(-1, turns.num_generations)
    is_alone = (is_scored.sum(dim=1) < 2).repeat_interleave(turns.num_generations)
    return turns._replace(values=turns.values.masked_fill(is_alone.unsqueeze(1), torch.nan))


def local(turns: TurnRewards) -> Tensor:
    """The rewards themselves, on their own turns only: neither normalised nor discounted.

    For penalties, such as -1 for a malformed call: a normalised one would pay the turns without fault.

    Returns:
        (N, K), 0 for unscored turns.
    """
    return existing(turns).values.nan_to_num(nan=0.0)
