"""Intervals, inequalities and unions of them as sets of real numbers."""

import re
from typing import NamedTuple

from . import arithmetic
from .expression import evaluate
from .objects import Answer, Listing, Ordered, Relation, Union
from .quantities import are_same_numbers, infinite, spelled
from .units import Quantity

_VARIABLE = re.compile(r"(?:[A-Za-z]|\\[a-z]+)(?:_\w|_\{\w+\})?")
_FLIPPED = {">": "<", r"\ge": r"\le"}


class Piece(NamedTuple):
    """The numbers from `low` to `high`, both expressions."""

    low: str
    has_low: bool
    high: str
    has_high: bool


_REALS = Piece(r"-\infty", False, r"\infty", False)
_POSITIVE = Piece("0", False, r"\infty", False)
_NAMED = {r"\mathbb{R}": _REALS, r"\mathbb{R}^+": _POSITIVE, r"\mathbb{R}_+": _POSITIVE, r"\mathbb{R}_{>0}": _POSITIVE}


def are_same_sets(gold: list[Piece], answer: list[Piece]) -> bool:
    """Do two lists of pieces agree, in any order?"""
    left = list(answer)
    for piece in gold:
        same = next((other for other in left if _is_same_piece(piece, other)), None)
        if same is None:
            return False
        left.remove(same)
    return not left


def pieces(answer: Answer) -> list[Piece] | None:
    """Give the pieces of an interval, an inequality in one variable or a union; None if it is none of these."""
    match answer:
        case Quantity() if spelled(answer.number) in _NAMED:
            return [_NAMED[spelled(answer.number)]]
        case Ordered(items=(Quantity() as low, Quantity() as high)):
            return [Piece(low.number, answer.opening == "[", high.number, answer.closing == "]")]
        case Listing(items=items, is_set=True) if all(isinstance(item, Quantity) for item in items):
            return [Piece(item.number, True, item.number, True) for item in items if isinstance(item, Quantity)]
        case Listing(items=items) if items and all(isinstance(item, Relation | Ordered) for item in items):
            return _join(items)
        case Union():
            return _without(_join(answer.parts), answer.removed)
        case Relation():
            return _bounds(answer)
    return None


def _join(parts: tuple[Answer, ...]) -> list[Piece] | None:
    found = [pieces(part) for part in parts]
    return None if None in found else [piece for part in found if part for piece in part]


def _without(found: list[Piece] | None, removed: tuple[Answer, ...]) -> list[Piece] | None:
    """Cut the points of `removed` out of the pieces."""
    cuts = _join(removed)
    if found is None or cuts is None or any(cut.low != cut.high for cut in cuts):
        return None
    for cut in cuts:
        found = [part for piece in found for part in _cut(piece, cut.low)]
    return found


def _cut(piece: Piece, point: str) -> list[Piece]:
    if not (_is_below(piece.low, point) and _is_below(point, piece.high)):
        return [piece]
    return [piece._replace(high=point, has_high=False), piece._replace(low=point, has_low=False)]


def _is_below(a: str, b: str) -> bool:
    if infinite(a) or infinite(b):
        return infinite(a) == "-" or infinite(b) == "+"
    values = [arithmetic.inexact(evaluate(text).number).real for text in (a, b)]
    return values[0] < values[1]


def _bounds(relation: Relation) -> list[Piece] | None:
    """Read x < a, a < x <= b and x != a."""
    texts = list(relation.texts)
    operators = list(relation.operators)
    if all(operator in _FLIPPED for operator in operators):
        texts, operators = texts[::-1], [_FLIPPED[operator] for operator in reversed(operators)]
    variables = [index for index, text in enumerate(texts) if _VARIABLE.fullmatch(text)]
    if len(variables) != 1 and len(texts) == 2:
        return None
    if operators == [r"\ne"]:
        return _cut(_REALS, texts[1 - variables[0]])
    if not all(operator in ("<", r"\le") for operator in operators):
        return None
    if len(texts) == 3 and 1 in variables:
        return [Piece(texts[0], operators[0] == r"\le", texts[2], operators[1] == r"\le")]
    if len(texts) != 2:
        return None
    is_closed = operators[0] == r"\le"
    if variables[0] == 0:
        return [Piece(r"-\infty", False, texts[1], is_closed)]
    return [Piece(texts[0], is_closed, r"\infty", False)]


def _is_same_piece(gold: Piece, answer: Piece) -> bool:
    return (
        gold.has_low == answer.has_low
        and gold.has_high == answer.has_high
        and are_same_numbers(gold.low, answer.low)
        and are_same_numbers(gold.high, answer.high)
    )
