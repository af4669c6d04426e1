"""Kinds of rewards: each with its own way to the turns and kept apart until the sum, or mixed before it."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from .outcome import outcome
from .process import local, process
from .table import TurnRewards, standardize, sum_scored

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


def mixed(
    tables: Mapping[str, TurnRewards], weights: Mapping[str, float], estimator: Estimator
) -> tuple[Tensor, dict[str, float]]:
    """Add rewards up first, as if there were no kinds: what `combine` is compared with.

    Returns:
        (N, K) advantages of the summed rewards, and no shares.
    """
    stacked = torch.stack([weights[kind] * turns.values for kind, turns in tables.items()])
    return estimator(next(iter(tables.values()))._replace(values=sum_scored(stacked, dim=0))), {}


def gdpo(tables: Mapping[str, TurnRewards], weights: Mapping[str, float]) -> tuple[Tensor, dict[str, float]]:
    """Standardize the completion's reward of each kind in its group, add them up, standardize over the batch.

    Returns:
        (N, K) advantages, the same for all turns of a completion, 0 for turns that do not exist and rows that no kind
        scored; and no shares.

    Source: GDPO (arXiv:2601.05242), which does it for each reward function.
    """
    one = next(iter(tables.values()))
    parts = [weights[kind] * standardize(turns.totals, turns.num_generations) for kind, turns in tables.items()]
    is_scored = torch.stack([~turns.totals.isnan() for turns in tables.values()]).any(dim=0)
    total = torch.stack(parts).sum(dim=0).masked_fill(~is_scored, torch.nan)
    return torch.where(one.exists, standardize(total, len(total)).unsqueeze(1), 0), {}
