"""Benchmarks: draw samples of a model, check them, and say how good it is and how sure that is."""

from .metrics import (
    Interval,
    Paired,
    Vote,
    interval,
    maj_at_k,
    mean_at_k,
    paired,
    pass_at_k,
    problem_maj_at_k,
    problem_mean,
    problem_pass_at_k,
    sign_test,
)

__all__ = [
    "Interval",
    "Paired",
    "Vote",
    "interval",
    "maj_at_k",
    "mean_at_k",
    "paired",
    "pass_at_k",
    "problem_maj_at_k",
    "problem_mean",
    "problem_pass_at_k",
    "sign_test",
]
