"""Environments with the interface of Gymnasium, for policies that write text."""

from collections.abc import Callable
from typing import Any

from .base import Step

KINDS = ("process", "outcome", "cost")


class GymEnvironment:
    """A step environment around an object with Gymnasium's `reset` and `step`; Gymnasium itself is not needed.

    Its reward goes to one kind. An action that cannot be read is told so, takes no step in the environment, and has the
    format reward -1.0. The state key is the text of the observation that the turn started from.

    Args:
        make: gives the object: `reset(seed=...)` gives observation and info, `step(action)` gives observation, reward,
            terminated, truncated and info.
        to_text: the text of an observation.
        to_action: the action that a text stands for; raises ValueError for a text that stands for none.
        kind: of the environment's reward: `process` for rewards of steps, `outcome` for one at the end, or `cost`.

    Raises:
        ValueError: another kind.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        to_text: Callable[[Any], str] = str,
        to_action: Callable[[str], Any] = str.strip,
        kind: str = "process",
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind {kind!r}: no kind of the environment's reward; expected one of {list(KINDS)}.")
        self._environment = make()
        self._to_text = to_text
        self._to_action = to_action
        self._kind = kind
        self.reward_kinds = (kind, "format")

    def reset(self, seed: int | None = None, **row: Any) -> str:
        """Begin an episode, with the row's `seed` if it has one; its first observation is appended to the prompt."""
        observation, _ = self._environment.reset(seed=seed)
        self._text = self._to_text(observation)
        return self._text

    def step(self, action: str) -> Step:
        """Take the step that the action stands for."""
        state_key = self._text
        try:
            choice = self._to_action(action)
        except ValueError as error:
            rewards = {self._kind: None, "format": -1.0}
            return Step(f"Nothing was done: {error}", rewards, state_key=state_key)
        observation, reward, terminated, truncated, _ = self._environment.step(choice)
        self._text = self._to_text(observation)
        rewards = {self._kind: float(reward), "format": 0.0}
        info = {"terminated": bool(terminated), "truncated": bool(truncated)}
        return Step(self._text, rewards, bool(terminated or truncated), info, state_key)
