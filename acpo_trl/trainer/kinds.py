"""Rewards of a generation batch by kind: outcome, format, cost, process."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from trl.trainer.utils import nanstd

from ..advantages import TurnRewards, sum_scored
from ..rewards.declare import KINDS


class RewardTable(NamedTuple):
    """What every reward function said about the N completions of a generation batch, over all processes."""

    rewards: Tensor
    """(N, F), NaN where a function did not score a completion."""
    weights: Tensor
    """(F,), one for each function."""
    kinds: Sequence[str]
    """F kinds, one for each function."""

    def by_kind(self) -> dict[str, Tensor]:
        """(N,) for each kind that a function has: the weighted sum of its functions, NaN where none of them scored."""
        weighted = self.rewards * self.weights
        return {kind: sum_scored(weighted[:, columns], dim=1) for kind, columns in self.columns().items()}

    def columns(self) -> dict[str, list[int]]:
        """Which functions each kind has; kinds without any are left out."""
        columns = {kind: [index for index, name in enumerate(self.kinds) if name == kind] for kind in KINDS}
        return {kind: indices for kind, indices in columns.items() if indices}

    def weights_by_kind(self) -> dict[str, float]:
        """Sum of the absolute weights of each kind's functions."""
        return {kind: self.weights[columns].abs().sum().item() for kind, columns in self.columns().items()}

    def by_turn(self, turn_scores: Mapping[int, Tensor], turns: TurnRewards) -> dict[str, TurnRewards]:
        """Rewards of each kind on turns, (N, K): weighted by function, divided by the kind's weight.

        A reward of the whole completion is one of its last turn.

        Args:
            turn_scores: (N, K), NaN where unscored, for each function that scores turns.
            turns: all about the turns but their rewards.
        """
        num_turns, width = turns.num_turns, turns.values.size(1)
        scores = torch.full((len(num_turns), width, len(self.kinds)), torch.nan, device=num_turns.device)
        rows = torch.arange(len(num_turns), device=num_turns.device)
        for index in range(len(self.kinds)):
            if index in turn_scores:
                scores[:, :, index] = turn_scores[index]
            else:
                scores[rows, (num_turns - 1).clamp(min=0), index] = self.rewards[:, index]
        scores.masked_fill_(self.rewards.isnan().all(dim=1).view(-1, 1, 1), torch.nan)
        totals, tables = self.weights_by_kind(), {}
        for kind, columns in self.columns().items():
            weights = self.weights[columns] / (totals[kind] or 1.0)
            tables[kind] = turns._replace(values=sum_scored(scores[:, :, columns] * weights, dim=2))
        return tables


def kind_metrics(table: RewardTable, num_generations: int) -> dict[str, float]:
    """Mean, spread, unscored share and zero-spread rate of each kind; NaN where nothing was scored.

    Args:
        table: rewards of a generation batch, groups in order.
        num_generations: completions in a group.
    """
    metrics: dict[str, float] = {}
    for kind, rewards in table.by_kind().items():
        metrics |= {
            f"rewards/{kind}/mean": rewards.nanmean().item(),
            f"rewards/{kind}/std": nanstd(rewards).item(),
            f"rewards/{kind}/unscored": rewards.isnan().float().mean().item(),
            f"rewards/{kind}/zero_spread": zero_spread_rate(rewards, num_generations),
        }
    return metrics


def zero_spread_rate(rewards: Tensor, num_generations: int) -> float:
    """Share of the groups with a scored completion in which all scored completions have the same reward.

    Args:
        rewards: (N,), NaN for unscored.
        num_generations: completions in a group.
    """
    groups = rewards.view(-1, num_generations)
    highest = groups.nan_to_num(nan=-torch.inf).amax(dim=1)
    lowest = groups.nan_to_num(nan=torch.inf).amin(dim=1)
    is_scored = highest.isfinite()
    return (torch.isclose(highest, lowest) & is_scored).sum().item() / (is_scored.sum().item() or torch.nan)
