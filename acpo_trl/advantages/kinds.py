"""Kinds of rewards: each with its own way to the turns and kept apart until the sum, or mixed before it."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from ..turns import spread_turns
from .needs import Estimate, advantages_of, needs_of
from .outcome import outcome
from .process import local, process
from .table import TurnRewards, standardize, sum_scored

Estimator = Callable[[TurnRewards], Estimate]

KIND_ESTIMATORS: dict[str, Estimator] = {"outcome": outcome, "process": process, "cost": outcome, "format": local}


class Credit(NamedTuple):
    """What the rewards of all kinds come to."""

    advantages: Tensor
    """(N, K) of turns, or (N, T) of tokens if an estimator looked at tokens."""
    shares: dict[str, float]
    """Share of each kind in the sum of absolute advantages; empty if kinds were not kept apart."""
    targets: Tensor | None = None
    """What the critic should have said, if an estimator asked one."""


def combine(
    tables: Mapping[str, TurnRewards],
    weights: Mapping[str, float],
    estimators: Mapping[str, Estimator] = KIND_ESTIMATORS,
) -> Credit:
    """Add up the advantages that each kind gives.

    Args:
        tables: rewards of each kind, (N, K).
        weights: of each kind, applied after its normalisation.
        estimators: of each kind, one of them with a critic at most.

    Returns:
        Advantages and the share of each kind, NaN if all advantages are 0.
    """
    estimates = {kind: estimators[kind](turns) for kind, turns in tables.items()}
    parts = {kind: weights[kind] * advantages_of(estimate) for kind, estimate in estimates.items()}
    tokens = next(iter(tables.values())).tokens
    if tokens is not None and any("tokens" in needs_of(estimators[kind]) for kind in parts):
        of_turns = [kind for kind in parts if "tokens" not in needs_of(estimators[kind])]
        parts |= {kind: spread_turns(parts[kind], tokens.turn_ids) for kind in of_turns}
    sizes = torch.stack([part.abs().sum() for part in parts.values()])
    shares = (sizes / sizes.sum()).tolist()
    targets = [estimate[1] for estimate in estimates.values() if isinstance(estimate, tuple)]
    total = torch.stack(list(parts.values())).sum(dim=0)
    return Credit(total, dict(zip(parts, shares, strict=True)), targets[0] if targets else None)


def mixed(tables: Mapping[str, TurnRewards], weights: Mapping[str, float], estimator: Estimator) -> Credit:
    """Add rewards up first, as if there were no kinds: what `combine` is compared with.

    Returns:
        Advantages of the summed rewards, without shares.
    """
    stacked = torch.stack([weights[kind] * turns.values for kind, turns in tables.items()])
    estimate = estimator(next(iter(tables.values()))._replace(values=sum_scored(stacked, dim=0)))
    return Credit(advantages_of(estimate), {}, estimate[1] if isinstance(estimate, tuple) else None)


def gdpo(tables: Mapping[str, TurnRewards], weights: Mapping[str, float]) -> Credit:
    """Standardize the completion's reward of each kind in its group, add them up, standardize over the batch.

    Returns:
        Advantages (N, K), the same for all turns of a completion, 0 for turns that do not exist and rows that no kind
        scored; no shares.

    Source: GDPO (arXiv:2601.05242), which does it for each reward function.
    """
    one = next(iter(tables.values()))
    parts = [weights[kind] * standardize(turns.totals, turns.num_generations) for kind, turns in tables.items()]
    is_scored = torch.stack([~turns.totals.isnan() for turns in tables.values()]).any(dim=0)
    total = torch.stack(parts).sum(dim=0).masked_fill(~is_scored, torch.nan)
    return Credit(torch.where(one.exists, standardize(total, len(total)).unsqueeze(1), 0), {})
