"""Estimators that need no more than rewards: naive references, edge cases, and real training."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import turns as naive
from scripted import call, double, scripted_trainer
from turn_tables import as_lists, close, reward_tables, table

from acpo_trl.advantages import (
    TURN_ESTIMATORS,
    kevin,
    milestone,
    mt_grpo,
    outcome,
    turn_rtg,
)
from acpo_trl.rewards import reward

CASES = [
    ("discounted", {}),
    ("discounted", {"gamma": 0.5, "failure": -1.0}),
    ("milestone", {}),
    ("mt_grpo", {"alpha": 0.5}),
    ("mt_grpo", {"alpha": 0.5, "form": "code"}),
    ("kevin", {}),
    ("kevin", {"mode": "max", "gamma": 0.8}),
    ("gtpo_turn", {}),
    ("turn_rtg", {"gamma": 0.9}),
]


def over(cases):
    return pytest.mark.parametrize(("name", "options"), cases, ids=[f"{name}-{options}" for name, options in cases])


by_case = over(CASES)


@by_case
@settings(max_examples=40, deadline=None)
@given(case=reward_tables, extra=st.integers(0, 2))
def test_estimator_equals_the_naive_one_whatever_the_padding(name, options, case, extra):
    rewards, size = case
    advantages = TURN_ESTIMATORS[name](table(rewards, size, extra), **options)
    assert as_lists(advantages, rewards) == close(getattr(naive, name)(rewards, size, **options))


@by_case
@settings(max_examples=20, deadline=None)
@given(case=reward_tables, random=st.randoms())
def test_permuting_a_group_permutes_its_advantages(name, options, case, random):
    rewards, size = case
    order = random.sample(range(size), size) + random.sample(range(size, 2 * size), size)
    shuffled = [rewards[i] for i in order]
    before = as_lists(TURN_ESTIMATORS[name](table(rewards, size), **options), rewards)
    after = as_lists(TURN_ESTIMATORS[name](table(shuffled, size), **options), shuffled)
    assert after == close([before[i] for i in order])


@over([case for case in CASES if case[0] in ("milestone", "mt_grpo", "turn_rtg")])
@settings(max_examples=20, deadline=None)
@given(
    rewards=st.lists(st.tuples(*[st.floats(0.5, 2).map(lambda x: round(x, 3))] * 3), min_size=2, max_size=5),
    shift=st.floats(0.5, 3),
)
def test_shifting_the_outcomes_of_equally_long_completions_changes_nothing(name, options, rewards, shift):
    one, other = ([[a, b, c + by] for a, b, c in rewards] for by in (0.0, shift))
    advantages = [TURN_ESTIMATORS[name](table(rewards), **options) for rewards in (one, other)]
    assert torch.allclose(*advantages, atol=1e-7)
    assert (advantages[0].abs().sum() > 0) == (len(set(rewards)) > 1)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(st.floats(-2, 2).map(lambda x: round(x, 3)), min_size=1, max_size=4), min_size=2, max_size=5),
    st.randoms(),
)
def test_turn_rtg_of_the_first_turn_does_not_depend_on_when_the_reward_came(rewards, random):
    late = [[0.0] * (len(turns) - 1) + [sum(turns)] for turns in rewards]
    assert torch.allclose(turn_rtg(table(rewards))[:, 0], turn_rtg(table(late))[:, 0], atol=1e-8)


@by_case
@pytest.mark.parametrize(
    "rewards", [[[], []], [[0.5], [0.5]], [[None, None], [None]]], ids=["no turn", "no spread", "unscored"]
)
def test_without_spread_there_is_no_advantage(name, options, rewards):
    assert (TURN_ESTIMATORS[name](table(rewards), **options) == 0).all()


@over([case for case in CASES if case[0] != "kevin"])
@pytest.mark.parametrize("rewards", [[[0.3, 1.0]], [[0.3, 1.0], [None]]], ids=["group of one", "one scored"])
def test_completion_without_company_has_no_advantage(name, options, rewards):
    assert (TURN_ESTIMATORS[name](table(rewards), **options) == 0).all()


@over([case for case in CASES if case[0] in ("milestone", "mt_grpo", "turn_rtg")])
def test_equal_outcomes_of_several_turns_give_no_advantage(name, options):
    assert (TURN_ESTIMATORS[name](table([[None, 1.0], [None, 1.0]]), **options) == 0).all()


@by_case
def test_single_turns_give_exactly_what_grpo_gives(name, options):
    rewards = table([[1.0], [0.5], [0.25], [1.0]])
    grpo = outcome(rewards)
    if name == "milestone":
        grpo = (rewards.values - rewards.values.mean()).nan_to_num()  # not divided by the standard deviation
    assert torch.equal(TURN_ESTIMATORS[name](rewards, **options), grpo)


@by_case
def test_completion_without_turns_is_as_if_it_were_not_there(name, options):
    with_empty = [[0.1, 1.0], [], [0.2, 0.0]]
    without = [[0.1, 1.0], [0.2, 0.0]]
    estimate = TURN_ESTIMATORS[name]
    expected = estimate(table(without), **options)
    assert torch.allclose(estimate(table(with_empty), **options)[[0, 2]], expected, rtol=1e-12)


@by_case
def test_unscored_completion_is_no_failure(name, options):
    scored = [[0.1, 1.0], [0.2, 0.0]]
    estimate = TURN_ESTIMATORS[name]
    advantages = estimate(table([*scored, [None, None]]), **options)
    assert (advantages[2] == 0).all()
    assert torch.allclose(advantages[:2], estimate(table(scored), **options), rtol=1e-12)


def test_constant_intermediate_rewards_leave_mt_grpo_the_outcome():
    advantages = mt_grpo(table([[0.3, 1.0], [0.3, 0.0]]))
    assert advantages.tolist() == outcome(table([[None, 1.0], [None, 0.0]])).tolist()


def test_constant_outcomes_leave_mt_grpo_the_intermediate_rewards():
    advantages = mt_grpo(table([[0.3, 1.0], [0.1, 1.0]]))
    assert advantages.tolist() == close([[0.706607, 0.0], [-0.706607, 0.0]], abs=1e-5)


def test_mt_grpo_of_a_completion_without_a_tool_call_has_its_outcome_only():
    rewards = [[0.3, 1.0], [0.1, 0.5], [0.0]]
    by_outcome = outcome(table([[1.0], [0.5], [0.0]])).flatten().tolist()
    advantages = mt_grpo(table(rewards))
    assert [advantages[0, 1].item(), advantages[1, 1].item(), advantages[2, 0].item()] == pytest.approx(by_outcome)


@pytest.mark.parametrize("name", ["discounted", "kevin", "gtpo_turn", "milestone", "turn_rtg"])
def test_turn_without_tokens_still_counts_in_the_exponent(name):
    def first(rewards):
        return TURN_ESTIMATORS[name](table(rewards), gamma=0.5)[0, 0].item()

    # The middle turn may have given no token: the table does not know, and the first turn stays two turns away.
    with_silent = first([[None, None, 1.0], [None, None, 0.5]])
    if name == "milestone":
        assert with_silent == pytest.approx(0.0625)
    else:
        expected = {"turn_rtg": naive.z([0.25, 0.125])[0]}
        default = naive.z([0.25, 0.5, 1.0, 0.125, 0.25, 0.5])[0]
        assert with_silent == pytest.approx(expected.get(name, default), rel=1e-6)


@by_case
def test_truncated_completion_is_judged_at_its_last_turn(name, options):
    """Cut off after the first of two turns, with a reward of 0 there."""
    rewards = [[0.1, 1.0], [0.1, 1.0], [0.0]]
    advantages = TURN_ESTIMATORS[name](table(rewards), **options)
    assert advantages[2, 0] < 0
    assert advantages[2, 1] == 0
    assert advantages[0, 0] > advantages[2, 0]


def test_penalty_for_taking_a_turn_is_not_hidden_by_the_baseline():
    """Every turn but the last costs 1, and nothing else counts: stopping at once must be the better first turn."""
    rewards = [[-1.0, -1.0, 0.0], [-1.0, 0.0], [0.0]]
    for estimate in (turn_rtg, milestone):
        first = estimate(table(rewards))[:, 0]
        assert first[2] > first[1] > first[0]
    # MT-GRPO takes the mean off turn by turn: all that go on cost the same, so the cost is gone.
    assert (mt_grpo(table(rewards)) == 0).all()


@pytest.mark.parametrize(
    ("estimate", "options", "message"),
    [
        (kevin, {"mode": "mean"}, "mode 'mean': .* expected 'sum' or 'max'"),
        (mt_grpo, {"form": "v2"}, "form 'v2': .* expected 'paper' or 'code'"),
    ],
)
def test_unknown_variant_is_refused(estimate, options, message):
    with pytest.raises(ValueError, match=message):
        estimate(table([[1.0], [0.0]]), **options)


# Training: two completions of two turns, the first with a good call and a good answer.

SCRIPT = [[call("double", x=21), call("double", x=1)], ["42", "no"]]


@reward(kind="outcome", level="turn")
def judge(completions, turns, **columns):
    return [[float("21" in turn.text or "42" in turn.text) for turn in views] for views in turns]


@pytest.mark.slow
@by_case
def test_estimator_trains_and_good_turns_have_the_greater_advantage(name, options, tmp_path):
    trainer = scripted_trainer(
        tmp_path,
        SCRIPT,
        [judge],
        tools=[double],
        turn_estimator=name,
        turn_estimator_options=options,
        learning_rate=1e-3,
    )
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    trainer.train()
    turn_ids, advantages = trainer.batches[0]["turn_ids"], trainer.batches[0]["advantages"]
    assert (advantages[turn_ids < 0] == 0).all()
    for turn in (0, 1):
        good, bad = (advantages[row][turn_ids[row] == turn] for row in (0, 1))
        assert good.min() == good.max() > 0 > bad.max() == bad.min()
    assert any(not torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))
    assert trainer.state.log_history[0]["grad_norm"] > 0
