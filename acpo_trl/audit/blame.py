"""Blame of steps, and how well it finds the first wrong one."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..credit import CREDIT_RULES, TokenStats
from ..credit.stats import surrogate
from .score import TokenScores

ENTROPY_FLOOR = 1e-3  # as the estimator gtpo


def of_rule(name: str) -> Callable[[TokenScores], Tensor]:
    """What a credit rule multiplies the blame of each token of a failure with."""

    def blame(scores: TokenScores) -> Tensor:
        is_action = torch.ones(1, len(scores.steps), dtype=torch.bool)
        stats = TokenStats(
            scores.log_probs.unsqueeze(0),
            scores.mode_log_probs.unsqueeze(0),
            scores.is_mode.unsqueeze(0),
            scores.entropies.unsqueeze(0),
            is_action,
        )
        return CREDIT_RULES[name](stats, -torch.ones(1, len(scores.steps))).squeeze(0)

    return blame


SIGNALS: dict[str, Callable[[TokenScores], Tensor]] = {
    "uniform": of_rule("uniform"),
    "acpo": of_rule("acpo"),
    "acpo_as_written": of_rule("acpo_as_written"),
    "gtpo (1 / entropy)": lambda scores: 1 / scores.entropies.clamp(min=ENTROPY_FLOOR),
    "delta": lambda scores: surrogate(scores.mode_log_probs),
    "entropy": lambda scores: scores.entropies,
    "surprisal": lambda scores: -scores.log_probs,
}
"""Blame of each token, (S,): what rules give to a failure, then plain signals, of which more counts as more blame."""

POOLS: dict[str, Callable[[Tensor], Tensor]] = {"mean": torch.mean, "sum": torch.sum}


class Verdict(NamedTuple):
    """How well the blame of a solution's steps finds the first wrong one. 1 is perfect, chance is `expected`."""

    top1: float
    """Share of the most blamed place that it has: 1 alone, 1 / n among n equal ones, else 0."""
    auc: float
    """Share of the other steps that are blamed less, equal ones half; 1 - (rank - 1) / (steps - 1)."""
    auc_before: float | None
    """The same among the right steps before it; None if it is the first. What comes behind an error is not clean."""
    rank: float
    """1 for the most blamed; equal ones share their mean rank."""


def pooled(blame: Tensor, steps: Tensor, num_steps: int, pool: str) -> list[float]:
    """Blame of each step from that of its tokens, by `POOLS`, in float64."""
    return [POOLS[pool](blame[steps == step].double()).item() for step in range(num_steps)]


def judge_solution(blame: Sequence[float], first_error: int) -> Verdict:
    """How well blame finds the first wrong step.

    Args:
        blame: of two steps or more.
        first_error: the step.

    Raises:
        ValueError: fewer than two steps: there is nothing to find.
    """
    if len(blame) < 2:
        raise ValueError(f"blame of {len(blame)} steps: there is nothing to find; expected two or more; leave it out.")
    own = blame[first_error]
    more, equal = sum(value > own for value in blame), sum(value == own for value in blame)
    auc = _share_below(own, [value for step, value in enumerate(blame) if step != first_error])
    before = _share_below(own, blame[:first_error]) if first_error else None
    return Verdict(0.0 if more else 1 / equal, auc, before, more + (equal + 1) / 2)


def _share_below(own: float, others: Sequence[float]) -> float:
    return sum(1.0 if value < own else 0.5 if value == own else 0.0 for value in others) / len(others)


def verdicts_of(scores: TokenScores, first_error: int) -> dict[tuple[str, str], Verdict]:
    """Of each signal and pooling, and of the baselines that know nothing of the model.

    Args:
        scores: of the tokens.
        first_error: the step.
    """
    num_steps = int(scores.steps.max()) + 1
    ones = torch.ones(len(scores.steps))
    baselines = {
        ("early steps", "position"): [-float(step) for step in range(num_steps)],
        ("late steps", "position"): [float(step) for step in range(num_steps)],
        ("long steps", "tokens"): pooled(ones, scores.steps, num_steps, "sum"),
        ("nothing", "random"): [0.0] * num_steps,  # all equal: what drawing lots expects
    }
    found = {name: judge_solution(blame, first_error) for name, blame in baselines.items()}
    for name, signal in SIGNALS.items():
        blame = signal(scores)
        for pool in POOLS:
            found[name, pool] = judge_solution(pooled(blame, scores.steps, num_steps, pool), first_error)
    return found
