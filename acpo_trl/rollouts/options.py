"""Checks of numbers that people set."""

import math
from numbers import Real


def check_whole(option: str, value: object) -> None:
    """Raise TypeError or ValueError unless the value is a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{option} {value!r}: is a {type(value).__name__}; expected a whole number of at least 1.")
    if value < 1:
        raise ValueError(f"{option} {value!r}: nothing could be done within it; expected more than 0.")


def check_number(option: str, value: object, zero: bool = False) -> None:
    """Raise TypeError or ValueError unless the value is a finite number above 0, or 0 if `zero` allows it."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{option} {value!r}: is a {type(value).__name__}; expected a number.")
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(
            f"{option} {value!r}: is out of range; expected a finite number{', 0 or more' if zero else ' above 0'}."
        )
