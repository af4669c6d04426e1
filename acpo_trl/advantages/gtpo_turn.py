"""Group Turn Policy Optimization: turns by their normalised returns, failures by their likeness to successes."""

import torch
from torch import Tensor

from .process import compared, process
from .table import TurnRewards


def gtpo_turn(turns: TurnRewards, *, gamma: float = 0.9) -> Tensor:
    """Discounted returns, standardized over all turns of the group.

    The method is in the rewards: the outcome on the last turn, -0.1 on a turn with a format fault, and `partial_credit`
    in place of the outcome of a failure.

    Args:
        turns: (N, K).
        gamma: discount for each turn.

    Returns:
        (N, K), 0 for turns that do not exist, rows that nobody scored and groups with one scored row.

    Source: arXiv:2511.14846, known second hand but for its abstract.
    """
    return process(compared(turns), gamma=gamma)


def partial_credit(similarity: Tensor, has_passed: Tensor, *, alpha: float = 0.5) -> Tensor:
    """Reward of a failure for being like the successes of its group.

    Args:
        similarity: (G, G), of completion i to completion j of the group, between 0 and 1.
        has_passed: (G,) bool.
        alpha: reward of a failure that equals all of them.

    Returns:
        (G,), alpha times the mean similarity to the completions that passed; 0 if none did and for those that did.
    """
    mean = (similarity * has_passed).sum(dim=1) / has_passed.sum().clamp(min=1)
    return torch.where(has_passed, 0, alpha * mean)
