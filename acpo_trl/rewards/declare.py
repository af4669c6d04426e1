"""What a reward says about itself and its verdicts.

A reward is a function, or an object that is called like one, in TRL's form. An object may have two methods more:

- `check_columns(columns)` is called before training with the names of the dataset's columns and raises ValueError if
  the reward could not do its work with them.
- `gold(row)` gives the text of an assistant that deserves the best score for a row of the dataset, or None if the row
  tells none; `acpo-trl rewards check` scores it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

KINDS = ("outcome", "format", "cost", "process")
LEVELS = ("trajectory", "turn")

Reward = TypeVar("Reward", bound=Callable[..., Any])


class Verdict(NamedTuple):
    """A score with its evidence."""

    score: float | None
    """None: not scored, which is not the same as wrong."""
    reason: str


class JudgeError(Exception):
    """The judge failed and tells nothing about the completion; a reward that raises it leaves completions unscored."""


@dataclass(frozen=True)
class Declaration:
    """How training reads the numbers of a reward.

    Raises:
        ValueError: an unknown kind or level.
    """

    kind: str = "outcome"
    """`outcome` (is the result right?), `format`, `cost`, or `process` (are the steps right?)."""
    level: str = "trajectory"
    """`trajectory`: one number for a completion; `turn`: one for each of its turns."""
    weight: float = 1.0
    """Factor of the reward in the sum, unless the configuration sets its own."""

    def __post_init__(self) -> None:
        for option, value, known in (("kind", self.kind, KINDS), ("level", self.level, LEVELS)):
            if value not in known:
                raise ValueError(f"reward {option} {value!r}: no such {option}; expected one of {list(known)}.")


def reward(kind: str = "outcome", level: str = "trajectory", weight: float = 1.0) -> Callable[[Reward], Reward]:
    """Label a reward function, sync or async, or a class of rewards; the function itself stays as it is.

    Example:

    ```python
    @reward(kind="format", weight=0.1)
    def no_shouting(completions, **columns):
        return [float(not completion[-1]["content"].isupper()) for completion in completions]
    ```
    """
    declaration = Declaration(kind, level, weight)

    def label(function: Reward) -> Reward:
        function.declaration = declaration  # type: ignore[attr-defined]
        return function

    return label


def declaration_of(function: Any) -> Declaration:
    """The label of a reward; an outcome of the whole trajectory if it has none."""
    return getattr(function, "declaration", Declaration())
