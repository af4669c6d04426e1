"""What did the completion cost? The rewards `repetition`, `overlong`, `turns`, `tokens` and `tool_calls`.

All of them are 0 at best. `completion_ids` are all tokens behind the prompt; in a tool loop these include the results
of the tools.
"""

from collections.abc import Mapping, Sequence

from .declare import reward
from .extract import Completion, last_assistant_text
from .format import assistant_messages, parsed_thinking, tool_call_attempts

UNITS = ("ids", "words")


class Cost:
    """A reward that is 0 at best."""

    def gold(self, row: Mapping[str, object]) -> str | None:
        """Give the empty text: it costs nothing."""
        return ""


@reward(kind="cost")
class RepetitionCost(Cost):
    """Minus the share of n-grams that have occurred before: (distinct n-grams) / (n-grams) - 1, in [-1, 0].

    0 for a completion that is too short for an n-gram.

    Source: Yeo et al., "Demystifying Long Chain-of-Thought Reasoning in LLMs", arXiv:2502.03373, appendix C.2, where
    each token of a repeated n-gram is punished; here, as in Open-R1, the completion is, by the share of them.

    Args:
        ngram_size: units in an n-gram.
        unit: `ids`, the tokens of `completion_ids`, or `words`, what stands between whitespace in the assistant's
            messages, in lower case.
    """

    __name__ = "repetition"

    def __init__(self, ngram_size: int = 3, unit: str = "ids") -> None:
        _check_count("reward 'repetition', ngram_size", ngram_size, at_least=1)
        if unit not in UNITS:
            raise ValueError(f"reward 'repetition', unit {unit!r}: no such unit; expected one of {list(UNITS)}.")
        self.ngram_size = ngram_size
        self.unit = unit

    def __call__(
        self, completions: Sequence[Completion], completion_ids: Sequence[Sequence[int]], **columns: object
    ) -> list[float]:
        """Give the cost of each completion."""
        if self.unit == "ids":
            return [self._cost(ids) for ids in completion_ids]
        return [self._cost(_words(completion)) for completion in completions]

    def _cost(self, units: Sequence) -> float:
        ngrams = list(zip(*(units[start:] for start in range(self.ngram_size)), strict=False))
        return len(set(ngrams)) / len(ngrams) - 1 if ngrams else 0.0


@reward(kind="cost")
class OverlongCost(Cost):
    """0 up to `max_length - buffer` tokens, falling in a straight line to -1 at `max_length`, and -1 beyond.

    Source: DAPO's soft over-long punishment, arXiv:2503.14476, section 3.4, equation 13.

    Args:
        max_length: tokens of `completion_ids` at which the cost is full.
        buffer: over how many tokens it falls; 0 makes a step behind `max_length`.
    """

    __name__ = "overlong"

    def __init__(self, max_length: int, buffer: int) -> None:
        _check_count("reward 'overlong', max_length", max_length, at_least=1)
        _check_count("reward 'overlong', buffer", buffer, at_least=0)
        if buffer > max_length:
            raise ValueError(
                f"reward 'overlong', buffer {buffer!r}: is longer than max_length {max_length!r}, so even an empty "
                "completion would cost something; expected at most max_length; shorten it."
            )
        self.max_length = max_length
        self.buffer = buffer

    def __call__(self, completion_ids: Sequence[Sequence[int]], **columns: object) -> list[float]:
        """Give the cost of each completion."""
        return [self._cost(len(ids)) for ids in completion_ids]

    def _cost(self, length: int) -> float:
        if length > self.max_length:
            return -1.0
        free = self.max_length - self.buffer
        return (free - length) / self.buffer if length > free else 0.0


class CountCost(Cost):
    """-max(count - free, 0) / scale for something that is counted.

    Args:
        scale: the count beyond `free` that costs 1.
        free: the count that costs nothing.
    """

    __name__: str

    def __init__(self, scale: int, free: int = 0) -> None:
        _check_count(f"reward {self.__name__!r}, scale", scale, at_least=1)
        _check_count(f"reward {self.__name__!r}, free", free, at_least=0)
        self.scale = scale
        self.free = free

    def cost(self, count: int) -> float:
        """Give the cost of a count."""
        return min(self.free - count, 0) / self.scale


@reward(kind="cost")
class TurnsCost(CountCost):
    """The cost of turns, which are the assistant's messages; a string is one. The options are those of `CountCost`."""

    __name__ = "turns"

    def gold(self, row: Mapping[str, object]) -> str | None:
        """Give the empty text, or None if its one turn costs something."""
        return "" if self.free else None

    def __call__(self, completions: Sequence[Completion], **columns: object) -> list[float]:
        """Give the cost of each completion."""
        return [self.cost(len(assistant_messages(completion))) for completion in completions]


@reward(kind="cost")
class TokensCost(CountCost):
    """The cost of the tokens in `completion_ids`. The options are those of `CountCost`."""

    __name__ = "tokens"

    def __call__(self, completion_ids: Sequence[Sequence[int]], **columns: object) -> list[float]:
        """Give the cost of each completion."""
        return [self.cost(len(ids)) for ids in completion_ids]


@reward(kind="cost")
class ToolCallsCost(CountCost):
    """The cost of tool calls, whether they parse or not. The options are those of `CountCost`."""

    __name__ = "tool_calls"

    def __call__(self, completions: Sequence[Completion], **columns: object) -> list[float]:
        """Give the cost of each completion."""
        counts = [sum(len(tool_call_attempts(message)) for message in assistant_messages(each)) for each in completions]
        return [self.cost(count) for count in counts]


def _words(completion: Completion) -> list[str]:
    texts = [f"{parsed_thinking(each)} {last_assistant_text([each])}" for each in assistant_messages(completion)]
    return " ".join(texts).lower().split()


def _check_count(option: str, value: object, at_least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(
            f"{option} {value!r}: is a {type(value).__name__}; expected a whole number of at least {at_least}."
        )
    if value < at_least:
        raise ValueError(f"{option} {value!r}: is too small; expected a whole number of at least {at_least}.")
