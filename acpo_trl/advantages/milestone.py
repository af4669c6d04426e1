"""Rewards for milestones, against what the group still earns from the same turn on."""

from torch import Tensor

from .process import rewards_to_go
from .table import TurnRewards


def milestone(turns: TurnRewards, *, gamma: float = 0.95) -> Tensor:
    """Discounted rewards to go minus their mean over the completions that reach the turn.

    Not divided by a standard deviation: a milestone's worth is chosen by whoever pays it, and a late turn at which few
    completions differ a little must not speak as loudly as the goal. Whoever pays it sees to it that each is paid once.

    Args:
        turns: (N, K), unscored where no milestone was reached.
        gamma: discount for each turn.

    Returns:
        (N, K), 0 for turns that do not exist, rows that nobody scored, and a turn that only one completion reaches.
    """
    returns = rewards_to_go(turns, gamma)
    groups = returns.view(returns.size(0) // turns.num_generations, turns.num_generations, returns.size(1))
    return (groups - groups.nanmean(dim=1, keepdim=True)).nan_to_num(nan=0.0).view_as(returns)
