"""What an estimator wants to know that is not free, and what it gives back."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor

Estimate = Tensor | tuple[Tensor, Tensor]
"""Advantages, (N, K) or (N, T) of an estimator that needs `tokens`; and, with a critic, what it should have said:
returns in the shape of the values, or (N,) rewards that contributions have to add up to."""

NEEDS = {
    "observations": "texts shown before each turn, in `turns.observations`",
    "beliefs": "log-probabilities of the gold answer before each turn, in `turns.beliefs`",
    "state_values": "a critic's values of turns, in `turns.state_values` and `turns.end_values`",
    "contributions": "a progress estimator's contributions of turns, in `turns.contributions`",
    "tokens": "tokens with their entropies, in `turns.tokens`",
    "token_values": "a critic's values of tokens, in `turns.tokens.values`",
}
F = TypeVar("F", bound=Callable[..., Any])


def needs(*names: str) -> Callable[[F], F]:
    """Mark a turn estimator with what the trainer has to find out for it.

    Args:
        names: of `NEEDS`. An estimator that needs `tokens` gives advantages of tokens, (N, T).

    Raises:
        ValueError: an unknown name.
    """
    for name in names:
        if name not in NEEDS:
            raise ValueError(f"needs {name!r}: nobody can find that out; expected some of {list(NEEDS)}.")

    def mark(estimator: F) -> F:
        estimator.needs = frozenset(names)  # type: ignore[attr-defined]
        return estimator

    return mark


def needs_of(estimator: Any) -> frozenset[str]:
    """What an estimator, or the one that a `functools.partial` calls, was marked with."""
    while not hasattr(estimator, "needs") and hasattr(estimator, "func"):
        estimator = estimator.func
    return getattr(estimator, "needs", frozenset())


def advantages_of(estimate: Estimate) -> Tensor:
    """The advantages of an estimate, with or without targets."""
    return estimate[0] if isinstance(estimate, tuple) else estimate
