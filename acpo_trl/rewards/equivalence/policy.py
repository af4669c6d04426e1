"""What makes an answer equal where fields of use differ: the options of a comparison."""

from dataclasses import dataclass
from typing import Literal

STRICTNESS = ("lenient", "strict")


@dataclass(frozen=True)
class Policy:
    """How answers are compared.

    Raises:
        ValueError: an option has no such value.
    """

    ordered_lists: bool = False
    """Compare lists of values in their order; a gold answer in set braces has none."""
    units: Literal["lenient", "strict"] = "lenient"
    """strict: the unit of the gold answer has to be there. A contradicting one is wrong in any case."""
    percent: Literal["lenient", "strict"] = "lenient"
    r"""lenient: `28\%` may be written `28`; strict: only as `0.28`, or in any other way that denotes 28/100."""
    decimal_tolerance: float = 0.0
    """How far a number may be from the gold number, as a share of it, if one of the two is written as a decimal."""

    def __post_init__(self) -> None:
        choices = (
            ("ordered_lists", self.ordered_lists, (False, True)),
            ("units", self.units, STRICTNESS),
            ("percent", self.percent, STRICTNESS),
        )
        for option, value, known in choices:
            check_choice(option, value, known)
        share = self.decimal_tolerance
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share < 1:
            raise ValueError(
                f"decimal_tolerance {share!r}: is no share of a number; expected a number from 0 to below 1, such as "
                "0.001."
            )


def check_choice(option: str, value: object, known: tuple) -> None:
    """Raise ValueError if an option has none of its values."""
    if value not in known:
        raise ValueError(f"{option} {value!r}: no such rule; expected one of {list(known)}.")


EXACT = Policy()
