"""The number that an expression denotes."""

from functools import lru_cache
from typing import NamedTuple

from .arithmetic import Number, Unbounded, Undefined
from .reader import Reader
from .tokens import Unreadable


class Value(NamedTuple):
    """What an expression denotes."""

    number: Number
    variables: frozenset[str]
    is_real: bool
    """So are all its parts: in the reals the root of -2 has no square."""


@lru_cache(maxsize=10_000)
def evaluate(text: str, sample: int = 0) -> Value:
    """Give the value of an expression.

    Args:
        text: LaTeX or plain maths, as `latex.clean` leaves it.
        sample: which values the variables take.

    Raises:
        Unreadable, Unbounded, Undefined: there is no value, or none that can be computed.
    """
    reader = Reader(text, sample)
    try:
        number = reader.sum()
    except (ZeroDivisionError, ValueError) as error:
        raise Undefined(text[:80]) from error
    except OverflowError as error:
        raise Unbounded(text[:80]) from error
    if reader.peek():
        raise Unreadable(f"unexpected {reader.peek()}")
    return Value(number, frozenset(reader.variables), reader.is_real)
