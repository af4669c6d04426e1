"""Kinds of rewards, each with its own way to the turns, kept apart until the sum."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from .outcome import outcome
from .process import local, process
from .table import TurnRewards

Estimator = Callable[[TurnRewards], Tensor]

KIND_ESTIMATORS: dict[str, Estimator] = {"outcome": outcome, "process": process, "cost": outcome, "format": local}


def combine(
    tables: Mapping[str, TurnRewards],
    weights: Mapping[str, float],
    estimators: Mapping[str, Estimator] = KIND_ESTIMATORS,
) -> tuple[Tensor, dict[str, float]]:
    """Add up the advantages that each kind gives.

    Args:
        tables: rewards of each kind, (N, K).
        weights: of each kind, applied after its normalisation.
        estimators: of each kind.

    Returns:
        (N, K) advantages, and the share of each kind in the sum of their absolute values (NaN if all are 0).
    """
    parts = {kind: weights[kind] * estimators[kind](turns) for kind, turns in tables.items()}
    sizes = torch.stack([part.abs().sum() for part in parts.values()])
    shares = (sizes / sizes.sum()).tolist()
    return torch.stack(list(parts.values())).sum(dim=0), dict(zip(parts, shares, strict=True))
