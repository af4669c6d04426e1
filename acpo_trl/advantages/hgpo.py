"""HGPO: turns against others from the same state and the same history before it."""

import torch
from torch import Tensor

from .state import check_choice, comparable, count_alike, label, normalize, state_labels, step_returns
from .table import EPSILON, TurnRewards

FIRST_WEIGHT = {"paper": 1, "code": 2}


def hgpo(
    turns: TurnRewards,
    *,
    max_history: int = 2,
    alpha: float = 1.0,
    gamma: float = 0.95,
    weights: str = "paper",
    renormalize: bool = True,
    epsilon: float = EPSILON,
) -> Tensor:
    """Mean of a turn's advantages among the turns with the same last 0, 1, ... `max_history` states before it.

    Each is a z-score of the discounted rewards to go, with the standard deviation of the population. A level at which
    the turn is alone, or which begins before the first turn, has none.

    Args:
        turns: (N, K), with state keys.
        max_history: the longest history compared.
        alpha: level k weighs (k + 1) ** alpha; 0 weighs all alike.
        gamma: discount for each turn.
        weights: "paper", or "code" for (k + 2) ** alpha, as the authors' program has it.
        renormalize: divide by the weights of the levels that a turn has, not of all.
        epsilon: added to the standard deviation.

    Returns:
        (N, K), 0 for turns that have no level, do not exist, have no tokens, or belong to a completion that is unscored
        or the only scored one of its group.

    Raises:
        ValueError: no state keys, a negative history, or an unknown choice.

    Source: arXiv:2602.22817.
    """
    check_choice("weights", weights, tuple(FIRST_WEIGHT))
    if max_history < 0:
        raise ValueError(f"max_history {max_history!r}: no level would be left; expected 0 or more states.")
    turns = comparable(turns)
    returns, states = step_returns(turns, gamma), state_labels(turns)
    total, weight_sum, labels = torch.zeros_like(returns), torch.zeros_like(returns), states
    for level in range(max_history + 1):
        if level:
            labels = label(labels.roll(1, dims=1), states)  # the history of the turn before, and the state
            returns[:, :level] = torch.nan  # too early for a history of this length
        weight = (level + FIRST_WEIGHT[weights]) ** alpha
        total += weight * normalize(returns, labels, epsilon, correction=0)
        is_compared = ~returns.isnan() & (count_alike(returns, labels) > 1)
        weight_sum += weight * is_compared if renormalize else weight
    return torch.where(weight_sum > 0, total / weight_sum, 0)
