"""The reward of the whole completion, handed to its turns."""

import torch
from torch import Tensor

from .table import TurnRewards, standardize


def outcome(turns: TurnRewards, *, gamma: float = 1.0) -> Tensor:
    """Advantage of the completion within its group, discounted from the last turn backwards.

    A[i, k] = z(R)[i] * gamma ** (K_i - 1 - k), R the sum over the turns. With gamma 1, or one turn, it is GRPO's.

    Args:
        turns: (N, K).
        gamma: discount for each turn.

    Returns:
        (N, K), 0 for turns that do not exist.
    """
    position = torch.arange(turns.values.size(1), device=turns.values.device)
    to_end = (turns.num_turns.unsqueeze(1) - 1 - position).clamp(min=0)
    advantages = standardize(turns.totals, turns.num_generations).unsqueeze(1) * gamma ** to_end.to(turns.values)
    return torch.where(turns.exists, advantages, 0)
