"""Does the completion keep to its format? The rewards `format`, `think_answer` and `tool_format`."""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from .declare import Verdict, reward
from .extract import Completion, after_thinking, boxes, last_assistant_text, thinking_tags

# An opening tag counts as an attempt even if no closing tag follows, and a stray closing tag does too.
_ATTEMPT = re.compile(r"<tool_call>(?P<call>.*?)(?:(?P<end></tool_call>)|(?=<tool_call>)|\Z)|</tool_call>", re.DOTALL)
# What leaves nothing to see in a box: spaces, braces, and commands that set fonts, styles or spaces.
_UNSEEN = re.compile(
    r"\\[hv]?(?:space\*?|phantom)\s*\{[^{}]*\}|\\[,:;!> \\]|[{}$~]"
    r"|\\(?:text|math|[mh]box|emph|operatorname|boldsymbol|q?quad|enspace|thinspace|strut|null|displaystyle)[a-z]*\*?"
)
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # fillers and the empty braille pattern


@reward(kind="format")
def format_reward(
    completions: Sequence[Completion], log_extra: Callable[[str, list], None] | None = None, **columns: object
) -> list[float | None]:
    r"""Give 1.0 for each completion whose last assistant message keeps to the answer format, else 0.0.

    The format: behind the thinking there is exactly one `\boxed{...}`, and it is not empty; thinking tags, if there are
    any, open one block and close it.
    """
    return _scores(
        [box_format(last_assistant_text(completion)) for completion in completions], "format_reward", log_extra
    )


def box_format(text: str) -> Verdict:
    """Give the verdict of `format` on a message."""
    opening, closing = thinking_tags(text)
    answer = after_thinking(text)
    if answer is None:
        return Verdict(0.0, "unclosed thinking")
    if opening > 1 or closing > 1:
        return Verdict(0.0, "several thinking blocks")
    found = boxes(answer)
    if len(found) != 1:
        return Verdict(0.0, f"{len(found)} boxes" if found else "no box")
    is_empty = not shows_something(_UNSEEN.sub("", found[0]))
    return Verdict(0.0, "empty box") if is_empty else Verdict(1.0, "well formed")


def shows_something(text: str) -> bool:
    """Has the text a character that is neither a space nor invisible?"""
    return any(unicodedata.category(character)[0] not in "ZCM" and character not in _BLANK for character in text)


@reward(kind="format")
class ThinkAnswerReward:
    """1.0 if the last assistant message is `<think>...</think>` and `<answer>...</answer>` and nothing else, else 0.0.

    Each tag occurs once and as spelt, both blocks have text, and only whitespace surrounds them. Thinking that TRL has
    parsed out of the message (its `reasoning_content` or `thinking`) counts as a closed block in front of the text.

    Args:
        thinking_tag: name of the first tag.
        answer_tag: name of the second tag.
        prompt_opens_thinking: the chat template puts the opening thinking tag into the prompt, so the completion must
            not repeat it.
    """

    __name__ = "think_answer"

    def __init__(
        self, thinking_tag: str = "think", answer_tag: str = "answer", prompt_opens_thinking: bool = False
    ) -> None:
        check_tag("reward 'think_answer', thinking_tag", thinking_tag)
        check_tag("reward 'think_answer', answer_tag", answer_tag)
        if thinking_tag == answer_tag:
            raise ValueError(
                f"reward 'think_answer', answer_tag {answer_tag!r}: is thinking_tag too, so the blocks cannot be told "
                "apart; expected two names; change one of them."
            )
        self.thinking_tag = thinking_tag
        self.answer_tag = answer_tag
        self.prompt_opens_thinking = prompt_opens_thinking

    def __call__(
        self,
        completions: Sequence[Completion],
        log_extra: Callable[[str, list], None] | None = None,
        **columns: object,
    ) -> list[float | None]:
        """Score each completion."""
        return _scores([self.judge(self._text(each)) for each in completions], self.__name__, log_extra)

    def gold(self, row: Mapping[str, object]) -> str:
        """Give a well-formed message."""
        opening = "" if self.prompt_opens_thinking else f"<{self.thinking_tag}>"
        return f"{opening}thoughts</{self.thinking_tag}>\n<{self.answer_tag}>answer</{self.answer_tag}>"

    def judge(self, text: str) -> Verdict:
        """Give the verdict on a message with all its tags."""
        thinking, answer = self.thinking_tag, self.answer_tag
        for tag in (f"<{thinking}>", f"</{thinking}>", f"<{answer}>", f"</{answer}>"):
            if (count := text.count(tag)) != 1:
                return Verdict(0.0, f"{count or 'no'} {tag}")
        blocks = re.fullmatch(rf"\s*<{thinking}>(.*)</{thinking}>\s*<{answer}>(.*)</{answer}>\s*", text, re.DOTALL)
        if blocks is None:
            return Verdict(0.0, "text outside the blocks")
        for tag, content in zip((thinking, answer), blocks.groups(), strict=True):
            if not shows_something(content):
                return Verdict(0.0, f"empty <{tag}>")
        return Verdict(1.0, "well formed")

    def _text(self, completion: Completion) -> str:
        text = last_assistant_text(completion)
        messages = assistant_messages(completion)
        if messages and (thinking := parsed_thinking(messages[-1])):
            return f"<{self.thinking_tag}>{thinking}</{self.thinking_tag}>{text}"
        return f"<{self.thinking_tag}>{text}" if self.prompt_opens_thinking else text


@reward(kind="format")
def tool_format(
    completions: Sequence[Completion], log_extra: Callable[[str, list], None] | None = None, **columns: object
) -> list[float | None]:
    """Give for each completion the share of its turns with tool calls in which every call parses.

    None for a completion that attempts no tool call. `tool_calls_parse` says what a call is.
    """
    return _scores([_tool_verdict(completion) for completion in completions], "tool_format", log_extra)


def _tool_verdict(completion: Completion) -> Verdict:
    verdicts = [tool_calls_parse(message) for message in assistant_messages(completion)]
    num_turns, num_good = len(verdicts) - verdicts.count(None), verdicts.count(True)
    if not num_turns:
        return Verdict(None, "no tool call")
    return Verdict(num_good / num_turns, f"{num_good} of {num_turns} turns parse")


def tool_calls_parse(message: Mapping) -> bool | None:
    """Give whether every tool call of an assistant message parses; None if it attempts none."""
    attempts = tool_call_attempts(message)
    return all(attempts) if attempts else None


def tool_call_attempts(message: Mapping) -> list[bool]:
    """Give for each tool call that an assistant message attempts whether it parses.

    An attempt is an entry of `tool_calls`, or a block in the text behind the thinking that a `<tool_call>` tag opens or
    closes: TRL leaves a message as text if it cannot parse its calls. A call parses if it has a name and its arguments
    are a JSON object, or the text of one.
    """
    calls = [call.get("function") for call in message.get("tool_calls") or ()]
    blocks = _ATTEMPT.finditer(after_thinking(last_assistant_text([message])) or "")
    return [_is_call(call) for call in calls] + [bool(block["end"]) and _is_call(block["call"]) for block in blocks]


def _is_call(call: object) -> bool:
    function = _read_object(call)
    if function is None:
        return False
    name = function.get("name")
    return isinstance(name, str) and bool(name.strip()) and _read_object(function.get("arguments")) is not None


def _read_object(value: object) -> Mapping | None:
    """Give a JSON object, or the one that a text spells; None for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None


def assistant_messages(completion: Completion) -> list[Mapping]:
    """Give the messages of the assistant; a string is one message."""
    if isinstance(completion, str):
        return [{"role": "assistant", "content": completion}]
    return [message for message in completion if message.get("role", "assistant") == "assistant"]


def parsed_thinking(message: Mapping) -> str:
    """Give the thinking that a response template has taken out of a message, or ""."""
    return message.get("reasoning_content") or message.get("thinking") or ""


def check_tag(option: str, tag: object) -> None:
    """Raise TypeError or ValueError for something that cannot be the name of a tag."""
    if not isinstance(tag, str):
        raise TypeError(f"{option} {tag!r}: is a {type(tag).__name__}; expected the name of a tag such as 'answer'.")
    if not re.fullmatch(r"[A-Za-z][\w-]*", tag):
        raise ValueError(
            f"{option} {tag!r}: is no name of a tag; expected a letter, then letters, digits, '_' or '-'; write it "
            "without angle brackets."
        )


def _scores(
    verdicts: Sequence[Verdict], name: str, log_extra: Callable[[str, list], None] | None
) -> list[float | None]:
    if log_extra is not None:
        log_extra(f"{name}_reason", [verdict.reason for verdict in verdicts])
    return [verdict.score for verdict in verdicts]
