"""Scores of turns handed to the turns that led to them, by sum or by maximum."""

import torch
from torch import Tensor

from .process import rewards_to_go
from .table import TurnRewards, existing, standardize


def kevin(turns: TurnRewards, *, mode: str = "sum", gamma: float = 0.4) -> Tensor:
    """Discounted sum or maximum of the scores from each turn on, standardized over all turns of the group.

    Args:
        turns: (N, K).
        mode: "sum" for G[k] = S[k] + gamma G[k + 1], "max" for G[k] = max(S[k], gamma G[k + 1]).
        gamma: discount for each turn; the paper found 0.8 better for "max" with few turns.

    Returns:
        (N, K), 0 for turns that do not exist and rows that nobody scored.

    Raises:
        ValueError: unknown mode.

    Source: Kevin, arXiv:2507.11948.
    """
    if mode not in ("sum", "max"):
        raise ValueError(f"mode {mode!r}: no such way to combine scores; expected 'sum' or 'max'; set one of them.")
    returns = rewards_to_go(turns, gamma) if mode == "sum" else best_to_go(turns, gamma)
    return standardize(returns, turns.num_generations)


def best_to_go(turns: TurnRewards, gamma: float) -> Tensor:
    """Give G[k] = max(S[k], gamma * G[k + 1]), an unscored turn counting as 0.

    Returns:
        (N, K), NaN for turns that do not exist and rows that nobody scored.
    """
    returns, exists = existing(turns).values.nan_to_num(nan=0.0), turns.exists
    for turn in reversed(range(returns.size(1) - 1)):
        best = torch.maximum(returns[:, turn], gamma * returns[:, turn + 1])
        returns[:, turn] = torch.where(exists[:, turn + 1], best, returns[:, turn])
    return torch.where(turns.is_scored, returns, torch.nan)
