"""Answers that would take for ever to compute are refused at once, in the process itself."""

import time

import pytest

from acpo_trl.rewards.equivalence.grade import grade

# Values that must be refused, not computed; sympy/sympy#28112, #24187, #21762, huggingface/Math-Verify#59 and own.
TOWERS = [
    r"10^{(5^{5^{5^{5^{5}}} \cdot \log_{10}(5)} - 4)}",
    r"3^{20^{6}}",
    r"4^{\frac{111111111111111111111111111111111}{2222222222222}}",
    r"5^{5^{5^{5}}} - 5^{5^{5^{5}}} + 5",
    r"e^{e^{e^{e^{e}}}}",
    r"\log(5^{5^{5^{5}}})",
    r"(5^{5^{5^5}}-1, 2)",
    r"\frac{200000!}{100000!}",
    r"((10!)!)!",
    r"\binom{10^9}{5 \cdot 10^8}",
    r"\sin(10^{10^{10}})",
    r"0.1^{10^{9}}",
    r"\sum_{k=1}^{10^9} k",
    r"\sum_{k=1}^{1000}\sum_{j=1}^{1000}\sum_{i=1}^{1000} 1",
    r"\sin^{80}(x)\cos^{80}(y)+\tan^{60}(x+y)",
    r"(x+y-z)^{200}",
    "1e99999999999",
    "9" * 9_900,
    "+".join("1" * 5_000),
    "(" * 3_000 + "5" + ")" * 3_000,
    r"\sqrt{" * 300 + "5" + "}" * 300,
    r"\frac" * 3_000 + "5",
    "5," * 5_000,
]


@pytest.mark.parametrize("answer", TOWERS, ids=lambda answer: answer[:40])
def test_tower_is_refused_at_once(answer):
    start = time.monotonic()
    assert grade("5", answer).score == 0.0
    assert time.monotonic() - start < 2


def test_tower_equals_its_own_spelling_only():
    assert grade("2^{10^{9}}", "2^{10^{9}}").score == 1.0
    assert grade("2^{10^{9}}", "2^{10^{9}}+1").score == 0.0
