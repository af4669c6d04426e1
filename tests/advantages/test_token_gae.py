"""PPO's and bi-level advantages of tokens: the naive reference, published numbers, edge cases, what must not matter."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import gae as naive
from turn_tables import close
from value_tables import by_token, check_canary, check_permuting, completions_strategy, valued

from acpo_trl.advantages import bilevel_gae, ppo, turn_ppo

ESTIMATORS = {
    "ppo": (ppo, naive.ppo),
    "ppo, discounted": (
        lambda turns: ppo(turns, gamma=0.9, lam=0.5, normalization="none", bootstrap=False),
        lambda rows: naive.ppo(rows, 0.9, 0.5, "none", False),
    ),
    "bilevel_gae": (bilevel_gae, naive.bilevel_gae),
    "bilevel_gae, discounted": (
        lambda turns: bilevel_gae(turns, turn_gamma=0.8, gamma=0.9, lam=0.5, normalization="none"),
        lambda rows: naive.bilevel_gae(rows, 0.8, 0.9, 0.5, "none"),
    ),
}
by_estimator = pytest.mark.parametrize("name", ESTIMATORS)
both = pytest.mark.parametrize("estimate", [ppo, bilevel_gae])
TWO_TURNS = [(0.0, [0.2, 0.3]), (1.0, [0.5, 0.7])]
NAN = pytest.approx(torch.nan, nan_ok=True)


def alone(turns, end=None, estimate=ppo, **options):
    """Advantages and targets of one completion's tokens without normalisation."""
    given = valued([(turns, end)])
    return [by_token(entries, given)[0] for entries in estimate(given, **{"normalization": "none"} | options)]


@by_estimator
@settings(max_examples=60, deadline=None)
@given(completions=completions_strategy, extra=st.integers(0, 2))
def test_estimator_equals_the_naive_one_whatever_the_padding(name, completions, extra):
    (estimate, expected), turns = ESTIMATORS[name], valued(completions, extra)
    got = [by_token(entries, turns) for entries in estimate(turns)]
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


def test_advantages_and_returns_of_ppo_match_worked_numbers_across_environment_tokens():
    advantages, targets = alone(TWO_TURNS)
    assert advantages == pytest.approx([0.727712, 0.66075, 0.485, 0.3], abs=1e-5)
    assert targets == pytest.approx([0.927712, 0.96075, 0.985, 1.0], abs=1e-5)
    whitened, same_targets = alone(TWO_TURNS, normalization="token")
    assert whitened == pytest.approx([0.960991, 0.611919, -0.304257, -1.268652], abs=1e-5)
    assert same_targets == targets


def test_bilevel_advantages_match_worked_numbers():
    turns = [(0.2, [0.1, 0.3]), (1.0, [0.4, 0.6])]
    advantages, targets = alone(turns, estimate=bilevel_gae)
    assert advantages == pytest.approx([1.05, 0.85, 0.6, 0.4], abs=1e-5)
    assert targets == pytest.approx([1.15, 1.15, 1.0, 1.0], abs=1e-5)


def test_a_turn_worth_nothing_still_ends():
    advantages, targets = alone([(0.0, [0.1, 0.3]), (0.0, [0.4, 0.6])], estimate=bilevel_gae, turn_gamma=0.5)
    assert advantages == pytest.approx([-0.1, -0.3, -0.4, -0.6])  # over one long turn, the same but for the discount
    assert targets == pytest.approx([0.0, 0.0, 0.0, 0.0])
    assert alone([(0.0, [0.1, 0.3]), (1.0, [0.4, 0.6])], estimate=bilevel_gae, turn_gamma=0.5)[1] == pytest.approx(
        [0.5, 0.5, 1.0, 1.0]
    )


def test_bilevel_over_turns_of_one_token_is_turn_ppo():
    turns = [(0.0, [0.4]), (-0.1, [0.3]), (0.0, [0.5]), (1.0, [0.8])]
    assert alone(turns, 0.35, bilevel_gae, turn_gamma=0.99, lam=0.9)[0] == pytest.approx(
        turn_ppo(valued([(turns, 0.35)]), normalization="none")[0][0].tolist()
    )


def test_without_discount_and_with_a_critic_that_knows_nothing_it_is_rewards_to_go():
    turns = [(0.5, [0.0, 0.0]), (None, [0.0]), (-0.25, [0.0]), (1.0, [0.0, 0.0])]
    assert alone(turns, lam=1.0) == [[1.25, 1.25, 0.75, 0.75, 1.0, 1.0]] * 2
    assert alone(turns, estimate=bilevel_gae, turn_gamma=1.0) == [[1.25, 1.25, 0.75, 0.75, 1.0, 1.0]] * 2


@both
def test_single_token_gets_reward_minus_value_and_alone_in_the_batch_keeps_it(estimate):
    assert alone([(1.0, [0.75])], estimate=estimate) == [[0.25], [1.0]]
    assert alone([(1.0, [0.75])], estimate=estimate, normalization="token") == [[0.25], [1.0]]


@both
def test_truncated_completion_expects_the_value_behind_it_if_asked(estimate):
    turns = [(0.0, [0.4]), (-0.1, [0.3])]
    discount = {"gamma": 0.99} if estimate is ppo else {"turn_gamma": 0.99}
    assert alone(turns, 0.35, estimate, lam=0.9, **discount)[0] == pytest.approx([-0.150669, -0.0535], abs=1e-5)
    cut = alone(turns, 0.35, estimate, lam=0.9, bootstrap=False, **discount)[0]
    assert cut == pytest.approx([-0.4594, -0.4], abs=1e-5)


@both
def test_turn_without_tokens_gives_its_reward_to_the_turn_before_it_and_counts_no_step(estimate):
    with_it = [(-0.2, [0.2, 0.3]), (0.2, []), (0.6, [0.5, 0.7]), (None, []), (0.4, [])]
    for got, expected in zip(alone(with_it, 0.35, estimate), alone(TWO_TURNS, 0.35, estimate), strict=True):
        assert got == pytest.approx(expected)


@both
def test_turns_without_tokens_before_all_others_give_their_rewards_to_the_first_one(estimate):
    assert alone([(0.5, []), (-0.25, []), (None, [0.5])], estimate=estimate) == [[-0.25], [0.25]]


@both
def test_equal_advantages_become_exactly_nothing_whatever_their_rounding(estimate):
    advantages, targets = estimate(valued([([(0.1, [0.0, 0.0])], None)] * 7), lam=1.0)
    assert (advantages == 0).all()
    assert targets[0].tolist() == [NAN, 0.1, 0.1, NAN]


@pytest.mark.parametrize(
    "silent",
    [([], None), ([], 0.7), ([(1.0, [])], None), ([(None, [0.3]), (None, [0.2])], 0.7)],
    ids=["no turn", "no turn, truncated", "no token", "unscored"],
)
@by_estimator
def test_completion_without_anything_to_learn_is_left_out(name, silent):
    others = [(TWO_TURNS, None), ([(0.0, [0.1, 0.2])], None)]
    advantages, targets = ESTIMATORS[name][0](valued([*others, silent]))
    for got, expected in zip((advantages, targets), ESTIMATORS[name][0](valued(others)), strict=True):
        torch.testing.assert_close(got[:2], expected, equal_nan=True)
    assert (advantages[2] == 0).all() and targets[2].isnan().all()


@pytest.mark.parametrize(
    "completions",
    [[([], None)], [([(1.0, [])], None)], [([], None), ([(None, [0.2])], None)]],
    ids=["no turn", "no token", "unscored"],
)
@by_estimator
def test_batch_without_anything_to_learn_gets_nothing(name, completions):
    advantages, targets = ESTIMATORS[name][0](valued(completions))
    assert (advantages == 0).all() and targets.isnan().all()


@both
def test_batch_without_a_single_token_place_gets_nothing(estimate):
    turns = valued([([(1.0, [])], None)])
    empty = turns.tokens._replace(turn_ids=turns.tokens.turn_ids[:, :0], values=turns.tokens.values[:, :0])
    assert [entries.shape for entries in estimate(turns._replace(tokens=empty))] == [(1, 0), (1, 0)]


@both
def test_missing_values_of_tokens_are_refused_with_what_gives_them(estimate):
    turns = valued([(TWO_TURNS, 0.35)])
    with pytest.raises(ValueError, match=r"tokens None: .*the trainer gives it.*TurnRewards\(\.\.\., tokens=\.\.\.\)"):
        estimate(turns._replace(tokens=None))
    with pytest.raises(ValueError, match=r"values None: .*the trainer gives it.*TokenTable\(\.\.\., values=\.\.\.\)"):
        estimate(turns._replace(tokens=turns.tokens._replace(values=None)))
    with pytest.raises(ValueError, match=r"end_values None: .*TurnRewards\(\.\.\., end_values=\.\.\.\)"):
        estimate(turns._replace(end_values=None))


@both
def test_unknown_normalization_is_refused(estimate):
    with pytest.raises(ValueError, match=r"normalization 'turn': no such choice; expected one of \['token', 'none'\]"):
        estimate(valued([(TWO_TURNS, None)]), normalization="turn")
