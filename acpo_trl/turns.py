"""Turns of a completion as tensors: from the action mask to turn ids, and between turns and tokens."""

import torch
from torch import Tensor


def turn_ids_of(action_mask: Tensor) -> Tensor:
    """Number the runs of action tokens in each row.

    A fallback for rollouts that did not record their turns: a turn without tokens, and a turn that follows another
    without a token between them, cannot be seen in a mask.

    Args:
        action_mask: (B, T) bool, True for tokens that the policy produced.

    Returns:
        (B, T), from 0 for the first run; -1 elsewhere.
    """
    starts = action_mask.clone()
    starts[:, 1:] &= ~action_mask[:, :-1]
    return torch.where(action_mask, starts.cumsum(dim=1) - 1, -1)


def spread_turns(values: Tensor, turn_ids: Tensor) -> Tensor:
    """Give each token the value of its turn.

    Args:
        values: (B, K), one number per turn.
        turn_ids: (B, T), -1 for environment and padding tokens.

    Returns:
        (B, T), exactly 0 where `turn_ids` is -1.

    Raises:
        ValueError: a turn id is K or larger.
    """
    if turn_ids.numel() and int(turn_ids.max()) >= values.size(1):
        raise ValueError(
            f"turn_ids reach {int(turn_ids.max())}: there are values for {values.size(1)} turns only; expected one "
            "value for each turn."
        )
    if not values.size(1):
        return torch.zeros_like(turn_ids, dtype=values.dtype)
    return values.gather(1, turn_ids.clamp(min=0)).masked_fill(turn_ids < 0, 0)
