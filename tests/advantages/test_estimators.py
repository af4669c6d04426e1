"""Advantages of turns: the naive reference, published numbers, and what must not matter."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import turns as naive
from turn_tables import as_lists, close, reward_tables, table

from acpo_trl.advantages import combine, local, outcome, process
from acpo_trl.advantages.process import rewards_to_go

ESTIMATORS = {
    "outcome": (outcome, naive.outcome),
    "discounted outcome": (
        lambda turns: outcome(turns, gamma=0.9),
        lambda rewards, size: naive.outcome(rewards, size, gamma=0.9),
    ),
    "process": (process, naive.process),
    "local": (local, lambda rewards, size: naive.local(rewards)),
}
by_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@by_estimator
@settings(max_examples=40, deadline=None)
@given(case=reward_tables, extra=st.integers(0, 2))
def test_estimator_equals_the_naive_one_whatever_the_padding(name, case, extra):
    (rewards, size), (estimate, expected) = case, ESTIMATORS[name]
    assert as_lists(estimate(table(rewards, size, extra)), rewards) == close(expected(rewards, size))


@by_estimator
@settings(max_examples=25, deadline=None)
@given(case=reward_tables, random=st.randoms())
def test_permuting_a_group_permutes_its_advantages(name, case, random):
    (rewards, size), (estimate, _) = case, ESTIMATORS[name]
    order = random.sample(range(size), size) + random.sample(range(size, 2 * size), size)
    before = as_lists(estimate(table(rewards, size)), rewards)
    shuffled = [rewards[i] for i in order]
    assert as_lists(estimate(table(shuffled, size)), shuffled) == close([before[i] for i in order])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-2, 2).map(lambda x: round(x, 3)), min_size=2, max_size=5), st.floats(-3, 3))
def test_shifting_outcomes_changes_no_advantage(rewards, shift):
    one, other = ([[0.0, r + by] for r in rewards] for by in (0.0, shift))
    assert torch.allclose(outcome(table(one)), outcome(table(other)), atol=1e-6)


def test_discounted_returns_are_those_of_the_seven_turn_example():
    turns = table([[0, 0, 0, 0, 0, 0, 1.0]])
    expected = [0.531441, 0.59049, 0.6561, 0.729, 0.81, 0.9, 1.0]
    assert rewards_to_go(turns, 0.9)[0].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([0, 0, 0, 0.0], [0, 0, 0, 0]),
        ([0, 0, 0, -1.0], [-0.857375, -0.9025, -0.95, -1.0]),
        ([0.3, 0.3, 0.3, -0.5], [0.427063, 0.13375, -0.175, -0.5]),
    ],
)
def test_failure_is_discounted_from_the_end_and_not_the_same_for_every_turn(rewards, expected):
    assert rewards_to_go(table([rewards]), 0.95)[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_outcome_of_single_turns_is_grpo():
    rewards = [[1.0], [0.0], [0.0], [1.0], [0.0], [0.0], [0.0], [0.0]]
    expected = [1.619835, -0.539945, -0.539945, 1.619835, -0.539945, -0.539945, -0.539945, -0.539945]
    assert outcome(table(rewards)).flatten().tolist() == pytest.approx(expected, abs=1e-5)


def test_four_kinds_are_combined_with_their_weights_and_a_format_error_stays_on_its_turn():
    tables = {
        "outcome": table([[None, 1.0], [None, None, 0.0], [1.0]]),
        "process": table([[0.2, 0.0], [0.0, 0.1, 0.0], [0.0]]),
        "cost": table([[-1, -1], [-1, -1, -1], [-1.0]]),
        "format": table([[0, 0], [0, -1, 0], [0.0]]),
    }
    of_completions = {kind: outcome(tables[kind])[:, 0].tolist() for kind in ("outcome", "cost")}
    assert of_completions["outcome"] == pytest.approx([0.57725, -1.154501, 0.57725], abs=1e-5)
    assert of_completions["cost"] == pytest.approx([0.0, -0.9999, 0.9999], abs=1e-5)
    returns = [[1.648927, -0.809101, 0.0], [0.358462, 0.419913, -0.809101], [-0.809101, 0.0, 0.0]]
    assert process(tables["process"]).tolist() == close(returns, abs=1e-5)
    advantages, shares, _ = combine(tables, {"outcome": 1.0, "process": 0.5, "cost": 0.05, "format": 0.1})
    expected = [[1.401714, 0.1727, 0.0], [-1.025264, -1.094539, -1.609046], [0.222695, 0.0, 0.0]]
    assert advantages.tolist() == close(expected, abs=1e-5)
    assert sum(shares.values()) == pytest.approx(1.0)
    clean = combine({**tables, "format": table([[0, 0], [0, 0, 0], [0.0]])}, dict.fromkeys(tables, 1.0))[0]
    broken = combine(tables, dict.fromkeys(tables, 1.0))[0]
    assert (broken - clean).tolist() == close([[0, 0, 0], [0, -1, 0], [0, 0, 0]])


@pytest.mark.parametrize("name", ["outcome", "discounted outcome"])
@pytest.mark.parametrize(
    ("rewards", "is_zero"),
    [
        ([[None, 1.0]], True),
        ([[None, 1.0], [1.0]], True),
        ([[None, 1.0], [None]], True),
        ([[], []], True),
        ([[None, 1.0], [0.0]], False),
    ],
    ids=["group of one", "zero spread", "one scored", "no turn", "spread"],
)
def test_outcome_without_comparison_gives_no_advantage(name, rewards, is_zero):
    advantages = ESTIMATORS[name][0](table(rewards))
    assert bool((advantages == 0).all()) is is_zero


@pytest.mark.parametrize(
    "rewards", [[[1.0], [1.0]], [[], []], [[1.0], [None]]], ids=["spread", "no turn", "one scored"]
)
def test_process_without_comparison_gives_no_advantage(rewards):
    assert (process(table(rewards)) == 0).all()


def test_unscored_completion_is_no_failure():
    with_unscored = outcome(table([[1.0], [0.0], [None]]))
    assert with_unscored[2].item() == 0
    assert with_unscored[:2].tolist() == outcome(table([[1.0], [0.0]])).tolist()


def test_turn_without_tokens_still_counts_in_the_exponent():
    values = outcome(table([[None, None, 1.0], [0.0]]), gamma=0.5)
    assert values[0].tolist() == pytest.approx(
        [0.25 * values[0, 2].item(), 0.5 * values[0, 2].item(), values[0, 2].item()]
    )


def test_equal_rewards_give_exactly_nothing_whatever_the_rounding_of_their_mean():
    assert (outcome(table([[0.938]] * 3)) == 0).all()
    assert (process(table([[0.1]] * 7)) == 0).all()
