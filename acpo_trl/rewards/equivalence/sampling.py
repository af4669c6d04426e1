"""Compare expressions by their values at sample points."""

from acpo_trl.rewards.equivalence import arithmetic
from acpo_trl.rewards.equivalence.arithmetic import Number, Undefined, is_real, is_same
from acpo_trl.rewards.equivalence.expression import evaluate

NUM_SAMPLES = 10
MIN_SAMPLES = 2


def are_equal(gold: str, answer: str) -> bool:
    """Are two expressions the same number, or the same function wherever both are real?

    Raises:
        Unreadable, Unbounded: one of them has no value that can be computed.
    """
    pairs, is_constant = _values(gold, answer)
    real = [pair for pair in pairs if is_real(pair[0]) and is_real(pair[1])]
    compared = real if len(real) >= MIN_SAMPLES else pairs
    return len(compared) >= (1 if is_constant else MIN_SAMPLES) and all(is_same(a, b) for a, b in compared)


def quotient(gold: str, answer: str) -> Number | None:
    """Give the constant that `gold / answer` is, or None if it is none.

    Raises:
        Unreadable, Unbounded: one of them has no value that can be computed.
    """
    pairs = [pair for pair in _values(gold, answer)[0] if any(pair)]
    if len(pairs) < MIN_SAMPLES or not all(all(pair) for pair in pairs):
        return None
    quotients = [arithmetic.divide(a, b) for a, b in pairs]
    return quotients[0] if all(is_same(quotients[0], other) for other in quotients) else None


def _values(gold: str, answer: str) -> tuple[list[tuple[Number, Number]], bool]:
    """Give both values at each sample where both have one, and whether there are no variables."""
    pairs = []
    for sample in range(NUM_SAMPLES):
        try:
            (a, a_names), (b, b_names) = evaluate(gold, sample), evaluate(answer, sample)
        except Undefined:
            continue
        pairs.append((a, b))
        if not a_names | b_names:
            return pairs, True
    return pairs, False
