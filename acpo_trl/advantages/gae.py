"""Advantages of turns against what a critic expected: generalised advantage estimation with a turn as one step."""

import torch
from torch import Tensor

from .given import given
from .needs import needs
from .state import check_choice
from .table import TurnRewards, existing

EPSILON = 1e-8  # of a variance, as in verl: added to a deviation, it would blow up the rounding of equal advantages


@needs("state_values")
def turn_ppo(
    turns: TurnRewards,
    *,
    gamma: float = 0.99,
    lam: float = 0.9,
    normalization: str = "token",
    bootstrap: bool = True,
) -> tuple[Tensor, Tensor]:
    """Turn-PPO: A[k] = d[k] + gamma lam A[k + 1] with d[k] = r[k] + gamma V[k + 1] - V[k].

    An unscored turn's reward counts as 0. A turn without tokens is no step: its reward goes to the last turn with
    tokens before it or, without one, to the first.

    Args:
        turns: (N, K), with values of states.
        gamma: discount for each turn.
        lam: how much of what follows is trusted more than the critic, from 0 to 1.
        normalization: of the advantages over the batch to mean 0 and standard deviation 1: "token" weighs a turn by
            its tokens, "turn" weighs all alike, "none" leaves them. A turn without another one in the batch is left.
        bootstrap: expect the critic's value behind a completion that a limit ended; nothing behind others.

    Returns:
        (N, K) advantages, 0 where nothing is learned: turns that do not exist or have no tokens, and completions that
        nobody scored; and (N, K) returns before normalisation, what the critic should have said, NaN there.

    Raises:
        ValueError: the table lacks what a critic's estimator needs, or an unknown normalization.

    Source: arXiv:2512.17008; its recursion and constants second hand, as no program was published.
    """
    check_choice("normalization", normalization, ("token", "turn", "none"))
    turns = existing(turns)
    num_tokens, values = given(turns, "num_tokens"), given(turns, "state_values").to(turns.values)
    is_step = turns.is_scored & (num_tokens > 0)
    advantages = gae(merged_rewards(turns, is_step), values, is_step, values_behind(turns, bootstrap), gamma, lam)
    targets = (advantages + values).masked_fill(~is_step, torch.nan)
    if normalization != "none":
        advantages = whiten(advantages, is_step * (num_tokens if normalization == "token" else 1))
    return advantages, targets


@needs("state_values")
def step_ppo(
    turns: TurnRewards,
    *,
    gamma: float = 0.99,
    lam: float = 1.0,
    normalization: str = "turn",
    bootstrap: bool = False,
) -> tuple[Tensor, Tensor]:
    """StepPO: `turn_ppo` with other defaults, those of its program.

    Source: arXiv:2604.18401 and AgentR1/StepPO, which expects nothing behind a completion even if a limit ended it.
    """
    return turn_ppo(turns, gamma=gamma, lam=lam, normalization=normalization, bootstrap=bootstrap)


def gae(
    rewards: Tensor, values: Tensor, is_step: Tensor, value_behind: Tensor, gamma: float | Tensor, lam: float
) -> Tensor:
    """Give A = d + gamma lam A' with d = r + gamma V' - V, the prime being the next step of the row.

    Args:
        rewards: (N, T).
        values: (N, T).
        is_step: (N, T) bool; what stands elsewhere does not matter, NaN neither.
        value_behind: (N,), V' of the last step.
        gamma: discount between steps, or (N, T) of them, 0 at a step that ends an episode within the row.
        lam: how far advantages reach back.

    Returns:
        (N, T), 0 where there is no step.
    """
    advantages = torch.zeros_like(rewards)
    discounts = torch.as_tensor(gamma, dtype=rewards.dtype, device=rewards.device).expand_as(rewards)
    next_value, next_advantage = value_behind, torch.zeros_like(value_behind)
    for step in reversed(range(rewards.size(1))):
        delta = rewards[:, step] + discounts[:, step] * next_value - values[:, step]
        advantage = delta + discounts[:, step] * lam * next_advantage
        next_value = torch.where(is_step[:, step], values[:, step], next_value)
        next_advantage = torch.where(is_step[:, step], advantage, next_advantage)
        advantages[:, step] = advantage.masked_fill(~is_step[:, step], 0)
    return advantages


def merged_rewards(turns: TurnRewards, is_step: Tensor) -> Tensor:
    """(N, K) rewards of steps, with those of the other turns behind them; the first step has those before it, too."""
    step = (is_step.cumsum(dim=1) - 1).clamp(min=0)
    rewards = turns.values.nan_to_num(nan=0.0)
    return torch.zeros_like(rewards).scatter_add(1, step, rewards).gather(1, step).masked_fill(~is_step, 0)


def whiten(advantages: Tensor, weights: Tensor) -> Tensor:
    """Give (x - mean) / sqrt(variance + 1e-8), a weight counting as so many entries; variance with Bessel's correction.

    Args:
        advantages: of any shape.
        weights: of the same shape, whole numbers, 0 for entries that do not count.

    Returns:
        Like `advantages`, 0 where the weight is; exactly 0 for equal entries; unchanged with fewer than two.
    """
    counts = weights > 0
    kept, weight = advantages[counts], weights[counts].to(advantages)
    if len(kept) < 2:
        return advantages
    centered = kept - kept.amin()  # equal entries become exactly 0
    centered = centered - (weight * centered).sum() / weight.sum()
    variance = (weight * centered.square()).sum() / (weight.sum() - 1)
    return torch.zeros_like(advantages).masked_scatter(counts, centered / (variance + EPSILON).sqrt())


def values_behind(turns: TurnRewards, bootstrap: bool) -> Tensor:
    """(N,), what is expected behind the last turn: 0, or the critic's value where a limit ended the completion."""
    zeros = turns.values.new_zeros(len(turns.values))
    if not bootstrap:
        return zeros
    return torch.where(given(turns, "is_truncated"), given(turns, "end_values").to(zeros), zeros)
