"""Integrals, limits, derivatives, infinite sums and determinants: math-verify does the algebra."""

import logging
import re

from .tokens import Unreadable

_CALCULUS = re.compile(r"\\(?:int|iint|oint|lim|sum|prod|partial|det)(?![A-Za-z])|\\frac\{d|\{vmatrix\}")


def is_calculus(text: str) -> bool:
    """Is there something in the expression that has no elementary evaluation?"""
    return bool(_CALCULUS.search(text))


def are_equal_by_algebra(gold: str, answer: str) -> bool:
    """Are two expressions equal to math-verify?

    Raises:
        Unreadable: it cannot parse one of them.
    """
    from math_verify import verify  # imports sympy, which most answers do not need

    return verify(parse(gold), parse(answer), timeout_seconds=None)


def parse(text: str) -> list:
    """Give math-verify's reading of an expression.

    Raises:
        Unreadable: it has none.
    """
    from math_verify import LatexExtractionConfig
    from math_verify import parse as parse_by_algebra

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it warns that its own time limits are off
    boxed = [LatexExtractionConfig(boxed_match_priority=0)]
    parsed = parse_by_algebra(rf"\boxed{{{text}}}", boxed, fallback_mode="no_fallback", parsing_timeout=None)
    if not parsed:
        raise Unreadable(text[:80])
    return parsed
