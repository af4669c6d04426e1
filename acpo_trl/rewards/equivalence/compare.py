"""Are two answers the same mathematical object?

Gold comes first: what it leaves open is forgiven in the answer, a hedge in the answer is not.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from .matching import can_pair_off
from .objects import Answer, Listing, Matrix, Ordered, Ratio, Relation, Words
from .policy import EXACT, Policy
from .quantities import are_same_numbers, are_same_quantities, are_same_units
from .real_sets import are_same_sets, pieces
from .relations import are_equivalent, is_named, value_of
from .units import Quantity

_CLOCK = re.compile(r"\d{1,2}:[0-5]\d(?::[0-5]\d)?")


def is_equal(gold: Answer, answer: Answer, policy: Policy) -> bool:
    """Decide by kind.

    Raises:
        Unreadable, Unbounded: a part has no value that can be computed.
    """
    gold, answer = _single(gold), _single(answer)
    if gold == answer:
        return True
    match gold, answer:
        case (Words(), _) | (_, Words()) if not isinstance(gold, Relation) and not isinstance(answer, Relation):
            return _letters(gold) == _letters(answer) != ""
        case Quantity(), Quantity():
            return are_same_quantities(gold, answer, policy)
        case Ratio(), Ratio():
            return _are_same_ratios(gold, answer, policy)
        case Ratio(parts=(_, _)), Quantity():
            return are_same_quantities(_quotient(gold), answer, policy)
        case Quantity(), Ratio(parts=(_, _)):
            return are_same_quantities(gold, _quotient(answer), policy)
        case Matrix(), Matrix():
            return len(gold.rows) == len(answer.rows) and all(
                map(partial(_are_same_in_order, policy=policy), gold.rows, answer.rows)
            )
        case Relation(), Relation():
            return _are_same_relations(gold, answer, policy)
    return _are_same_collections(gold, answer, policy)


def _are_same_collections(gold: Answer, answer: Answer, policy: Policy) -> bool:
    match gold, answer:
        case Listing(is_set=False), Listing() if policy.ordered_lists:
            return _are_same_in_order(gold.items, answer.items, policy)
        case Listing(), Listing():
            return can_pair_off(gold.items, answer.items, partial(is_equal, policy=policy))
        case Ordered(), Listing(is_set=False) if _is_point(gold):
            return _are_same_in_order(gold.items, answer.items, policy)
        case Listing(is_set=False), Ordered() if _is_point(answer):
            return _are_same_in_order(gold.items, answer.items, policy)
        case Ordered(), Ordered() if len(gold.items) > 2 or _brackets(gold) == _brackets(answer):
            return _are_same_in_order(gold.items, answer.items, policy)
    gold_pieces, answer_pieces = pieces(gold), pieces(answer)
    if gold_pieces is not None and answer_pieces is not None:
        return are_same_sets(gold_pieces, answer_pieces, policy)
    if isinstance(answer, Relation) and not isinstance(gold, Relation):
        value = value_of(answer)
        return value is not None and is_equal(gold, value, policy)
    if isinstance(gold, Relation) and not isinstance(answer, Relation):
        value = value_of(gold) if is_named(gold) else None
        return value is not None and is_equal(value, answer, policy)
    return False


def _are_same_relations(gold: Relation, answer: Relation, policy: Policy) -> bool:
    if is_named(gold) and is_named(answer) and gold.texts[0] == answer.texts[0]:
        gold_value, answer_value = value_of(gold), value_of(answer)
        return gold_value is not None and answer_value is not None and is_equal(gold_value, answer_value, policy)
    gold_pieces, answer_pieces = pieces(gold), pieces(answer)
    if gold_pieces is not None and answer_pieces is not None:
        return are_same_sets(gold_pieces, answer_pieces, policy)
    if len(gold.texts) == len(answer.texts) == 2:
        return are_equivalent(gold, answer)
    return gold.operators == answer.operators and _are_same_in_order(gold.members, answer.members, policy)


def _are_same_in_order(gold: Sequence[Answer], answer: Sequence[Answer], policy: Policy) -> bool:
    return len(gold) == len(answer) and all(map(partial(is_equal, policy=policy), gold, answer))


def _are_same_ratios(gold: Ratio, answer: Ratio, policy: Policy) -> bool:
    """Compare times of day part by part, ratios by proportion."""
    if not are_same_units(gold.unit, answer.unit, policy) or len(gold.parts) != len(answer.parts):
        return False
    if _CLOCK.fullmatch(":".join(gold.parts)):
        return all(map(partial(are_same_numbers, policy=EXACT), gold.parts, answer.parts))
    pairs = zip(gold.parts, answer.parts, strict=True)
    return all(are_same_numbers(f"({a})({answer.parts[0]})", f"({b})({gold.parts[0]})", EXACT) for a, b in pairs)


def _quotient(ratio: Ratio) -> Quantity:
    """Read a : b as a number."""
    a, b = ratio.parts
    return Quantity(f"({a})/({b})", Fraction(1), ratio.unit, False)


def _single(answer: Answer) -> Answer:
    """Give the only item of a list or set of one."""
    while isinstance(answer, Listing) and len(answer.items) == 1:
        answer = answer.items[0]
    return answer


def _is_point(answer: Ordered) -> bool:
    return len(answer.items) > 2 or _brackets(answer) == ("(", ")")


def _brackets(answer: Ordered) -> tuple[str, str]:
    return (answer.opening.replace(r"\langle", "("), answer.closing.replace(r"\rangle", ")"))


def _letters(answer: Answer) -> str:
    """Give the letters of words, or of an expression that consists of bare letters."""
    text = answer.text if isinstance(answer, Words) else answer.number if isinstance(answer, Quantity) else ""
    letters = re.sub(r"[\s'-]", "", text).lower()
    return letters if letters.isalpha() else ""
