"""Turn-PPO and StepPO: the naive reference, published numbers, edge cases, and what must not matter."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import gae as naive
from turn_tables import close
from value_tables import by_turn, check_canary, check_permuting, completions_strategy, valued

from acpo_trl.advantages import step_ppo, turn_ppo
from acpo_trl.advantages.gae import whiten

ESTIMATORS = {
    "turn_ppo": (turn_ppo, lambda rows: naive.over_turns(rows, 0.99, 0.9, "token", True)),
    "step_ppo": (step_ppo, lambda rows: naive.over_turns(rows, 0.99, 1.0, "turn", False)),
    "turn_ppo as it is": (
        lambda turns: turn_ppo(turns, gamma=0.8, lam=0.5, normalization="none"),
        lambda rows: naive.over_turns(rows, 0.8, 0.5, "none", True),
    ),
}
by_estimator = pytest.mark.parametrize("name", ESTIMATORS)
FOUR_TURNS = [(0.0, [0.4]), (-0.1, [0.3]), (0.0, [0.5]), (1.0, [0.8])]
NAN = pytest.approx(torch.nan, nan_ok=True)


def alone(turns, end=None, **options):
    """Advantages and targets of one completion without normalisation."""
    both = turn_ppo(valued([(turns, end)]), **{"normalization": "none"} | options)
    return [by_turn(entries, [(turns, end)])[0] for entries in both]


@by_estimator
@settings(max_examples=60, deadline=None)
@given(completions=completions_strategy, extra=st.integers(0, 2))
def test_estimator_equals_the_naive_one_whatever_the_padding(name, completions, extra):
    estimate, expected = ESTIMATORS[name]
    got = [by_turn(entries, completions) for entries in estimate(valued(completions, extra))]
    assert got == [close(rows, nan_ok=True) for rows in expected(completions)]


@by_estimator
@settings(max_examples=25, deadline=None)
@given(completions=completions_strategy, random=st.randoms())
def test_permuting_completions_permutes_what_they_get(name, completions, random):
    check_permuting(ESTIMATORS[name][0], completions, random)


@by_estimator
@settings(max_examples=25, deadline=None)
@given(completions=completions_strategy, canary=st.sampled_from([torch.nan, torch.inf, -3.0]))
def test_what_stands_where_nothing_is_read_never_leaks(name, completions, canary):
    check_canary(ESTIMATORS[name][0], completions, canary)


def test_advantages_and_returns_of_four_turns_match_worked_numbers():
    advantages, targets = alone(FOUR_TURNS)
    assert advantages == pytest.approx([0.354928, 0.513948, 0.4702, 0.2], abs=1e-5)
    assert targets == pytest.approx([0.754928, 0.813948, 0.9702, 1.0], abs=1e-5)


@pytest.mark.parametrize(
    ("bootstrap", "expected"), [(False, [-0.4594, -0.4]), (True, [-0.150669, -0.0535])], ids=["cut", "bootstrapped"]
)
def test_truncated_completion_expects_the_value_behind_it_if_asked(bootstrap, expected):
    turns = [(0.0, [0.4]), (-0.1, [0.3])]
    assert alone(turns, end=0.35, bootstrap=bootstrap)[0] == pytest.approx(expected, abs=1e-5)


def test_step_ppo_expects_nothing_behind_a_truncated_completion_by_default():
    advantages, _ = step_ppo(valued([([(0.0, [0.4])], 0.35)]), normalization="none")
    assert advantages.tolist() == [[-0.4]]


@pytest.mark.parametrize(
    ("normalization", "expected"),
    [
        ("turn", [-0.0266785, 1.307248, -1.360605, -0.426856, 0.506892]),
        ("token", [-0.017172, 2.38691, -2.421254, -0.738397, 0.944461]),
        ("none", [0.5, 1.5, -0.5, 0.2, 0.9]),
    ],
)
def test_normalization_of_five_turns_matches_worked_numbers(normalization, expected):
    tokens = [[0.0] * 10, [0.0], [0.0], [0.0], [0.0]]
    rewards = [0.5, 1.5, -0.5, 0.2, 0.9]
    completions = [([turn], None) for turn in zip(rewards, tokens, strict=True)]
    advantages, targets = turn_ppo(valued(completions), normalization=normalization)
    assert advantages.flatten().tolist() == pytest.approx(expected, abs=1e-5)
    assert targets.flatten().tolist() == pytest.approx(rewards)


def test_turns_of_one_completion_are_normalized_together_with_those_of_others():
    completions = [([(0.5, [0.0]), (1.5, [0.0])], None), ([(-0.5, [0.0])], None), ([(0.2, [0.0]), (0.9, [0.0])], None)]
    advantages, _ = step_ppo(valued(completions), gamma=0.0)
    expected = [[-0.0266785, 1.307248], [-1.360605], [-0.426856, 0.506892]]
    assert by_turn(advantages, completions) == close(expected, abs=1e-5)


def test_without_discount_and_with_a_critic_that_knows_nothing_it_is_rewards_to_go():
    turns = [(0.5, [0.0]), (None, [0.0]), (-0.25, [0.0]), (1.0, [0.0])]
    assert alone(turns, gamma=1.0, lam=1.0) == [[1.25, 0.75, 0.75, 1.0]] * 2


@by_estimator
def test_lone_turn_of_the_batch_keeps_its_advantage(name):
    advantages, targets = ESTIMATORS[name][0](valued([([(1.0, [0.75, 0.5])], None)]))
    assert (advantages.tolist(), targets.tolist()) == ([[0.25]], [[1.0]])


def test_completions_of_one_prompt_are_normalized_with_those_of_another():
    rows = [([(1.0, [0.0])], None), ([(0.0, [0.0])], None)]
    advantages, _ = step_ppo(valued(rows)._replace(num_generations=1))
    assert advantages.flatten().tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)])


@pytest.mark.parametrize("estimate", [turn_ppo, step_ppo])
def test_equal_advantages_become_exactly_nothing_whatever_their_rounding(estimate):
    advantages, targets = estimate(valued([([(0.1, [0.0, 0.0])], None)] * 7))
    assert (advantages == 0).all()
    assert targets.flatten().tolist() == [0.1] * 7


def test_rounding_errors_of_float32_are_not_blown_up():
    almost = torch.tensor([0.1, 0.1 + 2e-8, 0.1 - 2e-8], dtype=torch.float32)
    assert whiten(almost, torch.ones(3)).abs().max() < 1e-3


@pytest.mark.parametrize(
    "silent",
    [([], None), ([], 0.7), ([(1.0, [])], None), ([(None, [0.3]), (None, [0.2])], 0.7)],
    ids=["no turn", "no turn, truncated", "no token", "unscored"],
)
@by_estimator
def test_completion_without_anything_to_learn_is_left_out(name, silent):
    others = [(FOUR_TURNS, None), ([(0.0, [0.1, 0.2])], None)]
    advantages, targets = ESTIMATORS[name][0](valued([*others, silent]))
    for got, expected in zip((advantages, targets), ESTIMATORS[name][0](valued(others)), strict=True):
        torch.testing.assert_close(got[:2], expected, equal_nan=True)
    assert (advantages[2] == 0).all() and targets[2].isnan().all()


@pytest.mark.parametrize(
    "completions", [[([], None)], [([], None), ([(None, [0.2])], None)]], ids=["no turn", "unscored"]
)
@by_estimator
def test_batch_without_anything_to_learn_gets_nothing(name, completions):
    advantages, targets = ESTIMATORS[name][0](valued(completions))
    assert (advantages == 0).all() and targets.isnan().all()


def test_turn_without_tokens_gives_its_reward_to_the_turn_before_it_and_counts_no_step():
    with_it = [(0.0, [0.4]), (-0.3, [0.3]), (0.2, []), (0.0, [0.5]), (0.7, [0.8]), (0.3, [])]
    advantages, targets = alone(with_it)
    expected = alone(FOUR_TURNS)
    assert [advantages[k] for k in (0, 1, 3, 4)] == pytest.approx(expected[0])
    assert [targets[k] for k in (0, 1, 3, 4)] == pytest.approx(expected[1])
    assert [advantages[k] for k in (2, 5)] == [0, 0]
    assert [targets[k] for k in (2, 5)] == [NAN, NAN]


def test_turns_without_tokens_before_all_others_give_their_rewards_to_the_first_one():
    advantages, targets = alone([(0.5, []), (-0.25, []), (None, [0.5])])
    assert advantages == [0.0, 0.0, -0.25]
    assert targets == [NAN, NAN, 0.25]


def test_unscored_turn_is_worth_nothing_but_is_a_step():
    assert alone([(None, [0.5]), (1.0, [0.25])], gamma=0.5, lam=1.0)[0] == pytest.approx([0.0, 0.75])


@pytest.mark.parametrize("name", ["num_tokens", "state_values", "is_truncated", "end_values"])
def test_missing_entry_is_refused_with_what_gives_it(name):
    turns = valued([(FOUR_TURNS, 0.35)])._replace(**{name: None})
    with pytest.raises(ValueError, match=rf"{name} None: .*the trainer gives it.*TurnRewards\(\.\.\., {name}=\.\.\.\)"):
        turn_ppo(turns)


def test_without_bootstrap_nobody_needs_the_value_behind_a_completion():
    turns = valued([(FOUR_TURNS, 0.35)])._replace(end_values=None, is_truncated=None)
    assert step_ppo(turns)[1].tolist() == step_ppo(valued([(FOUR_TURNS, 0.35)]))[1].tolist()


def test_unknown_normalization_is_refused():
    with pytest.raises(ValueError, match=r"normalization 'turns': no such choice; .*\['token', 'turn', 'none'\]"):
        step_ppo(valued([(FOUR_TURNS, None)]), normalization="turns")
