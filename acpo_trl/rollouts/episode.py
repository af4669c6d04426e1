"""What happened in a rollout, as plain data: turns of the policy, and segments of everybody else."""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

STOP_REASONS = ("done", "turns", "tokens", "error")
FINISH_REASONS = ("stop", "length")


@dataclass
class Segment:
    """Tokens that the policy did not produce: a tool result, a user message, text of the template, a prefill."""

    role: str
    token_ids: list[int]


@dataclass
class Turn:
    """One generation call of the policy, also one that gave no token."""

    token_ids: list[int]
    """As sampled, with the token that ended the turn; never decoded and encoded again."""
    log_probs: list[float | None] | None = None
    """In nats, one for each token; None for a token that the sampler did not score."""
    finish_reason: str = "stop"
    """`stop`, or `length` if a limit cut the turn off."""
    is_cut: bool = False
    """Whether tokens sampled behind a stop string were dropped."""
    rewards: dict[str, float | None] = field(default_factory=dict)
    """By kind; None is unscored."""
    state_key: str | None = None
    """What the environment calls the state that the turn starts from; equal keys are the same state."""
    observation: str | None = None
    """What the environment showed before the turn."""
    info: dict[str, Any] = field(default_factory=dict)
    """Values that JSON knows."""


@dataclass
class Episode:
    """A prompt and all that followed.

    Raises:
        ValueError: an unknown stop or finish reason, or log-probabilities that do not fit the tokens of their turn.
    """

    prompt_ids: list[int]
    segments: list[Segment | Turn]
    """In order."""
    stop_reason: str = "done"
    """`done`; `turns` or `tokens`, the limit that ended it; `error`, if the environment failed: nothing is scored."""
    rewards: dict[str, float | None] = field(default_factory=dict)
    """Of the whole episode by kind; None is unscored."""
    messages: list[dict[str, Any]] | None = None
    """The completion as chat messages, one assistant message for each turn; what reward functions get."""
    info: dict[str, Any] = field(default_factory=dict)
    """Values that JSON knows."""

    def __post_init__(self) -> None:
        if self.stop_reason not in STOP_REASONS:
            raise ValueError(f"stop_reason {self.stop_reason!r}: unknown; expected one of {list(STOP_REASONS)}.")
        for index, turn in enumerate(self.turns):
            if turn.finish_reason not in FINISH_REASONS:
                raise ValueError(
                    f"finish_reason {turn.finish_reason!r} of turn {index}: unknown; expected one of "
                    f"{list(FINISH_REASONS)}."
                )
            if turn.log_probs is not None and len(turn.log_probs) != len(turn.token_ids):
                raise ValueError(
                    f"log_probs of turn {index}: length mismatch, {len(turn.log_probs)} for {len(turn.token_ids)} "
                    "tokens; expected one for each, None where the sampler gave none."
                )

    @property
    def turns(self) -> list[Turn]:
        return [segment for segment in self.segments if isinstance(segment, Turn)]

    @property
    def completion_ids(self) -> list[int]:
        """T ids: everything behind the prompt."""
        return list(chain.from_iterable(segment.token_ids for segment in self.segments))

    @property
    def action_mask(self) -> list[int]:
        """T numbers, 1 for tokens that the policy produced."""
        return self._per_token(lambda turn, _: [1] * len(turn.token_ids), 0)

    @property
    def turn_ids(self) -> list[int]:
        """T numbers: which generation call produced the token, from 0; -1 for everything else."""
        return self._per_token(lambda turn, index: [index] * len(turn.token_ids), -1)

    @property
    def log_probs(self) -> list[float] | None:
        """T log-probabilities, NaN where a sampled token has none, 0.0 for everything else; None if no turn has any."""
        if all(turn.log_probs is None for turn in self.turns):
            return None

        def of_turn(turn: Turn, _: int) -> list[float]:
            values = turn.log_probs or [None] * len(turn.token_ids)
            return [float("nan") if value is None else value for value in values]

        return self._per_token(of_turn, 0.0)

    @property
    def is_truncated(self) -> bool:
        """Whether a limit of tokens ended the episode."""
        return self.stop_reason == "tokens" or (bool(self.turns) and self.turns[-1].finish_reason == "length")

    def _per_token(self, of_turn: Any, elsewhere: Any) -> list[Any]:
        values, index = [], 0
        for segment in self.segments:
            if isinstance(segment, Turn):
                values += of_turn(segment, index)
                index += 1
            else:
                values += [elsewhere] * len(segment.token_ids)
        return values


def write_episodes(path: str | Path, episodes: Iterable[Episode]) -> None:
    """Write one JSON object a line; `read_episodes` gives back equal episodes.

    What JSON has no word for comes back as what it was written as: a tuple in `info` as a list, a number as a key of a
    dictionary as a text.
    """
    with open(path, "w", encoding="utf-8") as file:
        for episode in episodes:
            file.write(json.dumps(dataclasses.asdict(episode), ensure_ascii=False) + "\n")


def read_episodes(path: str | Path) -> Iterator[Episode]:
    """Read what `write_episodes` wrote; empty lines count for nothing.

    Raises:
        ValueError: a line is no episode; names the line.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                episode = _episode(**json.loads(line.decode()))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise ValueError(f"{path}, line {number}: is no episode: {error!r}") from error
            yield episode


def _episode(prompt_ids: Any, segments: Any, **fields: Any) -> Episode:
    _check_ids("prompt_ids", prompt_ids)
    return Episode(prompt_ids, [_segment(**segment) for segment in segments], **fields)


def _segment(token_ids: Any, **fields: Any) -> Segment | Turn:
    _check_ids("token_ids", token_ids)
    return Segment(token_ids=token_ids, **fields) if "role" in fields else Turn(token_ids, **fields)


def _check_ids(name: str, ids: Any) -> None:
    """Raise TypeError for something else than a list of whole numbers."""
    if not isinstance(ids, list) or any(type(token) is not int for token in ids):
        raise TypeError(f"{name} {repr(ids)[:80]}: are no ids of tokens; expected a list of whole numbers.")
