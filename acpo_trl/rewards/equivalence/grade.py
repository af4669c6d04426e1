"""The verdict on one answer. Runs in the worker processes."""

import re
import time

from ..declare import Verdict
from .arithmetic import Unbounded, Undefined
from .calculus import is_calculus, parse
from .choices import read_choice
from .compare import is_equal
from .expression import evaluate
from .latex import clean
from .objects import Answer, Listing, Matrix, Ordered, Ratio, Relation, Union, read
from .policy import EXACT, Policy
from .quantities import infinite, is_numeral, spelled
from .sampling import NUM_SAMPLES
from .tokens import Unreadable
from .units import Quantity

MAX_DEPTH = 50
MAX_PROSE_WORDS = 5
_MISSING = frozenset(["None", "nan", "NaN", "null", "N/A", "n/a"])
_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_PROSE_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_BRACKET = re.compile(r"(?P<open>[(\[{])|[)\]}]")


def timed_grade(gold: str, answer: str, policy: Policy) -> tuple[Verdict, float]:
    """Give the verdict of `grade` and the wall-clock seconds it took."""
    started = time.monotonic()
    return grade(gold, answer, policy), time.monotonic() - started


def grade(gold: str, answer: str, policy: Policy = EXACT) -> Verdict:
    """Compare an answer with the gold answer, both without their box."""
    gold, answer = clean(gold), clean(answer)
    is_prose = len(_PROSE_WORD.findall(_TEXT.sub("", gold))) > MAX_PROSE_WORDS
    if is_prose or gold in _MISSING or not any(map(str.isalnum, gold)):
        return Verdict(None, "gold is no answer")
    if spelled(gold) == spelled(answer):
        return Verdict(1.0, "identical")
    choice, chosen = read_choice(gold), read_choice(answer)
    if choice and chosen:
        return _verdict(choice.letter == chosen.letter)
    try:
        expected = _read(choice.text if choice and choice.text else gold)
        _check(expected)
    except (Unreadable, Undefined, RecursionError) as error:
        return Verdict(None, f"unreadable gold: {error}")
    if not answer:
        return Verdict(0.0, "no answer")
    try:
        return _verdict(is_equal(expected, _read(answer), policy))
    except Unbounded as error:
        return Verdict(0.0, f"too large: {error}")
    except (Unreadable, Undefined, RecursionError) as error:
        return Verdict(0.0, f"unreadable answer: {error}")


def _verdict(is_right: bool) -> Verdict:
    return Verdict(1.0, "equal") if is_right else Verdict(0.0, "different")


def _read(text: str) -> Answer:
    depth = deepest = 0
    for match in _BRACKET.finditer(text):
        depth += 1 if match["open"] else -1
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise Unreadable(f"{deepest} brackets deep")
    return read(text)


def _check(answer: Answer) -> None:
    """Raise Unreadable if a part of the gold answer means nothing to us."""
    match answer:
        case Quantity(number=number):
            _check_number(number)
        case Ratio(parts=texts):
            for text in texts:
                _check_number(text)
        case Relation(members=(_, *items)) | Listing(items=items) | Ordered(items=items):  # a name needs no value
            for item in items:
                _check(item)
        case Union(parts=parts, removed=removed):
            for part in (*parts, *removed):
                _check(part)
        case Matrix(rows=rows):
            for row in rows:
                for entry in row:
                    _check(entry)


def _check_number(text: str) -> None:
    if infinite(text) or is_numeral(text) or spelled(text) == r"\mathbb{R}":
        return
    try:
        for sample in range(NUM_SAMPLES):
            try:
                evaluate(text, sample)
                return
            except Undefined:
                continue
        raise Undefined(text[:80])
    except Unbounded:
        return
    except Unreadable:
        if not is_calculus(text):
            raise
        parse(text)
