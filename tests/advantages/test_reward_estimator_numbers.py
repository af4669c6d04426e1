"""Estimators that need no more than rewards: published and hand-computed numbers."""

import itertools
import math

import pytest
import torch
from reference import turns as naive
from turn_tables import as_lists, close, table

from acpo_trl.advantages import discounted, gtpo_turn, milestone, mt_grpo, partial_credit, turn_rtg
from acpo_trl.advantages.kevin import best_to_go
from acpo_trl.advantages.process import rewards_to_go


def test_discount_then_standardization_gives_all_turns_of_failures_the_same():
    rewards = [[None, None, 1.0], [None, 0.0], [1.0], [None, None, 0.0]]
    expected = [[0.808276, 0.991154, 1.194352], [-0.837627] * 2, [1.194352], [-0.837627] * 3]
    assert as_lists(discounted(table(rewards), gamma=0.9), rewards) == close(expected, abs=1e-5)


def test_failure_counts_as_minus_one_before_discounting():
    returns = {"success": [0.9025, 0.95, 1.0], "failure": [-0.9025, -0.95, -1.0]}
    expected = naive.z([*returns["success"], *returns["failure"]])
    advantages = discounted(table([[None, None, 1.0], [None, None, 0.0]]), failure=-1.0)
    assert advantages.flatten().tolist() == pytest.approx(expected, abs=1e-9)
    assert advantages[1, 0] > advantages[1, 2]  # less blame


@pytest.mark.parametrize("last", [0.2, None])
def test_failure_is_a_last_turn_of_exactly_zero(last):
    turns = table([[0.0, last], [0.0, 1.0]])
    assert discounted(turns, failure=-1.0).tolist() == discounted(turns).tolist()


MT_GRPO = [[0.3, 1.0], [0.4, 0.2], [-0.2, -1.0], [0.3, 0.2]]
BY_TURN = [0.369138, 0.738276, -1.476553, 0.369138]
BY_OUTCOME = [1.091278, 0.121253, -1.333784, 0.121253]


@pytest.mark.parametrize("form", ["paper", "code"])
def test_mt_grpo_of_two_turns_adds_what_the_first_turn_earned(form):
    expected = [[1.460416, 1.091278], [0.859529, 0.121253], [-2.810337, -1.333784], [0.490391, 0.121253]]
    assert mt_grpo(table(MT_GRPO), form=form).tolist() == close(expected, abs=1e-5)


@pytest.mark.parametrize(("form", "weights"), [("paper", (1.0, 0.5)), ("code", (0.5, 1.0))])
def test_alpha_weighs_the_outcome_in_the_paper_and_the_turn_in_the_code(form, weights):
    first = [weights[0] * a + weights[1] * b for a, b in zip(BY_TURN, BY_OUTCOME, strict=True)]
    advantages = mt_grpo(table(MT_GRPO), alpha=0.5, form=form)
    assert advantages[:, 0].tolist() == pytest.approx(first, abs=1e-5)
    assert advantages[:, 1].tolist() == pytest.approx(BY_OUTCOME, abs=1e-5)


def test_mt_grpo_as_coded_compares_completions_without_a_tool_call_by_their_total():
    no_tools = table([[1.3], [0.6], [-1.2], [0.5]])
    expected = [0.942023, 0.282607, -1.413034, 0.188405]
    assert mt_grpo(no_tools, form="code").flatten().tolist() == pytest.approx(expected, abs=1e-5)


def test_mt_grpo_of_more_turns_goes_on_backwards():
    rewards = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    up = 0.70700679  # of two values one apart
    expected = [[up + 0.5 * (-up + 0.5 * up), -up + 0.5 * up, up], [-up + 0.5 * (up - 0.5 * up), up - 0.5 * up, -up]]
    assert mt_grpo(table(rewards), alpha=0.5).tolist() == close(expected, abs=1e-6)
    code = [[up, up, up], [-up, -up, -up]]  # intermediate sums are equal
    assert mt_grpo(table(rewards), alpha=0.5, form="code").tolist() == close(code, abs=1e-6)


def test_kevin_returns_are_those_of_the_four_turn_example():
    scores = table([[0.0, 1.3, 0.3, 2.3]])
    assert rewards_to_go(scores, 0.4)[0].tolist() == pytest.approx([0.7152, 1.788, 1.22, 2.3])
    assert best_to_go(scores, 0.4)[0].tolist() == pytest.approx([0.52, 1.3, 0.92, 2.3])


def test_kevin_maximum_of_a_negative_last_score_is_that_score():
    assert best_to_go(table([[-1.0, -0.5], [0.0, 0.0]], extra=1), 0.4)[0, :2].tolist() == pytest.approx([-0.2, -0.5])


def test_gtpo_turn_returns_leave_a_format_fault_on_its_turn_and_those_before():
    returns = rewards_to_go(table([[0, 0, 1.0], [-0.1, 0, 0.0]]), 0.9)
    assert returns.tolist() == close([[0.81, 0.9, 1.0], [-0.1, 0.0, 0.0]])
    advantages = gtpo_turn(table([[0, 0, 1.0], [-0.1, 0, 0.0]]))
    assert advantages.flatten().tolist() == pytest.approx(naive.z([0.81, 0.9, 1.0, -0.1, 0.0, 0.0]), abs=1e-9)


def test_partial_credit_is_the_mean_likeness_to_what_passed():
    similarity = torch.tensor([[1.0, 0.3, 0.8], [0.3, 1.0, 0.6], [0.8, 0.6, 1.0]])
    assert partial_credit(similarity, torch.tensor([True, True, False])).tolist() == pytest.approx([0, 0, 0.35])
    assert partial_credit(similarity, torch.tensor([False, False, False])).tolist() == [0, 0, 0]


def test_turn_rtg_compares_with_the_completions_that_reach_the_turn():
    rewards = [[1.0, 0.0, 2.0], [0.0, 1.0], [4.0]]  # rewards to go 3 2 2, 1 1, 4
    expected = [[0.218203, 0.707007, 0.0], [-1.091013, -0.707007], [0.872811]]
    assert as_lists(turn_rtg(table(rewards)), rewards) == close(expected, abs=1e-5)


def test_milestone_keeps_the_worth_of_milestones():
    rewards = [[0.3, None, 1.0], [None, 0.3]]  # rewards to go, gamma 1: 1.3 1 1, 0.3 0.3
    expected = [[0.5, 0.35, 0.0], [-0.5, -0.35]]
    assert as_lists(milestone(table(rewards), gamma=1.0), rewards) == close(expected)


def test_milestone_has_the_exact_policy_gradient_although_the_policy_decides_when_to_stop():
    """All groups of three, each with its probability, against the gradient of the expected return.

    The policy goes on with probability 0.6 on turn 0 and 0.3 on turn 1. Going on costs 1; the end is worth 0, 0.5 or 4.
    """
    go_on = [0.6, 0.3]
    episodes = [(0.4, [0.0]), (0.6 * 0.7, [-1.0, 0.5]), (0.6 * 0.3, [-1.0, -1.0, 4.0])]
    scores = [[-0.6], [0.4, -0.3], [0.4, 0.7]]  # of the logit of going on
    gradient = [0.0, 0.0]
    for group in itertools.product(range(3), repeat=3):
        probability = math.prod(episodes[i][0] for i in group)
        advantages = milestone(table([episodes[i][1] for i in group]), gamma=1.0)
        for row, i in zip(advantages.tolist(), group, strict=True):
            for turn, score in enumerate(scores[i]):
                gradient[turn] += probability * score * row[turn]
    later = 0.7 * 0.5 + 0.3 * (-1 + 4)  # expected return from turn 1 on
    slopes = [go_on[0] * (1 - go_on[0]) * (-1 + later), go_on[1] * (1 - go_on[1]) * (-1 + 4 - 0.5)]
    # The mean contains the turn itself: of n completions at a turn, n - 1 count.
    num_counting = [2.0, 3 * 0.6 - (1 - 0.4**3)]
    assert gradient == pytest.approx([n * slope for n, slope in zip(num_counting, slopes, strict=True)], abs=1e-12)
