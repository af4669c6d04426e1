"""What an environment looks like to a rollout.

Two forms. An environment of TRL (`environment_factory=MyEnvironment`) is a class with `reset(**row)` and one public
method, typed and documented, for each tool; the policy calls tools, and the environment judges the turns afterwards
in `_score`. A step environment gets the text of each turn in `step` and answers itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..rollouts.view import TurnView


class TurnScore(NamedTuple):
    """What an environment says about one turn."""

    rewards: dict[str, float | None]
    """By kind (`outcome`, `format`, `cost`, `process`); None is unscored."""
    state_key: str | None = None
    """The state that the turn started from; equal keys are the same state, within one prompt."""


class ToolEnvironment(Protocol):
    """An environment of TRL that judges turns. Every public method except `reset` and `get_reward` is a tool."""

    reward_kinds: tuple[str, ...]
    """The kinds that `_score` gives."""

    # Type checkers take `*args: Any, **row: Any` for any parameters, such as the columns that it needs.
    def reset(self, *args: Any, **row: Any) -> str | None:
        """Begin an episode for a row of the dataset; a text is appended to the prompt's last message."""

    def _score(self, turns: Sequence[TurnView]) -> list[TurnScore]:
        """Judge the episode that has just ended: one score for each turn, also for turns without a call."""


@dataclass
class Step:
    """The answer of a step environment to one turn."""

    observation: str
    """Shown to the policy before its next turn."""
    rewards: dict[str, float | None] = field(default_factory=dict)
    """Of the turn by kind; None is unscored."""
    done: bool = False
    info: dict[str, Any] = field(default_factory=dict)
    """Values that JSON knows."""
    state_key: str | None = None
    """The state that the turn started from."""


class StepEnvironment(Protocol):
    """An environment that reads the text of each turn. Its methods may be coroutines.

    It may have a method `cut_off(reason)`, called if a limit of the rollout ends the episode (`turns` or `tokens`); it
    gives rewards by kind for the last turn, such as the outcome of an episode without answer.
    """

    reward_kinds: tuple[str, ...]

    def reset(self, **row: Any) -> str | None:
        """Begin an episode for a row of the dataset; a text is appended to the prompt."""

    def step(self, action: str) -> Step:
        """Answer one turn."""
