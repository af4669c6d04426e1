"""One episode while it runs: what the policy said, what the environment answered, how many tokens may still come."""

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .chat import Chat
from .codec import without_surrogates
from .episode import Episode, Segment, Turn
from .sampling import Sample
from .stepping import Worker

MAX_SHOWN = 200
STEP_FIELDS = ("observation", "rewards", "done", "info", "state_key")


class Policy(NamedTuple):
    """How turns end and how observations are shown."""

    chat: Chat
    eos_token_ids: Collection[int]
    stop_strings: Sequence[str]
    observation_role: str | None
    environment: str
    """Its name, for errors."""
    reward_kinds: Sequence[str]

    @property
    def tokenizer(self) -> Any:
        return self.chat.tokenizer


@dataclass
class Running:
    """An episode that has begun.

    Raises:
        TypeError: an environment gives something else than a `Step`, or rewards that are no numbers.
        ValueError: it gives infinite rewards, or rewards of a kind that it has not declared, which nobody would read.
    """

    worker: Worker
    prompt_ids: list[int]
    room: int
    """So many tokens may still come, of the policy and of the environment."""
    observation: str | None
    """What the next turn sees, beside all that came before."""
    context: list[int] = field(init=False)
    """The prompt and everything behind it."""
    segments: list[Segment | Turn] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    num_turns: int = 0
    stop_reason: str | None = None
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.context = list(self.prompt_ids)
        if self.room <= 0:
            self.stop_reason = "tokens"

    def fail(self, error: BaseException) -> None:
        """End the episode: nothing is known about it."""
        self.error, self.stop_reason = error, "error"

    def speak(self, sampled: Sample, policy: Policy) -> str:
        """Add what the policy sampled as a turn, and give its text."""
        self.turn = turn_of(sampled, policy)
        self.turn.observation = self.observation
        self._add(self.turn)
        self.num_turns += 1
        text = policy.tokenizer.decode(self.turn.token_ids, skip_special_tokens=True)
        self.messages.append({"role": "assistant", "content": text})
        return text

    def hear(self, step: Any, policy: Policy, max_turns: int) -> None:
        """Take the environment's answer to the turn: judge it, and show the observation if another turn follows."""
        check_step(step, policy.environment)
        self.turn.rewards = rewards_by_kind(step.rewards, "step", policy)
        self.turn.info, self.turn.state_key = dict(step.info), step.state_key
        self.observation = without_surrogates(step.observation)
        if step.done:
            self.stop_reason = "done"
        elif self.num_turns == max_turns:
            self.stop_reason = "turns"
        else:
            self._show(self.observation, policy)

    def _show(self, observation: str, policy: Policy) -> None:
        shown = observation_segments(self.turn, observation, policy)
        if sum(len(segment.token_ids) for segment in shown) >= self.room:  # it leaves no token for a turn: drop it
            self.stop_reason = "tokens"
            return
        for segment in shown:
            self._add(segment)
        self.messages.append({"role": policy.observation_role or "user", "content": observation})

    def _add(self, segment: Segment | Turn) -> None:
        self.segments.append(segment)
        self.context += segment.token_ids
        self.room -= len(segment.token_ids)

    def add_rewards(self, rewards: Any, policy: Policy) -> None:
        """Add the rewards by kind that `cut_off` gave to the last turn."""
        for kind, reward in rewards_by_kind(rewards, "cut_off", policy).items():
            known = self.turn.rewards.get(kind)
            self.turn.rewards[kind] = known if reward is None else reward + (known or 0.0)

    def finish(self) -> Episode:
        """Give the episode. One without turn gets an empty one: reward functions read the first message."""
        return Episode(
            self.prompt_ids,
            self.segments or [Turn([], observation=self.observation)],
            stop_reason=self.stop_reason or "done",
            messages=self.messages or [{"role": "assistant", "content": ""}],
            info={} if self.error is None else {"error": describe(self.error)},
        )


def turn_of(sampled: Sample, policy: Policy) -> Turn:
    """Give a turn that ends with the token that completes a stop string, whole, or as it was sampled."""
    ids, log_probs = sampled
    end = stop_at(ids, policy.stop_strings, policy.tokenizer.decode)
    is_stopped = end is not None or (bool(ids) and ids[-1] in policy.eos_token_ids)
    return Turn(
        ids[:end],
        None if log_probs is None else log_probs[:end],
        finish_reason="stop" if is_stopped else "length",
        is_cut=end is not None and end < len(ids),
    )


def stop_at(ids: Sequence[int], stop_strings: Sequence[str], decode: Callable[..., str]) -> int | None:
    """Give the smallest number of tokens whose text has a stop string; None if there is none.

    Once the text of the first tokens has one, so has the text of more of them: a search by halves decodes few times.
    """

    def has_stopped(count: int) -> bool:
        text = decode(ids[:count], clean_up_tokenization_spaces=False)
        return any(stop in text for stop in stop_strings)

    if not stop_strings or not has_stopped(len(ids)):
        return None
    return bisect_left(range(len(ids)), True, key=has_stopped)


def observation_segments(turn: Turn, observation: str, policy: Policy) -> list[Segment]:
    """Give what the environment puts behind a turn: bare text, or a message in the form of the chat template.

    A turn that no end-of-turn token closes gets one in front of a message, as a token that nobody sampled.
    """
    chat, role = policy.chat, policy.observation_role
    if role is None:
        return [Segment("environment", chat.encode(chat.mark(observation)))]
    glue = []
    if not turn.token_ids or turn.token_ids[-1] not in policy.eos_token_ids:
        glue = [Segment("forced", chat.encode(chat.end_of_turn))]
    return [*glue, Segment(role, chat.encode(chat.suffix(chat.clean([{"role": role, "content": observation}]))))]


def opened(prompt: Any, text: str | None, environment: str) -> Any:
    """Give a prompt, chat or text, with a text of the environment at its end; the given prompt stays as it is.

    Raises:
        TypeError: the environment gave something else than a text.
    """
    if text is None:
        return prompt
    if not isinstance(text, str):
        raise TypeError(
            f"reset of {environment} gave {_shown(text)}: only a text can go to the prompt; expected it or None."
        )
    if isinstance(prompt, str):
        return prompt + text
    content = prompt[-1]["content"]
    more = text if isinstance(content, str) else [{"type": "text", "text": text}]
    return [*prompt[:-1], {**prompt[-1], "content": content + more}]


def check_step(step: Any, environment: str) -> None:
    """Raise TypeError for an answer that is no `Step`."""
    is_step = (
        all(hasattr(step, name) for name in STEP_FIELDS)
        and isinstance(step.observation, str)
        and isinstance(step.info, Mapping)
        and isinstance(step.state_key, str | None)
    )
    if not is_step:
        raise TypeError(
            f"step of {environment} gave {_shown(step)}: no answer to a turn; expected an acpo_trl.envs.Step with a "
            "text as its observation, a dictionary as its info, and a text or None as its state key."
        )


def rewards_by_kind(rewards: Any, method: str, policy: Policy) -> dict[str, float | None]:
    """Give rewards of an environment as training takes them; one that is not a number is unscored.

    Raises:
        TypeError: they are no numbers by kind.
        ValueError: a kind that the environment does not declare, or an infinite reward.
    """
    what = f"{method} of {policy.environment} gave rewards {_shown(rewards)}"
    if not isinstance(rewards, Mapping) or not all(_is_reward(value) for value in rewards.values()):
        raise TypeError(f"{what}: no rewards by kind; expected a dictionary with a number or None for each kind.")
    unknown = [kind for kind in rewards if kind not in policy.reward_kinds]
    if unknown:
        raise ValueError(
            f"{what} of kind {unknown[0]!r}: nobody would read them; expected some of its reward_kinds, "
            f"{list(policy.reward_kinds)}; add the kind there."
        )
    known = {kind: None if value is None or math.isnan(value) else float(value) for kind, value in rewards.items()}
    if any(value is not None and math.isinf(value) for value in known.values()):
        raise ValueError(f"{what}: an infinite one leaves nothing of the others; expected finite numbers or None.")
    return known


def describe(error: BaseException) -> str:
    """Give the type and the text of an exception, also of one that cannot tell its text."""
    try:
        text = without_surrogates(str(error))
    except Exception:
        text = "<no text>"
    return f"{type(error).__name__}: {text}"


def _is_reward(value: Any) -> bool:
    """Whether a value is None or one number, of Python, NumPy or torch."""
    return value is None or (hasattr(value, "__float__") and not getattr(value, "shape", ()))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
