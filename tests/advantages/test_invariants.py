"""What holds for all estimators, whatever the table: who meets whom, what never leaks, what rewards may be shifted by.

Estimators see the completions of all processes; that they do is tested in tests/distributed/test_two_processes.py.
"""

import pytest
import torch
from fact_tables import Completion, Turn, facts, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from acpo_trl.advantages import TURN_ESTIMATORS
from acpo_trl.advantages.needs import advantages_of

DEFAULTS = {name: {} for name in TURN_ESTIMATORS}
CRITICS = ["turn_ppo", "step_ppo", "ppo", "bilevel_gae"]
few = settings(max_examples=40, deadline=None)


def estimates(turns, options=DEFAULTS):
    """Advantages of each estimator in `options`."""
    return {name: advantages_of(TURN_ESTIMATORS[name](turns, **chosen)) for name, chosen in options.items()}


def assert_equal(got, expected, atol=1e-6):
    """Whose names say which estimator differs."""
    for name, advantages in expected.items():
        assert_close(got[name], advantages, rtol=0, atol=atol, msg=lambda text, name=name: f"{name}: {text}")


def scaled(completions, factor):
    return [
        Completion(tuple(t._replace(reward=None if t.reward is None else factor * t.reward) for t in turns), end)
        for turns, end in completions
    ]


def shifted(completions, by):
    """The total of each scored completion and so much more, on its last turn."""
    return [
        Completion((*turns[:-1], turns[-1]._replace(reward=(turns[-1].reward or 0.0) + by)), end)
        if any(turn.reward is not None for turn in turns)
        else Completion(turns, end)
        for turns, end in completions
    ]


# Order


@pytest.mark.slow
@few
@given(case=tables, random=st.randoms())
def test_permuting_completions_and_groups_permutes_advantages(case, random):
    completions, size = case
    groups = [random.sample(range(start, start + size), size) for start in range(0, len(completions), size)]
    order = [row for group in random.sample(groups, len(groups)) for row in group]
    before, after = (estimates(facts(rows, size)) for rows in (completions, [completions[row] for row in order]))
    assert_equal(after, {name: advantages[order] for name, advantages in before.items()})


# Leaks


@pytest.mark.slow
@few
@given(case=tables, canary=st.sampled_from([1e30, torch.nan, torch.inf, -3.0]), extra=st.integers(1, 3))
def test_neither_padding_nor_what_stands_where_nothing_exists_matters(case, canary, extra):
    narrow, wide = facts(*case), facts(*case, extra=extra, canary=canary)
    got = estimates(wide)
    for name, expected in estimates(narrow).items():
        width = expected.size(1)
        assert_equal({name: got[name][:, :width]}, {name: expected}, atol=1e-12)
        assert (got[name][:, width:] == 0).all(), name


@pytest.mark.slow
@few
@given(case=tables)
def test_advantages_are_finite_and_exactly_zero_where_nothing_was_done_or_scored(case):
    turns = facts(*case, canary=torch.nan)
    is_unscored = turns.totals.isnan()
    for name, advantages in estimates(turns).items():
        is_there = turns.exists if advantages.shape == turns.values.shape else turns.tokens.turn_ids >= 0
        assert advantages.isfinite().all(), name
        assert (advantages[~is_there] == 0).all(), name
        assert (advantages[is_unscored] == 0).all(), name


# Other groups


@pytest.mark.slow
@few
@given(case=tables)
def test_rewards_of_another_group_do_not_matter_unless_a_critic_normalises_over_the_batch(case):
    completions, size = case
    options = DEFAULTS | {name: {"normalization": "none"} for name in CRITICS}
    others = shifted(scaled(completions[size:], -2.0), 1.0)
    one, other = (estimates(facts(rows, size), options) for rows in (completions, completions[:size] + others))
    assert_equal(*({name: rows[:size] for name, rows in both.items()} for both in (other, one)), atol=1e-12)


def test_rewards_of_another_group_matter_to_all_critics_by_default():
    """They have no group to be compared with: the batch alone says how much is much."""
    group = [Completion((Turn(0.5), Turn(1.0))), Completion((Turn(0.0),))]
    one, other = (estimates(facts(group + scaled(group, factor), 2)) for factor in (1.0, 3.0))
    assert changed(one, other, rows=2) == set(CRITICS)


def changed(one, other, rows=None):
    return {name for name in one if not torch.allclose(one[name][:rows], other[name][:rows], atol=1e-4)}


# Level and scale of rewards

SHIFT_FREE = {name: {} for name in ("outcome", "mt_grpo", "turn_rtg", "salt", "igpo", "spa_rl", "gtpo_trajectory")}
SHIFT_FREE_UNDISCOUNTED = {
    name: {"gamma": 1.0}
    for name in ("discounted", "process", "milestone", "kevin", "gtpo_turn", "gigpo", "gigpo_similar", "hgpo")
}


@pytest.mark.slow
@few
@given(case=tables, by=st.floats(-3, 3))
def test_level_of_totals_does_not_matter_to_comparisons_unless_a_discount_lessens_it_by_turn(case, by):
    """Contributions and beliefs are all that SPA-RL and IGPO's gains know: rewards are their targets and outcomes."""
    completions, size = case
    options = SHIFT_FREE | SHIFT_FREE_UNDISCOUNTED
    one, other = (estimates(facts(shifted(completions, level), size), options) for level in (0.0, by))
    assert_equal(other, one)


def test_level_of_totals_matters_to_all_others():
    """`local` compares nothing, a critic expects rewards as they are, and to GTPO a reward of 0 is a failure."""
    completions = [Completion((Turn(1.0),)), Completion((Turn(), Turn(0.0), Turn()))]
    one, other = (estimates(facts(shifted(completions, level))) for level in (0.0, 1.0))
    others = {"local", "gtpo", "grpo_s", *CRITICS}
    assert changed(one, other) == {*SHIFT_FREE_UNDISCOUNTED, *others}
    assert {*SHIFT_FREE, *SHIFT_FREE_UNDISCOUNTED, *others} == set(TURN_ESTIMATORS)


@pytest.mark.slow
@few
@given(case=tables)
def test_scale_of_rewards_does_not_matter_where_they_are_divided_by_their_deviation(case):
    """So large that nothing is small beside the epsilon. Not divided are milestones and local penalties."""
    completions, size = case
    one, other = (estimates(facts(scaled(completions, factor), size)) for factor in (1e6, 2e6))
    for name in ("milestone", "local"):
        assert torch.equal(other.pop(name), 2 * one.pop(name)), name
    for name in CRITICS:  # whose values do not grow with the rewards
        one.pop(name), other.pop(name)
    assert_equal(other, one, atol=1e-5)
