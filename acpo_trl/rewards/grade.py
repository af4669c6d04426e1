"""Is an answer the same mathematical object as the gold answer? Runs in the worker processes."""

import logging

from math_verify import LatexExtractionConfig, parse, verify

from acpo_trl.rewards.declare import Verdict

logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it warns that its own time limits are off


def grade(gold: str, answer: str) -> Verdict:
    """Compare `answer` with `gold`, both without their box."""
    expected = _parse(gold)
    if not expected:
        return Verdict(None, "unreadable gold")
    given = _parse(answer)
    if not given:
        return Verdict(0.0, "unreadable answer" if answer else "no answer")
    is_equal = verify(expected, given, timeout_seconds=None)
    return Verdict(float(is_equal), "equal" if is_equal else "different")


def _parse(text: str) -> list:
    if not text:
        return []
    return parse(rf"\boxed{{{text}}}", [LatexExtractionConfig(boxed_match_priority=0)], parsing_timeout=None)
