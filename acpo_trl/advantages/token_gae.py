"""Advantages of tokens against what a critic expected: PPO's, and one with an estimate over turns above it."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..turns import spread_turns
from .gae import gae, merged_rewards, values_behind, whiten
from .given import given
from .needs import needs
from .state import check_choice
from .table import TurnRewards, existing


@needs("tokens", "token_values")
def ppo(
    turns: TurnRewards,
    *,
    gamma: float = 1.0,
    lam: float = 0.95,
    normalization: str = "token",
    bootstrap: bool = True,
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation over the tokens that the policy produced, as if there were no others.

    The reward of a turn is that of its last token; a turn without tokens gives it to the last turn with tokens before
    it or, without one, to the first.

    Args:
        turns: (N, K), with tokens and their values.
        gamma: discount for each token.
        lam: how much of what follows is trusted more than the critic, from 0 to 1.
        normalization: "token" for mean 0 and standard deviation 1 over the tokens of the batch, "none" to leave them.
        bootstrap: expect the critic's value behind a completion that a limit ended; nothing behind others.

    Returns:
        (N, T) advantages, 0 for tokens of the environment, padding, and completions that nobody scored; and (N, T)
        returns before normalisation, what the critic should have said, NaN there.

    Raises:
        ValueError: the table lacks what a critic's estimator needs, or an unknown normalization.

    Source: PPO (arXiv:1707.06347).
    """
    steps = _steps(turns)
    rewards = steps.on_last_tokens(merged_rewards(existing(turns), steps.has_tokens))
    advantages = gae(rewards, steps.values, steps.is_step, values_behind(turns, bootstrap), gamma, lam)
    return _estimate(advantages, steps, normalization)


@needs("tokens", "token_values")
def bilevel_gae(
    turns: TurnRewards,
    *,
    turn_gamma: float = 0.95,
    gamma: float = 1.0,
    lam: float = 1.0,
    normalization: str = "token",
    bootstrap: bool = True,
) -> tuple[Tensor, Tensor]:
    """Estimate over turns, by the values at their last tokens, then over the tokens of each turn apart.

    What the first estimate returns for a turn is the reward of its last token in the second, which stops there. So the
    discount between turns does not depend on their lengths. Rewards of turns without tokens go where `ppo` puts them.

    Args:
        turns: (N, K), with tokens and their values.
        turn_gamma: discount for each turn.
        gamma: discount for each token within a turn.
        lam: for both estimates.
        normalization: "token" for mean 0 and standard deviation 1 over the tokens of the batch, "none" to leave them.
        bootstrap: expect the critic's value behind a completion that a limit ended; nothing behind others.

    Returns:
        As `ppo`.

    Raises:
        ValueError: as `ppo`.

    Source: RAGEN-AI/RAGEN, which finds the end of a turn by its reward and so misses turns worth 0.
    """
    steps, behind = _steps(turns), values_behind(turns, bootstrap)
    values = steps.at_last_tokens(steps.values)
    rewards = merged_rewards(existing(turns), steps.has_tokens)
    returns = values + gae(rewards, values, steps.has_tokens, behind, turn_gamma, lam)
    discounts = gamma * (~steps.is_last).to(values)
    advantages = gae(steps.on_last_tokens(returns), steps.values, steps.is_step, behind, discounts, lam)
    return _estimate(advantages, steps, normalization)


class _Steps(NamedTuple):
    """The tokens to learn from, those of scored completions."""

    turn_ids: Tensor
    """(N, T)"""
    values: Tensor
    """(N, T)"""
    is_step: Tensor
    """(N, T) bool."""
    is_last: Tensor
    """(N, T) bool: the last token of its turn."""
    num_turns: int

    def at_last_tokens(self, entries: Tensor) -> Tensor:
        """(N, K), the (N, T) entry of each turn's last token; 0 for turns without tokens."""
        turns = torch.where(self.is_last, self.turn_ids, self.num_turns)  # one column for all other tokens
        sums = entries.new_zeros(len(entries), self.num_turns + 1)
        return sums.scatter_add(1, turns, entries.masked_fill(~self.is_last, 0))[:, :-1]

    def on_last_tokens(self, entries: Tensor) -> Tensor:
        """(N, T), the (N, K) entry of a turn on its last token, 0 elsewhere."""
        return spread_turns(entries, self.turn_ids).masked_fill(~self.is_last, 0)

    @property
    def has_tokens(self) -> Tensor:
        """(N, K) bool: the turn has tokens to learn from."""
        return self.at_last_tokens(self.is_last.long()) > 0


def _steps(turns: TurnRewards) -> _Steps:
    tokens = given(turns, "tokens")
    if tokens.values is None:
        raise ValueError(
            "tokens.values None: a token can be no better or worse than expected; expected what a critic says, (N, T); "
            "the trainer gives it; to a table of your own pass TokenTable(..., values=...)."
        )
    num_turns = turns.values.size(1)
    is_step = spread_turns(existing(turns).is_scored, tokens.turn_ids)
    turn = torch.where(is_step, tokens.turn_ids, num_turns)
    place = torch.arange(turn.size(1), device=turn.device).expand_as(turn)
    last_place = place.new_zeros(len(turn), num_turns + 1).scatter_reduce(1, turn, place, "amax")
    values = tokens.values.to(turns.values)
    return _Steps(tokens.turn_ids, values, is_step, is_step & (last_place.gather(1, turn) == place), num_turns)


def _estimate(advantages: Tensor, steps: _Steps, normalization: str) -> tuple[Tensor, Tensor]:
    check_choice("normalization", normalization, ("token", "none"))
    targets = (advantages + steps.values).masked_fill(~steps.is_step, torch.nan)
    return whiten(advantages, steps.is_step) if normalization == "token" else advantages, targets
