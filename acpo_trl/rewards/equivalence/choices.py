"""Answers to multiple-choice questions."""

import re
from typing import NamedTuple

_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_CHOICE = re.compile(
    r"(?i:(?:the\s+)?(?:option|choice|answer)\s*(?:is\s*)?:?\s*)?"
    r"(?:\(?(?P<bare>[A-Ja-j])\)?[.:]?|(?:\((?P<named>[A-J])\)|(?P<listed>[A-J])[.:)])\s*(?P<text>.+))",
    re.DOTALL,
)
_LETTER = re.compile(r"(?<![A-Za-z])[A-J](?![A-Za-z])")


class Choice(NamedTuple):
    """A choice letter, in lower case, and what it stands for if that is given too."""

    letter: str
    text: str


def read_choice(text: str) -> Choice | None:
    """Read `C`, `(C)`, `Option C` or `(C) 12`; `A or B` is no choice."""
    match = _CHOICE.fullmatch(_TEXT.sub(r"\1", text).strip())
    if not match or _LETTER.search(match["text"] or ""):
        return None
    return Choice((match["bare"] or match["named"] or match["listed"]).lower(), match["text"] or "")
