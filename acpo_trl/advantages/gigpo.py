"""GiGPO: completions against each other, and turns against others from the same state."""

import torch
from torch import Tensor

from .given import given
from .state import acts, check_choice, comparable, normalize, prompts, state_labels, step_returns
from .table import EPSILON, TurnRewards


def gigpo(
    turns: TurnRewards,
    *,
    omega: float = 1.0,
    gamma: float = 0.95,
    normalization: str = "std",
    statistics: str = "trajectory",
    guard_first_turn: bool = True,
    invalid_penalty: float = 0.0,
    epsilon: float = EPSILON,
) -> Tensor:
    """Advantage of the completion within its group + omega * that of the turn among all from its state.

    Both are z-scores: of the sum of rewards, and of the discounted rewards to go.

    Args:
        turns: (N, K), with state keys.
        omega: weight of the second.
        gamma: discount for each turn.
        normalization: "std" (divide by the standard deviation) or "mean" (do not).
        statistics: "trajectory" (completions count alike) or "step" (each counts once for each of its turns).
        guard_first_turn: leave the second out where it would compare the first turns of all completions and no other
            turn, that is, compare the completions once more.
        invalid_penalty: taken off the return of a turn whose action could not be carried out, after discounting, and
            off its completion's total where that stands for this turn: no other turn inherits it. With "trajectory"
            statistics the second is not normalised, as a group without spread would blow it up.
        epsilon: added to the standard deviation.

    Returns:
        (N, K), 0 for turns that do not exist, have no tokens, or belong to a completion that is unscored or the only
        scored one of its group.

    Raises:
        ValueError: no state keys, no validity for a penalty, or an unknown choice.

    Source: arXiv:2505.10978, equations 3 and 5 to 8.
    """
    check_choice("normalization", normalization, ("std", "mean"))
    check_choice("statistics", statistics, ("trajectory", "step"))
    turns = comparable(turns)
    by_std, states, is_compared = normalization == "std", state_labels(turns), acts(turns)
    penalty = torch.zeros_like(turns.values)
    if invalid_penalty:
        penalty = penalty.masked_fill(~given(turns, "is_valid"), invalid_penalty)
    returns = step_returns(turns, gamma) - penalty
    if guard_first_turn:
        returns = returns.masked_fill(_is_common_start(turns, states), torch.nan)
    totals, groups = turns.totals.unsqueeze(1), prompts(turns).unsqueeze(1)
    if statistics == "step":
        totals, groups = (totals - penalty).where(is_compared, torch.nan), groups.expand_as(states)
    episodes = normalize(totals, groups, epsilon, by_std=by_std)
    if statistics == "trajectory":
        episodes = episodes - penalty
    return torch.where(is_compared, episodes + omega * normalize(returns, states, epsilon, by_std=by_std), 0)


def _is_common_start(turns: TurnRewards, states: Tensor) -> Tensor:
    """(N, K) bool: the turn is a first one, as are all from its state, and they are all first turns of the group."""
    is_compared, groups = acts(turns), prompts(turns)
    is_first = is_compared.clone()
    is_first[:, 1:] = False
    size = states.numel()
    first, every = (states[mask].bincount(minlength=size)[states] for mask in (is_first, is_compared))
    starts = groups[is_first.any(dim=1)].bincount(minlength=len(groups))[groups]
    return is_first & (first == every) & (first == starts.unsqueeze(1))
