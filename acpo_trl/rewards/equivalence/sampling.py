"""Compare expressions by their values at sample points."""

from acpo_trl.rewards.equivalence import arithmetic
from acpo_trl.rewards.equivalence.arithmetic import Number, Undefined, is_same
from acpo_trl.rewards.equivalence.expression import Value, evaluate

NUM_SAMPLES = 10
MIN_SAMPLES = 2


def are_equal(gold: str, answer: str) -> bool:
    """Are two expressions the same number, or the same function wherever both are real?

    Raises:
        Unreadable, Unbounded: one of them has no value that can be computed.
    """
    pairs = _values(gold, answer)
    real = [(a, b) for a, b in pairs if a.is_real and b.is_real]
    compared = real if len(real) >= MIN_SAMPLES else pairs
    is_constant = bool(pairs) and not _variables(pairs[0])
    return len(compared) >= (1 if is_constant else MIN_SAMPLES) and all(
        is_same(a.number, b.number) for a, b in compared
    )


def quotient(gold: str, answer: str) -> Number | None:
    """Give the constant that `gold / answer` is, or None if it is none.

    Raises:
        Unreadable, Unbounded: one of them has no value that can be computed.
    """
    pairs = [(a.number, b.number) for a, b in _values(gold, answer) if a.number or b.number]
    if len(pairs) < MIN_SAMPLES or not all(a and b for a, b in pairs):
        return None
    quotients = [arithmetic.divide(a, b) for a, b in pairs]
    return quotients[0] if all(is_same(quotients[0], other) for other in quotients) else None


def _values(gold: str, answer: str) -> list[tuple[Value, Value]]:
    """Give both values at each sample where both have one; one pair will do if there are no variables."""
    pairs = []
    for sample in range(NUM_SAMPLES):
        try:
            pairs.append((evaluate(gold, sample), evaluate(answer, sample)))
        except Undefined:
            continue
        if not _variables(pairs[-1]):
            break
    return pairs


def _variables(pair: tuple[Value, Value]) -> frozenset[str]:
    return pair[0].variables | pair[1].variables
