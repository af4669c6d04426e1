"""Rewards of turns as a table, and their statistics within a group."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

EPSILON = 1e-4  # as in TRL: a group without spread gets 0, not infinity


class TokenTable(NamedTuple):
    """The tokens of N completions, for estimators that look at each one, over all processes."""

    turn_ids: Tensor
    """(N, T), which turn a token belongs to; -1 for tokens that the policy did not produce."""
    ids: Tensor
    """(N, T)."""
    entropies: Tensor
    """(N, T) in nats, of the policy, without gradient."""
    initial_entropy: float
    """Mean entropy over the tokens of the first generation batch of the run."""
    values: Tensor | None = None
    """(N, T), what the critic expects from the state before each token."""


class TurnRewards(NamedTuple):
    """Rewards of one kind for the turns of N completions, groups in order, over all processes."""

    values: Tensor
    """(N, K), NaN for turns that are unscored or do not exist."""
    num_turns: Tensor
    """(N,), how many of the K turns exist."""
    num_generations: int
    """Completions in a group."""
    state_keys: Tensor | None = None
    """(N, K) int64: turns of a group with equal keys start from the same state."""
    action_keys: Tensor | None = None
    """(N, K) int64: turns with equal keys are the same action."""
    num_tokens: Tensor | None = None
    """(N, K), how many tokens the policy produced in a turn."""
    is_valid: Tensor | None = None
    """(N, K) bool: the turn's action could be read and carried out."""
    is_truncated: Tensor | None = None
    """(N,) bool: a limit ended the completion, not the policy."""
    observations: Sequence[Sequence[str]] | None = None
    """What was shown before each turn, for N completions."""
    beliefs: Tensor | None = None
    """(N, K) in nats, mean log-probability of the gold answer's tokens if it were given in place of the turn."""
    state_values: Tensor | None = None
    """(N, K), what the critic expects from the state that a turn starts from."""
    end_values: Tensor | None = None
    """(N,), what it expects from the state behind the last turn."""
    contributions: Tensor | None = None
    """(N, K), what the progress estimator says a turn contributed."""
    tokens: TokenTable | None = None

    @property
    def exists(self) -> Tensor:
        """(N, K) bool."""
        return torch.arange(self.values.size(1), device=self.values.device) < self.num_turns.unsqueeze(1)

    @property
    def is_last(self) -> Tensor:
        """(N, K) bool: no turn of the completion comes behind."""
        position = torch.arange(self.values.size(1), device=self.values.device)
        return position == self.num_turns.unsqueeze(1) - 1

    @property
    def totals(self) -> Tensor:
        """(N,), the sum over the scored turns that exist; NaN where none is."""
        return sum_scored(existing(self).values, dim=1)

    @property
    def is_scored(self) -> Tensor:
        """(N, K) bool: the turn exists, and somebody scored a turn of its completion."""
        return self.exists & ~self.totals.isnan().unsqueeze(1)


def existing(turns: TurnRewards) -> TurnRewards:
    """The table with nothing where turns do not exist."""
    return turns._replace(values=turns.values.masked_fill(~turns.exists, torch.nan))


def sum_scored(values: Tensor, dim: int) -> Tensor:
    """Sum over the entries of a dimension that are not NaN; NaN where all are."""
    return values.nansum(dim=dim).masked_fill(values.isnan().all(dim=dim), torch.nan)


def standardize(values: Tensor, num_generations: int) -> Tensor:
    """Give (x - mean) / (std + 1e-4) within each group, over its scored entries; std with Bessel's correction.

    Args:
        values: (N,) or (N, K), NaN for unscored; N rows in groups of `num_generations`.
        num_generations: rows in a group.

    Returns:
        Like `values`; exactly 0 for unscored entries, and in a group with fewer than two scored ones or without spread,
        whatever the rounding of its mean.
    """
    groups = values.view(values.size(0) // num_generations, -1)
    is_scored = ~groups.isnan()
    count = is_scored.sum(dim=1, keepdim=True)
    centered = torch.where(is_scored, groups - groups.nanmean(dim=1, keepdim=True), 0)
    std = (centered.square().sum(dim=1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
    highest = groups.nan_to_num(nan=-torch.inf).amax(dim=1, keepdim=True) if groups.numel() else count
    lowest = groups.nan_to_num(nan=torch.inf).amin(dim=1, keepdim=True) if groups.numel() else count
    return torch.where((count > 1) & (highest > lowest), centered / (std + EPSILON), 0).view_as(values)
