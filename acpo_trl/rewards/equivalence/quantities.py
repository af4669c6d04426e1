"""Are two quantities the same?"""

import re
from fractions import Fraction

from .arithmetic import Undefined
from .calculus import are_equal_by_algebra, is_calculus
from .expression import evaluate
from .policy import Policy
from .sampling import are_equal
from .tokens import Unreadable
from .units import Quantity, contradict

_INFINITE = re.compile(r"\+?(-?)\\infty")
_NUMERAL = re.compile(r"[({]*(?=[A-Fa-f]*\d|[A-Fa-f]+\)?_\{?16)([0-9A-Fa-f]+)[)}]*_\{?(?:\\text\{)?(\w+)\}*")
# With a decimal point, perhaps times a power of ten.
_DECIMAL = re.compile(r"[+-]?(?:\d+\.\d+|\.\d+)(?:[eE][+-]?\d+|(?:\\times|\\cdot|\*)10\^\{?-?\d+\}?)?")
_RADIANS = re.compile(r"\\pi|\\arc")
_BASES = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9"}


def are_same_quantities(gold: Quantity, answer: Quantity, policy: Policy) -> bool:
    """Compare number and unit.

    Raises:
        Unreadable, Unbounded: a number has no value that can be computed.
    """
    if _are_same_angles(gold, answer, policy):
        return True
    if not are_same_units(gold.unit, answer.unit, policy):
        return False
    factors = {answer.multiple / gold.multiple}
    if policy.percent == "lenient" and _may_lack_percent(gold, answer):
        factors.add(Fraction(1))
    return any(are_same_numbers(gold.number, answer.number, policy, factor) for factor in factors)


def _are_same_angles(gold: Quantity, answer: Quantity, policy: Policy) -> bool:
    """Is one of the two in degrees and the other, without unit, in radians? 60 degrees are pi/3."""
    if gold.unit == {"degree"} and not answer.unit and _RADIANS.search(answer.number):
        return are_same_numbers(rf"({gold.number})\pi/180", answer.number, policy)
    if answer.unit == {"degree"} and not gold.unit and _RADIANS.search(gold.number):
        return are_same_numbers(gold.number, rf"({answer.number})\pi/180", policy)
    return False


def are_same_units(gold: frozenset[str], answer: frozenset[str], policy: Policy) -> bool:
    """Do two units agree? A lenient policy forgives a missing one, a strict one only if the gold answer lacks it."""
    return not contradict(gold, answer) and (policy.units == "lenient" or gold <= answer)


def _may_lack_percent(gold: Quantity, answer: Quantity) -> bool:
    """May one of the two have left out the percent sign of the other? 25 may be 25 %, but 0.25 is not 0.25 %."""
    return gold.is_percent > answer.is_percent or (
        answer.is_percent > gold.is_percent and _is_at_least_one(gold.number)
    )


def are_same_numbers(gold: str, answer: str, policy: Policy, factor: Fraction = Fraction(1)) -> bool:
    """Is gold = answer * factor?"""
    is_decimal = _DECIMAL.fullmatch(spelled(gold)) or _DECIMAL.fullmatch(spelled(answer))
    if factor != 1:
        answer = rf"({answer})\cdot({factor})"
    if spelled(gold) == spelled(answer):
        return True
    if infinite(gold) or infinite(answer):
        return infinite(gold) == infinite(answer)
    if is_numeral(gold) or is_numeral(answer):
        return _are_same_numerals(spelled(gold), spelled(answer))
    try:
        return are_equal(gold, answer, policy.decimal_tolerance if is_decimal else 0.0)
    except Unreadable:
        if is_calculus(gold) or is_calculus(answer):
            return are_equal_by_algebra(gold, answer)
        raise


def spelled(text: str) -> str:
    """Give the text without what does not matter in print: spaces, and braces around a single character."""
    return re.sub(r"([_^])\{(\w)\}(?!\w)", r"\1\2", re.sub(r"(?<!\d) | (?!\d)", "", text))


def infinite(text: str) -> str:
    """Give `-` and `+` for the infinities, and nothing for anything else."""
    match = _INFINITE.fullmatch(spelled(text))
    return (match[1] or "+") if match else ""


def is_numeral(text: str) -> bool:
    """Is it digits with a base, such as 1011_2?"""
    return bool(_NUMERAL.fullmatch(spelled(text)))


def is_constant(quantity: Quantity) -> bool:
    """Is it a number, rather than an expression with variables or a name?"""
    try:
        return not evaluate(quantity.number).variables
    except (Unreadable, Undefined):
        return False


def _is_at_least_one(number: str) -> bool:
    try:
        return abs(evaluate(number).number) >= 1
    except (Unreadable, Undefined):
        return False


def _are_same_numerals(gold: str, answer: str) -> bool:
    """Compare digits and base; a base that only one of them states is forgiven."""
    digits = [match[1] if (match := _NUMERAL.fullmatch(text)) else text for text in (gold, answer)]
    bases = {_BASES.get(match[2], match[2]) for text in (gold, answer) if (match := _NUMERAL.fullmatch(text))}
    return digits[0].lower() == digits[1].lower() and len(bases) == 1
