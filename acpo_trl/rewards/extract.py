"""Which part of a completion is the answer."""

import re
from collections.abc import Mapping, Sequence
from numbers import Number

Completion = str | Sequence[Mapping]

_THINK = r"(?:think|thinking|thought|reasoning)"
_THINK_OPEN = re.compile(rf"<{_THINK}>", re.IGNORECASE)
_THINK_CLOSE = re.compile(rf"</{_THINK}>", re.IGNORECASE)
# `\{` and `\}` are printed braces; a box opens at the brace behind its command.
_BRACES = re.compile(r"(?P<box>\\(?:boxed|fbox)\s*\{)|\\.|(?P<brace>[{}])", re.DOTALL)
_NESTED_BOX = re.compile(r"\\(?:boxed|fbox)\b\s*")


def last_assistant_text(completion: Completion) -> str:
    """Give the text of the last assistant message, or the completion itself if it is a string.

    A message without text (a mere tool call) gives "": what a tool said is not the model's answer.
    """
    if isinstance(completion, str):
        return completion
    spoken = [message for message in completion if message.get("role", "assistant") == "assistant"]
    content = spoken[-1].get("content") if spoken else None
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or [] if isinstance(part, Mapping))


def after_thinking(text: str) -> str | None:
    """Give the text behind the last closing thinking tag; None if a thinking block is still open at the end."""
    closed = list(_THINK_CLOSE.finditer(text))
    rest = text[closed[-1].end() :] if closed else text
    return None if _THINK_OPEN.search(rest) else rest


def thinking_tags(text: str) -> tuple[int, int]:
    """Give the number of opening and of closing thinking tags."""
    return len(_THINK_OPEN.findall(text)), len(_THINK_CLOSE.findall(text))


def boxes(text: str) -> list[str]:
    r"""Give the contents of all outermost `\boxed{...}` and `\fbox{...}` whose braces close, in order of their end."""
    closed: list[tuple[int, int, int]] = []  # where a box and its content start, and where its content ends
    opened: list[tuple[int, int] | None] = []  # for each open brace: where its box and its content start, if it is one
    for match in _BRACES.finditer(text):
        if match["box"]:
            opened.append((match.start(), match.end()))
        elif match["brace"] == "{":
            opened.append(None)
        elif match["brace"] and opened and (box := opened.pop()):
            start, content = box
            while closed and closed[-1][0] > start:
                closed.pop()
            closed.append((start, content, match.start()))
    return [_NESTED_BOX.sub("", text[content:end]).strip() for _, content, end in closed]


def last_box(text: str) -> str | None:
    """Give the content of the last box that closes, or None if there is none."""
    found = boxes(text)
    return found[-1] if found else None


# What announces the answer of a message without box, at the start of a line or sentence. No character that may follow
# a start begins another one, so that a long run of marks is read once.
_ANNOUNCEMENT = re.compile(
    r"(?:(?:^|[.!?][ \t]|\b(?:so|thus|hence|therefore),?[ \t])[ \t*_#>]*|>[ \t][ \t*_#]*)"
    r"(?:####|A:|(?:(?:the|my|our)[ \t]+)?(?:final[ \t]+|correct[ \t]+)?answer\b(?:[ \t]+is\b)?)[ \t*_:]*|<answer>",
    re.IGNORECASE | re.MULTILINE,
)
_DISPLAY = re.compile(r"\\\[(.+?)\\\]|\$\$(.+?)\$\$", re.DOTALL)
_SENTENCE_END = re.compile(r"\.\s+(?=[A-Z])|\n")


def final_answer(text: str, require_box: bool, require_thinking: bool, several_boxes: str = "last") -> str:
    """Give the answer that counts, or "" if the message has none.

    Args:
        text: the message.
        require_box: an answer without box does not count.
        require_thinking: a message without closing thinking tag has no answer.
        several_boxes: `last`: the last box counts; `none`: there is no answer if boxes differ in more than spaces.
    """
    answer = after_thinking(text)
    if answer is None or (require_thinking and not thinking_tags(text)[1]):
        return ""
    found = boxes(answer)
    if several_boxes == "none" and len({"".join(box.split()) for box in found}) > 1:
        return ""
    if found or require_box:
        return found[-1] if found else ""
    return announced_answer(answer)


def announced_answer(text: str) -> str:
    """Give what the last announcement such as `Answer: 4` or `The answer is 4.` announces, or ""."""
    found = list(_ANNOUNCEMENT.finditer(text))
    if not found:
        return ""
    rest = text[found[-1].end() :].lstrip()
    display = _DISPLAY.match(rest)
    return (display[1] or display[2] if display else _SENTENCE_END.split(rest, maxsplit=1)[0]).strip()


def gold_answer(gold: object) -> str:
    """Give the answer in a cell of the gold column: its last box, what follows `####`, or all of it.

    "" for a cell that is empty or neither text nor a number: what a list or a mapping asks for is not known.
    """
    text = str(gold).strip() if isinstance(gold, str | Number) else ""
    box = last_box(text)
    if box is not None:
        return box
    return text.rpartition("####")[2].strip()
