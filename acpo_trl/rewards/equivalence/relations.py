"""Equations and inequalities: the value that a chain states, and whether two relations say the same."""

import re

from .arithmetic import Undefined, inexact, is_real
from .expression import evaluate
from .objects import Answer, Listing, Matrix, Ordered, Ratio, Relation, Union
from .policy import EXACT
from .quantities import are_same_quantities, is_constant, spelled
from .sampling import quotient
from .tokens import Unreadable
from .units import Quantity, read_quantity

_NAME = re.compile(r"(?:[A-Za-z]|\\[A-Za-z]+(?:\{[^{}]*\})?)'*(?:_\w|_\{[^{}]*\})?(?:\^(?:\{-1\}|'))?(?:\([^()]*\))?")
_FLIPPED = {">": "<", r"\ge": r"\le"}


def is_named(relation: Relation) -> bool:
    """Is it an equation whose left side is a single name, such as x, a_1 or f(x)?"""
    return set(relation.operators) <= {"=", r"\approx"} and bool(_NAME.fullmatch(spelled(relation.texts[0])))


def value_of(relation: Relation) -> Answer | None:
    r"""Give the value that a chain of equations states; None if it states none or is false.

    What follows `\approx` is left out. `x + y = 7` states a value, an equation in one unknown, as `2x = 7`, does not.
    """
    if not set(relation.operators) <= {"=", r"\approx"}:
        return None
    members = relation.members
    if r"\approx" in relation.operators:
        end = relation.operators.index(r"\approx") + 1
        if any(_is_value(member) for member in members[:end]):
            exact, rounded = members[end - 1 : end + 1]
            return value_of(_part(relation, end)) if _are_close(exact, rounded) else None
    values = [member for member in members if _is_value(member)]
    if not values:
        is_stated = len(members) == 1 or (is_named(relation) and not any(map(_is_refuted, members[1:-1], members[2:])))
        return members[-1] if is_stated else None
    if any(_is_in_one_unknown(member) for member in members if member not in values):
        return None
    are_consistent = all(_are_consistent(values[0], value) for value in values[1:])
    return values[-1] if are_consistent else None


def _part(relation: Relation, end: int) -> Relation:
    return Relation(relation.members[:end], relation.texts[:end], relation.operators[: end - 1])


def _are_close(exact: Answer, rounded: Answer) -> bool:
    """Can one number be the other, rounded?"""
    if not (isinstance(exact, Quantity) and isinstance(rounded, Quantity)):
        return False
    if not (is_constant(exact) and is_constant(rounded)):
        return False
    a, b = (inexact(evaluate(quantity.number).number) for quantity in (exact, rounded))
    return abs(a - b) <= max(abs(a), abs(b)) / 20


def are_equivalent(gold: Relation, answer: Relation) -> bool:
    """Are the two sides' differences proportional, so that both relations have the same solutions?

    Raises:
        Unreadable, Unbounded: a side has no value that can be computed.
    """
    (gold_difference, gold_operator), (answer_difference, answer_operator) = _normal(gold), _normal(answer)
    if gold_operator != answer_operator:
        return False
    factor = quotient(gold_difference, answer_difference)
    if factor is None:
        return False
    return gold_operator in ("=", r"\ne") or (is_real(factor) and inexact(factor).real > 0)


def _normal(relation: Relation) -> tuple[str, str]:
    """Give `left - right` and one of the operators = != < <=."""
    if len(relation.texts) != 2:
        raise Unreadable("a chain is no single relation")
    (left, right), operator = relation.texts, relation.operators[0]
    if operator in _FLIPPED:
        left, right, operator = right, left, _FLIPPED[operator]
    return f"({left})-({right})", operator


def _is_value(member: Answer) -> bool:
    match member:
        case Quantity():
            return is_constant(member)
        case Ordered(items=items) | Listing(items=items):
            return not items or any(_is_value(item) for item in items)
        case Ratio(parts=parts):
            return any(is_constant(read_quantity(part)) for part in parts)
        case Matrix() | Union():
            return True
    return False


def _is_in_one_unknown(member: Answer) -> bool:
    """Is it an expression, not a name, with a single variable?"""
    if not isinstance(member, Quantity) or _NAME.fullmatch(spelled(member.number)):
        return False
    try:
        return len(evaluate(member.number).variables) == 1
    except (Unreadable, Undefined):
        return False


def _is_refuted(member: Answer, other: Answer) -> bool:
    """Are these two sides of an equation different functions of the same variables?"""
    if not isinstance(member, Quantity) or not isinstance(other, Quantity):
        return False
    try:
        same_variables = evaluate(member.number).variables == evaluate(other.number).variables
    except (Unreadable, Undefined):
        return False
    return same_variables and not are_same_quantities(member, other, EXACT)


def _are_consistent(a: Answer, b: Answer) -> bool:
    return a == b or (isinstance(a, Quantity) and isinstance(b, Quantity) and are_same_quantities(a, b, EXACT))
