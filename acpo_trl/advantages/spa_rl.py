"""SPA-RL: what a progress estimator says each turn contributed to the reward, and a bonus for actions that worked."""

import torch
from torch import Tensor

from .given import given
from .needs import needs
from .process import rewards_to_go
from .state import check_choice
from .table import EPSILON, TurnRewards, existing, standardize
from .turn_rtg import standardize_by_index


@needs("contributions")
def spa_rl(
    turns: TurnRewards,
    *,
    alpha: float = 1.0,
    beta: float = 0.5,
    gamma: float = 1.0,
    rescale: bool = False,
    baseline: str = "turn",
    grounding: str = "local",
    share_rest: bool = False,
) -> tuple[Tensor, Tensor]:
    """Fused rewards to go, standardized; and the total rewards that the contributions of a completion add up to.

    Args:
        turns: (N, K), with contributions, numbers of tokens and validity.
        alpha: weight of the contributions.
        beta: what a turn is worth for an action that could be carried out.
        gamma: discount for each turn, one without tokens too.
        rescale: make contributions add up to the total reward, as they do only when the estimator has learned.
        baseline: compare a turn with those of the same index in the group ("turn"), or with all of the group ("group").
            With rewards on every turn, the first turns of a completion have the most to come: "group" praises them.
        grounding: "local" takes beta off the advantage of a turn whose action could not be carried out, and off no
            other. "fused" adds it to the rewards of the turns that could be, as in the paper: then a fault also blames
            the turns before it, and praises those of other completions.
        share_rest: hand what contributions do not add up to out to all turns of the completion alike. An estimator that
            has learned nothing says 0 of each, and without it a run begins with a step that teaches nothing.

    Returns:
        (N, K) advantages, 0 for turns that do not exist, have no tokens, or belong to a completion that nobody scored;
        and (N,) targets, NaN for completions that are unscored or have no turn with tokens.

    Raises:
        ValueError: the table lacks what is needed, or an unknown choice.

    Source: arXiv:2505.20732, known second hand but for its abstract. The weights are our choice, 0.5 being the bonus in
        the authors' data; a baseline over the group replaces their PPO.
    """
    check_choice("baseline", baseline, ("turn", "group"))
    check_choice("grounding", grounding, ("local", "fused"))
    turns = existing(turns)
    is_local = grounding == "local"
    bonus = 0.0 if is_local else beta
    rewards = fused_rewards(turns, alpha=alpha, beta=bonus, rescale=rescale, share_rest=share_rest)
    is_step = ~rewards.isnan()
    returns = rewards_to_go(turns._replace(values=rewards), gamma).masked_fill(~is_step, torch.nan)
    compare = standardize_by_index if baseline == "turn" else standardize
    advantages = compare(returns, turns.num_generations)
    if is_local:
        advantages = advantages - beta * (is_step & ~given(turns, "is_valid"))
    return advantages, turns.totals.masked_fill(~is_step.any(dim=1), torch.nan)


def fused_rewards(
    turns: TurnRewards, *, alpha: float = 1.0, beta: float = 0.5, rescale: bool = False, share_rest: bool = False
) -> Tensor:
    """alpha * contribution, without gradient, + beta for a turn whose action could be carried out.

    Returns:
        (N, K), NaN for turns that do not exist, have no tokens, or belong to a completion that nobody scored.
    """
    is_step = turns.is_scored & (given(turns, "num_tokens") > 0)
    contributions = given(turns, "contributions").detach().to(turns.values).masked_fill(~is_step, 0)
    if rescale:
        total = contributions.sum(dim=1, keepdim=True)
        scale = turns.totals.unsqueeze(1) / total
        contributions = torch.where(total.abs() > EPSILON, contributions * scale, contributions)
    if share_rest:
        rest = turns.totals.unsqueeze(1) - contributions.sum(dim=1, keepdim=True)
        contributions = contributions + rest / is_step.sum(dim=1, keepdim=True).clamp(min=1)
    bonus = beta * given(turns, "is_valid").to(turns.values)
    return (alpha * contributions + bonus).masked_fill(~is_step, torch.nan)
