"""GiGPO over states that look alike."""

from typing import Any

import torch
from torch import Tensor

from .gigpo import gigpo
from .given import given
from .needs import needs
from .state import NONE, similar_keys
from .table import TurnRewards


@needs("observations")
def gigpo_similar(turns: TurnRewards, *, similarity: float = 0.95, **options: Any) -> Tensor:
    """`gigpo`, with turns of a group counted as from the same state if what was shown before them is similar.

    Args:
        turns: (N, K), with observations.
        similarity: threshold of `similar_keys`, from 0 to 1.
        options: those of `gigpo`.

    Returns:
        As `gigpo`.

    Raises:
        ValueError: no observations, or what `gigpo` refuses.
    """
    size, observations = turns.num_generations, given(turns, "observations")
    keys = torch.full(turns.values.shape, NONE, device=turns.values.device)
    exists = turns.exists
    for start in range(0, len(keys), size):
        rows = slice(start, start + size)
        shown = [
            text for row, k in zip(observations[rows], turns.num_turns[rows].tolist(), strict=True) for text in row[:k]
        ]
        keys[rows][exists[rows]] = torch.tensor(similar_keys(shown, similarity), dtype=torch.long, device=keys.device)
    return gigpo(turns._replace(state_keys=keys), **options)
