"""Compare expressions by their values at sample points."""

import contextlib
from collections.abc import Iterator

from . import arithmetic
from .arithmetic import Number, Undefined, is_same
from .expression import Value, evaluate

NUM_SAMPLES = 10
MIN_SAMPLES = 2


def are_equal(gold: str, answer: str, tolerance: float = 0.0) -> bool:
    """Are two expressions the same number, or the same function wherever both are real?

    Args:
        gold: the expression of the gold answer.
        answer: the other one.
        tolerance: by which share of the gold number a number may differ from it; functions may not.

    Raises:
        Unreadable, Unbounded: one of them has no value that can be computed.
    """
    num_real, complex_pairs = 0, []
    for a, b in _values(gold, answer):
        if not a.variables | b.variables:
            is_near = tolerance > 0 and arithmetic.is_close(a.number, b.number, tolerance)
            return is_near or is_same(a.number, b.number)
        if not (a.is_real and b.is_real):
            complex_pairs.append((a.number, b.number))
        elif is_same(a.number, b.number):
            num_real += 1
        else:
            return False
    if num_real >= MIN_SAMPLES:
        return True
    return len(complex_pairs) >= MIN_SAMPLES and all(is_same(a, b) for a, b in complex_pairs)


def quotient(gold: str, answer: str) -> Number | None:
    """Give the constant that `gold / answer` is, or None if it is none.

    Raises:
        Unreadable, Unbounded: one of them has no value that can be computed.
    """
    quotients: list[Number] = []
    for a, b in _values(gold, answer):
        if not a.number and not b.number:
            continue
        if not a.number or not b.number:
            return None
        quotients.append(arithmetic.divide(a.number, b.number))
        if not is_same(quotients[0], quotients[-1]):
            return None
    return quotients[0] if len(quotients) >= MIN_SAMPLES else None


def _values(gold: str, answer: str) -> Iterator[tuple[Value, Value]]:
    """Give both values at each sample where both have one."""
    for sample in range(NUM_SAMPLES):
        with contextlib.suppress(Undefined):
            yield evaluate(gold, sample), evaluate(answer, sample)
