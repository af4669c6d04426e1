"""Intervals, inequalities and unions of them as sets of real numbers."""

import re
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from . import arithmetic
from .expression import evaluate
from .matching import can_pair_off
from .objects import Answer, Listing, Ordered, Relation, Union
from .policy import Policy
from .quantities import are_same_quantities, infinite, spelled
from .units import Quantity

_VARIABLE = re.compile(r"(?:[A-Za-z]|\\[a-z]+)(?:_\w|_\{\w+\})?")
_FLIPPED = {">": "<", r"\ge": r"\le"}


class Piece(NamedTuple):
    """The numbers from `low` to `high`."""

    low: Quantity
    has_low: bool
    high: Quantity
    has_high: bool


_LOWEST, _ZERO, _HIGHEST = (Quantity(text, Fraction(1), frozenset(), False) for text in (r"-\infty", "0", r"\infty"))
_REALS = Piece(_LOWEST, False, _HIGHEST, False)
_POSITIVE = Piece(_ZERO, False, _HIGHEST, False)
_NAMED = {r"\mathbb{R}": _REALS, r"\mathbb{R}^+": _POSITIVE, r"\mathbb{R}_+": _POSITIVE, r"\mathbb{R}_{>0}": _POSITIVE}


def are_same_sets(gold: list[Piece], answer: list[Piece], policy: Policy) -> bool:
    """Do two lists of pieces agree, in any order?"""
    return can_pair_off(gold, answer, partial(_is_same_piece, policy=policy))


def pieces(answer: Answer) -> list[Piece] | None:
    """Give the pieces of an interval, an inequality in one variable or a union; None if it is none of these."""
    match answer:
        case Quantity() if spelled(answer.number) in _NAMED:
            return [_NAMED[spelled(answer.number)]]
        case Ordered(items=(Quantity() as low, Quantity() as high)):
            return [Piece(low, answer.opening == "[", high, answer.closing == "]")]
        case Listing(items=items, is_set=True) if all(isinstance(item, Quantity) for item in items):
            return [Piece(item, True, item, True) for item in items if isinstance(item, Quantity)]
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


def _cut(piece: Piece, point: Quantity) -> list[Piece]:
    if not (_is_below(piece.low, point) and _is_below(point, piece.high)):
        return [piece]
    return [piece._replace(high=point, has_high=False), piece._replace(low=point, has_low=False)]


def _is_below(a: Quantity, b: Quantity) -> bool:
    if infinite(a.number) or infinite(b.number):
        return infinite(a.number) == "-" or infinite(b.number) == "+"
    values = [arithmetic.inexact(evaluate(bound.number).number).real for bound in (a, b)]
    return values[0] < values[1]


def _bounds(relation: Relation) -> list[Piece] | None:
    """Read x < a, a < x <= b and x != a."""
    members = [member for member in relation.members if isinstance(member, Quantity)]
    if len(members) != len(relation.members):
        return None
    operators = list(relation.operators)
    if all(operator in _FLIPPED for operator in operators):
        members, operators = members[::-1], [_FLIPPED[operator] for operator in reversed(operators)]
    variables = [index for index, member in enumerate(members) if _VARIABLE.fullmatch(member.number)]
    if len(variables) != 1 and len(members) == 2:
        return None
    if operators == [r"\ne"]:
        return _cut(_REALS, members[1 - variables[0]])
    if not all(operator in ("<", r"\le") for operator in operators):
        return None
    if len(members) == 3 and 1 in variables:
        return [Piece(members[0], operators[0] == r"\le", members[2], operators[1] == r"\le")]
    if len(members) != 2:
        return None
    is_closed = operators[0] == r"\le"
    if variables[0] == 0:
        return [Piece(_LOWEST, False, members[1], is_closed)]
    return [Piece(members[0], is_closed, _HIGHEST, False)]


def _is_same_piece(gold: Piece, answer: Piece, policy: Policy) -> bool:
    return (
        gold.has_low == answer.has_low
        and gold.has_high == answer.has_high
        and are_same_quantities(gold.low, answer.low, policy)
        and are_same_quantities(gold.high, answer.high, policy)
    )
