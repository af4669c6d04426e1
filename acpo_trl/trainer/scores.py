"""Results of reward functions, checked: one value for each completion, or for each of its turns."""

import math
from collections.abc import Sequence
from typing import Any

Scores = list[float | None]
MAX_SHOWN = 200


class RewardResultError(ValueError):
    """A reward function returned or logged something else than one value for each completion."""


def check_scores(result: Any, size: int, name: str) -> Scores:
    """`result` as a list of `size` numbers or None.

    Raises:
        RewardResultError: it is something else.
    """
    expected = f"expected a list of {size} numbers, or None where it cannot tell, one for each completion."
    if isinstance(result, str | bytes | dict | set | frozenset) or not hasattr(result, "__iter__"):
        raise RewardResultError(f"reward function {name!r} returned {_short(result)}; {expected}")
    scores = list(result)
    if len(scores) != size:
        raise RewardResultError(f"reward function {name!r} returned {len(scores)} rewards; {expected}")
    return [
        None if score is None else _number(score, f"{name!r} returned", row, expected)
        for row, score in enumerate(scores)
    ]


def _number(score: Any, who: str, row: int, expected: str) -> float | None:
    """A score as a float; None for NaN, which TRL too takes for unscored."""
    try:
        if isinstance(score, str | bytes):
            raise TypeError
        number = score.__float__()
    except (AttributeError, TypeError, ValueError, RuntimeError, OverflowError):
        raise RewardResultError(f"reward function {who} {_short(score)} for completion {row}; {expected}") from None
    if math.isinf(number):
        raise RewardResultError(
            f"reward function {who} {number} for completion {row}: its whole group would silently get no advantage; "
            f"{expected}"
        )
    return None if math.isnan(number) else number


def check_turn_scores(result: Any, num_turns: Sequence[int], name: str) -> list[Scores]:
    """`result` as a list for each completion, with a number or None for each of its turns.

    Raises:
        RewardResultError: it is something else; names the completion.
    """
    if not isinstance(result, Sequence) or isinstance(result, str) or len(result) != len(num_turns):
        raise RewardResultError(
            f"reward function {name!r} returned {_short(result)}; expected a list of {len(num_turns)} lists, one for "
            "each completion."
        )
    scores = []
    for row, (turns, expected) in enumerate(zip(result, num_turns, strict=True)):
        if not isinstance(turns, Sequence) or isinstance(turns, str) or len(turns) != expected:
            raise RewardResultError(
                f"reward function {name!r} returned turn rewards {_short(turns)} for completion {row}, which has "
                f"{expected} turns; expected one number for each, or None where it cannot tell."
            )
        scores.append(check_scores(turns, expected, f"{name}, completion {row}"))
    return scores


def _short(value: Any) -> str:
    return f"the {type(value).__name__} {repr(value)[:MAX_SHOWN]}"
