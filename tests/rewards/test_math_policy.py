"""The options of the reward `math`: what each of their values decides."""

import pickle
import random

import pytest

from acpo_trl.rewards import MathReward
from acpo_trl.rewards import math as math_module
from acpo_trl.rewards.equivalence.grade import grade
from acpo_trl.rewards.equivalence.policy import Policy


@pytest.mark.parametrize(
    ("message", "last", "none"),
    [
        (r"\boxed{6} or \boxed{7}", 1.0, 0.0),
        (r"\boxed{7}, so again \boxed{7}", 1.0, 1.0),
        (r"\boxed{ 7 } is \boxed{7}", 1.0, 1.0),
        (r"\boxed{7}", 1.0, 1.0),
        (r"\boxed{7} \boxed{}", 0.0, 0.0),
        (r"\boxed{} \boxed{7}", 1.0, 0.0),
        (r"<think>\boxed{6}</think>\boxed{7}", 1.0, 1.0),
        # A second box does not make an announced answer count.
        (r"\boxed{6} \boxed{7} The answer is 7.", 1.0, 0.0),
        ("The answer is 7.", 1.0, 1.0),
    ],
)
def test_boxes_that_differ_are_no_answer_where_several_boxes_is_none(message, last, none):
    assert MathReward(several_boxes="last")([message], solution=["7"]) == [last]
    assert MathReward(several_boxes="none")([message], solution=["7"]) == [none]


@pytest.mark.parametrize(
    ("gold", "answer", "in_any_order", "in_order"),
    [
        ("1, 2, 3", "1.0, 2, 3", 1.0, 1.0),
        ("1, 2, 3", "3, 2, 1", 1.0, 0.0),
        ("1, 2, 3", r"\{3, 2, 1\}", 1.0, 0.0),
        ("1, 2, 3", "1, 2", 0.0, 0.0),
        (r"x=1 \text{ and } y=2", r"y=2 \text{ and } x=1", 1.0, 0.0),
        (r"\pm 3", "3, -3", 1.0, 1.0),
        (r"\pm 3", "-3, 3", 1.0, 0.0),
        # Braces are a set, which has no order; points and unions are not touched.
        (r"\{1, 2, 3\}", "3, 2, 1", 1.0, 1.0),
        ("(1, 2)", "(2, 1)", 0.0, 0.0),
        (r"(0,1)\cup(2,3)", r"(2,3)\cup(0,1)", 1.0, 1.0),
    ],
)
def test_order_of_a_list_counts_where_lists_are_ordered(gold, answer, in_any_order, in_order):
    assert grade(gold, answer).score == in_any_order
    assert grade(gold, answer, Policy(ordered_lists=True)).score == in_order


@pytest.mark.parametrize(
    ("gold", "answer", "lenient", "strict"),
    [
        (r"5\text{ cm}", "5", 1.0, 0.0),
        (r"5\text{ cm}", r"5\text{ centimeters}", 1.0, 1.0),
        (r"5\text{ cm}", r"5\text{ m}", 0.0, 0.0),
        (r"5\text{ cm}", r"5\text{ units}", 1.0, 0.0),
        (r"12\text{ apples}", "12", 1.0, 0.0),
        (r"12\text{ apples}", r"12\text{ red apples}", 1.0, 1.0),
        (r"15\text{ cm}^2", "15", 1.0, 0.0),
        (r"\$5", "5", 1.0, 0.0),
        (r"60^\circ", "60", 1.0, 0.0),
        # An angle without unit is in radians, and that is its unit.
        (r"60^\circ", r"\frac{\pi}{3}", 1.0, 1.0),
        ("3:45 p.m.", "3:45", 1.0, 0.0),
        (r"5\text{ cm}", "10:2", 1.0, 0.0),
        (r"(1\text{ m}, 2\text{ m})", "(1, 2)", 1.0, 0.0),
        (r"(0, 5\text{ cm})", "0 < x < 5", 1.0, 0.0),
        (r"x = 5\text{ cm}", "5", 1.0, 0.0),
        # Quotients are quotients.
        (r"5\text{ m/s}", r"5\text{ meters per second}", 1.0, 1.0),
        (r"5\text{ m/s}", r"5\text{ m}/\text{s}", 1.0, 1.0),
        (r"5\text{ m/s}", r"5\text{ m}\text{ s}^{-1}", 1.0, 1.0),
        (r"5\text{ m/s/s}", r"5\text{ m/s}^2", 1.0, 1.0),
        (r"5\text{ dollars an hour}", r"5\text{ dollars per hour}", 1.0, 1.0),
        (r"5\text{ mph}", r"5\text{ miles/hour}", 1.0, 1.0),
        (r"5\text{ m/s}", "5", 1.0, 0.0),
        (r"5\text{ m/s}", r"5\text{ s/m}", 0.0, 0.0),
        (r"5\text{ m/s}", r"5\text{ m s}", 0.0, 0.0),
        (r"5\text{ mph}", r"5\text{ mile hours}", 0.0, 0.0),
        ("5 km/h", "5 h/km", 0.0, 0.0),
        (r"5\text{ apples per child}", r"5\text{ children per apple}", 0.0, 0.0),
        # What the gold answer leaves open is forgiven by both.
        ("5", r"5\text{ cm}", 1.0, 1.0),
        ("5", "5", 1.0, 1.0),
    ],
)
def test_a_unit_of_the_gold_answer_may_be_missing_only_where_units_are_lenient(gold, answer, lenient, strict):
    assert grade(gold, answer, Policy(units="lenient")).score == lenient
    assert grade(gold, answer, Policy(units="strict")).score == strict


@pytest.mark.parametrize(
    ("gold", "answer", "lenient", "strict"),
    [
        (r"28\%", "28", 1.0, 0.0),
        (r"28\%", "0.28", 1.0, 1.0),
        (r"28\%", r"\frac{28}{100}", 1.0, 1.0),
        (r"28\%", r"28.0\%", 1.0, 1.0),
        (r"28\%", "28 percent", 1.0, 1.0),
        ("28", r"28\%", 1.0, 0.0),
        ("0.28", r"28\%", 1.0, 1.0),
        ("0.28", r"0.28\%", 0.0, 0.0),
        (r"(10\%, 20\%)", "(10, 20)", 1.0, 0.0),
        (r"x > 50\%", "x > 50", 1.0, 0.0),
        (r"x > 50\%", r"x > \frac{1}{2}", 1.0, 1.0),
    ],
)
def test_a_percent_sign_may_be_missing_only_where_percent_is_lenient(gold, answer, lenient, strict):
    assert grade(gold, answer, Policy(percent="lenient")).score == lenient
    assert grade(gold, answer, Policy(percent="strict")).score == strict


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("3.14", "3.15"),
        (r"\pi", "3.14"),
        ("3.14", r"\pi"),
        ("1/3", "0.333"),
        ("0.333", "1/3"),
        ("100", "101.0"),  # the bound belongs to it
        ("-2.5", "-2.51"),
        ("1/3", r"33.3\%"),
        ("x = 0.5", "x = 0.501"),
        ("(0.5, 2)", "(0.501, 2)"),
        ("0.5, 2.5", "2.49, 0.501"),
        ("x < 2.5", r"(-\infty, 2.51)"),
        (r"6.02\times 10^{23}", r"6.022\times 10^{23}"),
        (r"6.02\times 10^{23}", "6.022e23"),
        (r"9.81\text{ m/s}^2", r"9.8\text{ m/s}^2"),
    ],
)
def test_decimal_within_the_tolerance_is_equal(gold, answer):
    assert grade(gold, answer).score == 0.0
    assert grade(gold, answer, Policy(decimal_tolerance=0.01)).score == 1.0


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("3.14", "3.18"),
        ("100", "101.1"),
        ("0", "0.001"),  # a share of nothing
        ("3.14", "-3.14"),
        # Neither is written as a decimal.
        ("1000", "1001"),
        ("100", "101"),
        ("1/3", "333/1000"),
        (r"\sqrt{2}", "99/70"),
        (r"0.\overline{3}", "333/1000"),
        # Hedges.
        ("7.0", "7.0, 7.01"),
        ("7.0", r"7.0 \text{ or } 7.01"),
        ("7.0", r"7.0 \pm 0.01"),
        ("7.0", "6.99 < x < 7.01"),
        ("7.0", "[6.99, 7.01]"),
        ("7.0", r"\{7.0, 7.01\}"),
        ("7.0", "7.01 = 7.0"),
        ("7.0", "x = 7.01 = 7.0"),
        # Expressions with variables, equations, ratios and times of day.
        ("2.5x", "2.501x"),
        ("7.0", r"7.0 + \epsilon"),
        ("7.0", "7.001x"),
        ("2.5x + y = 1", "2.501x + y = 1"),
        ("2.5:1", "2.501:1"),
        ("3:45", "3:45.1"),
        # Other kinds.
        ("1.0", "1.001i"),
        ("7.0", "n"),
        (r"5.0\text{ cm}", r"5.01\text{ m}"),
    ],
)
def test_tolerance_for_decimals_lets_nothing_else_pass(gold, answer):
    assert grade(gold, answer, Policy(decimal_tolerance=0.01)).score == 0.0


@pytest.mark.parametrize(
    ("gold", "answer", "score"),
    [
        # Points, tuples, intervals: brackets and order.
        ("(1,2)", "1<x<2", 1.0),
        ("(1,2)", "1,2", 1.0),
        ("1,2", "(1,2)", 1.0),
        ("(2,1)", "1,2", 0.0),
        ("[1,2]", "1,2", 0.0),
        ("(1,2]", "(1,2)", 0.0),
        # Words: letters, no synonyms.
        ("left-handed", r"\text{Left handed}", 1.0),
        ("increasing", "growing", 0.0),
        ("1", "one", 0.0),
        # Choices: the letter.
        ("C", "Option C", 1.0),
        ("C", "(C) 12", 1.0),
        ("(C) 12", "12", 1.0),
        ("(C) 12", "(B) 12", 0.0),
        ("C", "12", 0.0),
        ("C", "A or C", 0.0),
    ],
)
def test_rules_without_option(gold, answer, score):
    assert grade(gold, answer).score == score


def test_verdict_on_a_list_does_not_depend_on_which_value_finds_its_partner_first():
    tolerance = Policy(decimal_tolerance=0.1)
    # 1.1 is near both gold answers, 0.95 only near the first.
    assert grade("1.0, 1.1", "1.1, 0.95", tolerance).score == 1.0
    assert grade("1.0, 1.1", "0.95, 1.1", tolerance).score == 1.0
    assert grade("1.0, 1.1", "0.95, 0.95", tolerance).score == 0.0
    assert grade(r"5, 5\text{ cm}", r"5\text{ cm}, 5\text{ m}").score == 1.0
    assert grade(r"5, 5\text{ cm}", r"5\text{ m}, 5\text{ m}").score == 0.0


def test_long_list_of_equal_values_is_paired_off_at_once():
    gold, answer = ",".join(["1"] * 400 + ["2"]), ",".join(["2"] + ["1.0"] * 400)
    assert grade(gold, answer).score == 1.0


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("limit_s", 0, r"limit_s 0: .*expected seconds, more than 0"),
        ("limit_s", float("inf"), r"limit_s inf: .*expected seconds"),
        ("limit_s", "5", r"limit_s '5': .*expected seconds"),
        ("require_box", "no", r"require_box 'no': .*expected one of \[False, True\]"),
        ("require_thinking", None, r"require_thinking None: .*expected one of \[False, True\]"),
        ("several_boxes", "first", r"several_boxes 'first': .*expected one of \['last', 'none'\]"),
        ("ordered_lists", "yes", r"ordered_lists 'yes': .*expected one of \[False, True\]"),
        ("units", True, r"units True: .*expected one of \['lenient', 'strict'\]"),
        ("percent", "loose", r"percent 'loose': .*expected one of \['lenient', 'strict'\]"),
        ("decimal_tolerance", -0.1, r"decimal_tolerance -0.1: .*from 0 to below 1"),
        ("decimal_tolerance", 1, r"decimal_tolerance 1: .*from 0 to below 1"),
        ("decimal_tolerance", float("nan"), r"decimal_tolerance nan: .*from 0 to below 1"),
        # What YAML makes of 1e-3.
        ("decimal_tolerance", "1e-3", r"decimal_tolerance '1e-3': .*such as 0.001"),
    ],
)
def test_value_that_an_option_does_not_have_is_refused(option, value, message):
    with pytest.raises(ValueError, match=message):
        MathReward(**{option: value})


def test_options_travel_with_a_pickled_reward():
    reward = pickle.loads(pickle.dumps(MathReward(several_boxes="none", units="strict", decimal_tolerance=0.01)))
    completions = [r"\boxed{5}", r"\boxed{4}\boxed{5\text{ cm}}", r"\boxed{5.01\text{ cm}}"]
    assert reward(completions, solution=[r"5\text{ cm}"] * 3) == [0.0, 0.0, 1.0]


def test_verdict_depends_neither_on_the_order_of_the_batch_nor_on_what_another_policy_found(monkeypatch):
    monkeypatch.setattr(math_module, "_remembered", {})
    pairs = [
        (r"5\text{ cm}", "5"),
        (r"28\%", "28"),
        ("3.14", "3.15"),
        ("1, 2", "2, 1"),
        ("1/2", "0.5"),
        ("1/2", "3 3"),
        (r"\unknown{3}", "4"),
    ]
    expected = {
        MathReward(): [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, None],
        MathReward(units="strict"): [0.0, 1.0, 0.0, 1.0, 1.0, 0.0, None],
        MathReward(percent="strict"): [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, None],
        MathReward(decimal_tolerance=0.01): [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, None],
        MathReward(ordered_lists=True): [1.0, 1.0, 0.0, 0.0, 1.0, 0.0, None],
    }
    shuffle = random.Random(0)
    for _ in range(3):
        for reward in shuffle.sample(list(expected), len(expected)):
            order = shuffle.sample(range(len(pairs)), len(pairs))
            completions = [rf"\boxed{{{pairs[index][1]}}}" for index in order]
            scores = reward(completions, solution=[pairs[index][0] for index in order])
            assert scores == [expected[reward][index] for index in order]


CHANGING_WORDS = """quadrillion|lakh|crores|gross|score|pairs|k|M|kilo|thou|negative|(negative)|doubled|reciprocal
|basis points|zillion|tenfold|millionths|two-thirds|mega|couple|below zero|per thousand"""


@pytest.mark.parametrize("word", [word.strip() for word in CHANGING_WORDS.split("|")])
@pytest.mark.parametrize("units", ["lenient", "strict"])
def test_a_word_that_changes_the_value_is_no_unit(word, units):
    assert grade("5", rf"5\text{{ {word}}}", Policy(units=units)).score == 0.0
    assert grade("5", f"5 {word}", Policy(units=units)).score == 0.0


def test_a_known_multiple_counts_and_an_unclear_one_leaves_the_gold_answer_unread():
    assert grade(r"5\text{ lakh}", "500000").score == grade("5 quadrillion", "5000000000000000").score == 1.0
    assert grade(r"5\text{ per thousand}", "0.005").score == 1.0
    assert grade(r"5\text{ kilos}", r"5\text{ kg}").score == 1.0
    assert grade(r"5\text{ pairs}", "5") == (None, "unreadable gold: 'pairs' changes the value")
    assert grade(r"5\text{ m^x}", r"5\text{ m^x}", Policy(units="strict")).score == 1.0
    assert grade(r"5\text{ m^x}", r"5.0\text{ m^x}", Policy(units="strict")).score == 1.0
