"""Intermediate rewards and the outcome, each compared within the group on its own, then added."""

import torch
from torch import Tensor

from .process import rewards_to_go
from .table import TurnRewards, existing, standardize
from .turn_rtg import standardize_by_index


def mt_grpo(turns: TurnRewards, *, alpha: float = 1.0, form: str = "paper") -> Tensor:
    """Advantages of the intermediate rewards and of the outcome, from rewards of one table.

    The reward of a completion's last turn is its outcome, those of the turns before are intermediate. What the first
    turns earned without a token of the policy falls on the first turn that has some, as no turn stands before it.

    Args:
        turns: (N, K).
        alpha: weight of what comes later ("paper"), or of the intermediate rewards ("code").
        form: "paper" for A[k] = A_I[k] + alpha A[k + 1], ending in the outcome's A_O, with A_I compared at its turn
            index; for two turns A_I + alpha A_O and A_O. "code" for A_O on every turn and alpha A_I more on the first,
            A_I of the sum of all intermediate rewards; a completion of one turn is compared by its total.

    Returns:
        (N, K), 0 for turns that do not exist. An unscored last turn adds nothing.

    Raises:
        ValueError: unknown form.

    Source: MT-GRPO, arXiv:2505.11821, version 2; the code form is that of SiliangZeng/Multi-Turn-RL-Agent.
    """
    if form not in ("paper", "code"):
        raise ValueError(f"form {form!r}: no such form of MT-GRPO; expected 'paper' or 'code'; set one of them.")
    turns = existing(turns)
    is_last = turns.is_last
    outcome = turns._replace(values=turns.values.masked_fill(~is_last, torch.nan))
    intermediate = turns._replace(values=turns.values.masked_fill(is_last, torch.nan))
    by_outcome = standardize(outcome.totals, turns.num_generations).unsqueeze(1)
    if form == "paper":
        by_turn = fall_on_first(standardize_by_index(intermediate.values, turns.num_generations), turns)
        advantages = rewards_to_go(turns._replace(values=by_turn + torch.where(is_last, by_outcome, 0)), alpha)
    else:
        by_sum = standardize(intermediate.totals, turns.num_generations).unsqueeze(1)
        by_total = standardize(turns.totals, turns.num_generations).unsqueeze(1)
        on_first = torch.zeros_like(turns.values)
        on_first[:, :1] = by_sum
        advantages = by_outcome + alpha * fall_on_first(on_first, turns)
        advantages = torch.where(turns.num_turns.unsqueeze(1) == 1, by_total, advantages)
    return torch.where(turns.exists, advantages, 0)


def fall_on_first(advantages: Tensor, turns: TurnRewards) -> Tensor:
    """Advantages (N, K) with those of the turns before the first that has tokens moved onto it."""
    if turns.num_tokens is None:
        return advantages
    has_tokens = (turns.num_tokens > 0) & turns.exists
    is_before = (has_tokens.cumsum(dim=1) == 0) & has_tokens.any(dim=1, keepdim=True)
    is_first = has_tokens & (has_tokens.cumsum(dim=1) == 1)
    moved = torch.where(is_before, advantages, 0).sum(dim=1, keepdim=True)
    return torch.where(is_before, 0, advantages) + torch.where(is_first, moved, 0)
