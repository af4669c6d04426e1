"""The cost rewards."""

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trl.rewards import get_repetition_penalty_reward, get_soft_overlong_punishment

from acpo_trl.rewards import OverlongCost, RepetitionCost, TokensCost, ToolCallsCost, TurnsCost

CALL = {"type": "function", "function": {"name": "search", "arguments": {}}}
TOOL = {"role": "tool", "content": "again and again and again and again"}
IDS = st.lists(st.lists(st.integers(0, 3), max_size=12), min_size=1, max_size=4)


def said(text, **fields):
    return {"role": "assistant", "content": text, **fields}


def lengths(*counts):
    return {"completions": [""] * len(counts), "completion_ids": [[0] * count for count in counts]}


def test_overlong_falls_in_a_straight_line_over_the_buffer():
    costs = OverlongCost(max_length=100, buffer=20)(**lengths(0, 79, 80, 81, 85, 90, 99, 100, 101, 500))
    assert costs == [0, 0, 0, -0.05, -0.25, -0.5, -0.95, -1, -1, -1]


def test_overlong_without_buffer_is_a_step_behind_max_length():
    assert OverlongCost(max_length=4, buffer=0)(**lengths(3, 4, 5)) == [0, 0, -1]


@pytest.mark.parametrize(("max_length", "buffer"), [(100, 20), (7, 7), (5, 1), (16_384, 4_096), (3, 0)])
def test_overlong_is_the_soft_punishment_of_trl(max_length, buffer):
    borders = (0, 1, max_length - buffer - 1, max_length - buffer, max_length - buffer + 1, max_length - 1)
    counts = lengths(*(max(count, 0) for count in borders), max_length, max_length + 1, 2 * max_length)
    assert OverlongCost(max_length, buffer)(**counts) == get_soft_overlong_punishment(max_length, buffer)(**counts)


@given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 120))
def test_overlong_is_within_its_range_and_never_rises_with_length(max_length, buffer, length):
    cost = OverlongCost(max_length, min(buffer, max_length))
    [shorter, longer] = cost(**lengths(length, length + 1))
    assert -1 <= longer <= shorter <= 0


@pytest.mark.parametrize(
    ("ngram_size", "ids", "cost"),
    [
        (2, [1, 2, 3, 4], 0.0),
        (2, [5, 5, 5, 5, 5], -0.75),  # 4 bigrams, 1 distinct
        (3, [1, 2, 1, 2, 1, 2], -0.5),  # 4 trigrams, 2 distinct
        (1, [1, 1, 2], -1 / 3),
        (3, [1, 1], 0.0),
        (3, [], 0.0),
    ],
)
def test_repetition_is_minus_the_share_of_repeated_ngrams(ngram_size, ids, cost):
    text = " ".join(map(str, ids))
    assert RepetitionCost(ngram_size)(completions=["unused"], completion_ids=[ids]) == pytest.approx([cost])
    assert RepetitionCost(ngram_size, "words")(completions=[text], completion_ids=[[]]) == pytest.approx([cost])


@given(IDS, st.integers(1, 4))
def test_repetition_of_ids_is_the_penalty_of_trl_and_within_its_range(ids, ngram_size):
    costs = RepetitionCost(ngram_size)(completions=[""] * len(ids), completion_ids=ids)
    assert costs == pytest.approx(get_repetition_penalty_reward(ngram_size)(completion_ids=ids))
    assert all(-1 <= cost <= 0 for cost in costs)


def test_repetition_of_words_reads_all_the_assistant_says_and_nothing_else():
    again = [said("I search Paris", reasoning_content="Where?"), TOOL, said("where?\n I  SEARCH Paris")]
    ids = [[7] * 9]  # 5 of 7 bigrams are new
    assert RepetitionCost(2, "words")(completions=[again], completion_ids=ids) == pytest.approx([4 / 7 - 1])
    assert RepetitionCost(2, "words")(completions=[[TOOL]], completion_ids=ids) == [0.0]


def test_turns_are_assistant_messages():
    conversations = ["text", [said("a")], [said("a"), TOOL, said("b"), TOOL, said("c")], [TOOL], []]
    assert TurnsCost(scale=2)(conversations) == [-0.5, -0.5, -1.5, 0, 0]
    assert TurnsCost(scale=2, free=2)(conversations) == [0, 0, -0.5, 0, 0]


def test_tool_calls_are_counted_where_they_are_parsed_and_where_they_are_text():
    completions = [
        "Paris",
        [said("", tool_calls=[CALL, CALL]), TOOL, said("Paris")],
        [said('<tool_call>{"name": "f", "arguments": {}}</tool_call>'), TOOL, said("<tool_call>{")],
        [{"role": "tool", "content": "<tool_call>{}</tool_call>"}],
    ]
    assert ToolCallsCost(scale=4)(completions) == [0, -0.5, -0.5, 0]
    assert ToolCallsCost(scale=1, free=1)(completions) == [0, -1, -1, 0]


def test_tokens_are_completion_ids():
    assert TokensCost(scale=100)(**lengths(0, 50, 300)) == [0, -0.5, -3]
    assert TokensCost(scale=100, free=100)(**lengths(0, 100, 300)) == [0, 0, -2]


@given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 100))
def test_counted_costs_are_never_positive_and_never_rise_with_the_count(scale, free, count):
    [fewer, more] = TokensCost(scale, free)(**lengths(count, count + 1))
    assert more <= fewer <= 0
    turns = TurnsCost(scale, free)([[said("a")] * count, [said("a")] * (count + 1)])
    calls = ToolCallsCost(scale, free)([[said("", tool_calls=[CALL] * n)] for n in (count, count + 1)])
    assert turns == calls == [fewer, more]


@given(IDS, st.randoms())
def test_costs_do_not_depend_on_the_order_of_the_batch(ids, random):
    order = random.sample(range(len(ids)), len(ids))
    texts = [" ".join(map(str, row)) for row in ids]
    for cost in (RepetitionCost(2), RepetitionCost(2, "words"), OverlongCost(8, 4), TokensCost(3), TurnsCost(1)):
        batch = cost(completions=texts, completion_ids=ids)
        shuffled = cost(completions=[texts[i] for i in order], completion_ids=[ids[i] for i in order])
        assert shuffled == [batch[i] for i in order]


@pytest.mark.parametrize(
    "cost", [RepetitionCost(), OverlongCost(9, 3), TokensCost(5), ToolCallsCost(5), TurnsCost(5, 1)]
)
def test_the_gold_text_costs_nothing_also_after_pickling(cost):
    copy = pickle.loads(pickle.dumps(cost))
    [value] = copy(completions=[[said(copy.gold({}))]], completion_ids=[[]])
    assert value == 0 and math.copysign(1, value) == 1
    assert copy.__name__ == cost.__name__


def test_turns_have_no_gold_text_if_the_first_turn_costs_something():
    assert TurnsCost(scale=5).gold({}) is None


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RepetitionCost(0), ValueError, "'repetition', ngram_size 0: is too small"),
        (lambda: RepetitionCost(unit="letters"), ValueError, r"expected one of \['ids', 'words'\]"),
        (lambda: OverlongCost("1024", 256), TypeError, "'overlong', max_length '1024': is a str"),
        (lambda: OverlongCost(0, 0), ValueError, "max_length 0: is too small"),
        (lambda: OverlongCost(10, -1), ValueError, "buffer -1: is too small"),
        (lambda: OverlongCost(10, 11), ValueError, "buffer 11: is longer than max_length 10"),
        (lambda: TokensCost(0), ValueError, "'tokens', scale 0: is too small"),
        (lambda: TurnsCost(True), TypeError, "'turns', scale True: is a bool"),
        (lambda: ToolCallsCost(5, -1), ValueError, "'tool_calls', free -1: is too small"),
        (lambda: ToolCallsCost(1.5), TypeError, "expected a whole number of at least 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
