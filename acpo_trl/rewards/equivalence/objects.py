"""What an answer can be: a quantity, words, a list, a tuple or interval, a matrix, a ratio, a relation, a union."""

import re
from dataclasses import dataclass

from .latex import encloses, split, unwrap
from .tokens import Unreadable
from .units import Quantity, read_quantity


@dataclass(frozen=True)
class Words:
    """Text, a name or a choice letter, in lower case."""

    text: str


@dataclass(frozen=True)
class Listing:
    """Values in any order: a set, or several answers."""

    items: tuple["Answer", ...]
    is_set: bool
    """Written with braces."""


@dataclass(frozen=True)
class Ordered:
    """A point, a vector or an interval."""

    items: tuple["Answer", ...]
    opening: str
    closing: str


@dataclass(frozen=True)
class Ratio:
    """a : b : c, or a time of day."""

    parts: tuple[str, ...]
    unit: frozenset[str]


@dataclass(frozen=True)
class Matrix:
    """Entries by row."""

    rows: tuple[tuple["Answer", ...], ...]


@dataclass(frozen=True)
class Union:
    """Sets, and what is taken out of them."""

    parts: tuple["Answer", ...]
    removed: tuple["Answer", ...]


@dataclass(frozen=True)
class Relation:
    """A chain such as x = 3 + 4 = 7 or 0 < x < 1."""

    members: tuple["Answer", ...]
    texts: tuple[str, ...]
    operators: tuple[str, ...]


Answer = Quantity | Words | Listing | Ordered | Ratio | Matrix | Union | Relation

_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_WORD_CHARACTERS = re.compile(r"[^\W\d_](?:[^\W\d_]|[ '().-])*")
_SEPARATOR = r"[,;]|\\text\{\s*,?\s*(?:and|or)\s*,?\s*\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])"
_OPERATOR = (
    r"[=<>]|\\(?:le|ge|ne|approx|equiv|in|notin|subset|subseteq|mid|nmid|to|rightarrow|Rightarrow|implies|iff|sim|simeq|"
    r"cong|propto|mapsto)(?![A-Za-z])"
)
_MATRIX = re.compile(r"(.*?)\\begin\{([pbB]?matrix|smallmatrix|array)\}(?:\{[^{}]*\})?(.*)\\end\{\2\}", re.DOTALL)
_UNION = r"\\(?:cup|setminus)(?![A-Za-z])"
_POINT_NAME = re.compile(r"^[A-Z]'?\s*(?=\([^()]*[,;])")
_PARTNERS = {"(": (")", "]"), "[": ("]", ")"), r"\{": (r"\}",), r"\langle": (r"\rangle",)}


def read(text: str) -> Answer:
    """Give the object that a cleaned text denotes.

    Raises:
        Unreadable: there is nothing, or a relation lacks a side.
    """
    text = unwrap(text)
    if match := _TEXT.fullmatch(text):
        text = match[1].strip()
        if _WORD_CHARACTERS.fullmatch(text) and not split(text, _SEPARATOR)[1]:
            return _words(text)
    if not text:
        raise Unreadable("empty")
    return (
        _read_listing(text)
        or _read_union_of_relations(text)
        or _read_relation(text)
        or _read_union(text)
        or _read_brackets(text)
        or _read_plus_minus(text)
        or _read_matrix(text)
        or _read_words(text)
        or _read_ratio(text)
        or read_quantity(text)
    )


def _read_listing(text: str) -> Answer | None:
    parts, separators = split(text, _SEPARATOR)
    parts = [part for part in parts if part]
    if not separators:
        return None
    if not parts:
        raise Unreadable("empty")
    head, operators = split(parts[0], _OPERATOR)
    if operators in (["="], [r"\in"]) and not any(split(part, _OPERATOR)[1] for part in parts[1:]):
        parts[0] = head[1]  # x = 1, 2 gives both values one name
    return Listing(_items(parts), False) if len(parts) > 1 else read(parts[0])


def _items(parts: list[str]) -> tuple[Answer, ...]:
    r"""Read each part; 1 \pm 2 among them gives two items."""
    items: list[Answer] = []
    for part in parts:
        item = read(part)
        items += item.items if isinstance(item, Listing) and not item.is_set else [item]
    return tuple(items)


def _read_relation(text: str) -> Answer | None:
    texts, operators = split(text, _OPERATOR)
    if not operators:
        return None
    if not texts[0] and operators == [r"\approx"]:
        return read(texts[1])
    if not all(texts):
        raise Unreadable("a relation lacks a side")
    if operators == [r"\in"]:
        return read(texts[1])
    if operators[-1] in (r"\Rightarrow", r"\implies"):
        return read(texts[-1])
    return Relation(tuple(map(read, texts)), tuple(texts), tuple(operators))


def _read_union_of_relations(text: str) -> Answer | None:
    parts, _ = split(text, _UNION)
    return _read_union(text) if all(split(part, _OPERATOR)[1] for part in parts) else None


def _read_union(text: str) -> Answer | None:
    parts, operators = split(text, _UNION)
    if not operators:
        return None
    removed = operators.index(r"\setminus") + 1 if r"\setminus" in operators else len(parts)
    return Union(tuple(map(read, parts[:removed])), tuple(map(read, parts[removed:])))


def _read_plus_minus(text: str) -> Answer | None:
    if not re.search(r"\\(?:pm|mp)(?![A-Za-z])", text):
        return None
    upper = re.sub(r"\\(pm|mp)(?![A-Za-z])", lambda match: "+" if match[1] == "pm" else "-", text)
    lower = re.sub(r"\\(pm|mp)(?![A-Za-z])", lambda match: "-" if match[1] == "pm" else "+", text)
    return Listing((read(upper), read(lower)), False)


def _read_brackets(text: str) -> Answer | None:
    if text == r"\emptyset":
        return Listing((), True)
    text = _POINT_NAME.sub("", text)
    for opening, closings in _PARTNERS.items():
        for closing in closings:
            if encloses(text, opening, closing):
                return _read_group(opening, text[len(opening) : -len(closing)].strip(), closing)
    return None


def _read_group(opening: str, content: str, closing: str) -> Answer:
    is_set = opening == r"\{"
    if not content and is_set:
        return Listing((), True)
    condition, bars = split(content, r"\\mid(?![A-Za-z])|[:|]") if is_set else ([content], [])
    if len(bars) == 1 and not re.search(r"\d|,", condition[0]):
        return read(condition[1])  # {x | x > 3}
    parts = split(content, "[,;]")[0]
    if is_set:
        return Listing(_items(parts), True)
    return Ordered(tuple(map(read, parts)), opening, closing) if len(parts) > 1 else read(content)


def _read_matrix(text: str) -> Answer | None:
    match = _MATRIX.fullmatch(text)
    if not match:
        return None
    factor, _, content = match.groups()
    if r"\det" in factor:
        return None
    rows = [row.split("&") for row in re.split(r"\\\\(?:\[[^\]]*\])?", content) if row.strip()]
    if factor:
        rows = [[f"({factor})({entry})" for entry in row] for row in rows]
    return Matrix(tuple(tuple(map(read, row)) for row in rows))


def _read_words(text: str) -> Answer | None:
    """Read names and phrases; up to two bare letters are a product."""
    if text == r"\ldots":
        return Words(text)
    plain = _TEXT.sub(r"\1", text)
    if not _WORD_CHARACTERS.fullmatch(plain) or (plain == text and not re.search(r"[^\W\d_]{3}", text)):
        return None
    return _words(plain)


def _words(text: str) -> Words:
    return Words(" ".join(re.sub(r"[().]", " ", text).lower().split()))


def _read_ratio(text: str) -> Answer | None:
    number, _, unit, _ = read_quantity(text)
    parts, colons = split(number, ":")
    return Ratio(tuple(parts), unit) if colons and all(parts) else None
