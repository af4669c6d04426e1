"""What holds for all estimators that compare turns of the same state: references, what must not matter, edge cases."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import states as naive
from state_tables import episode_tables, episodes_of, keyed, rewards_of
from turn_tables import as_lists, close

from acpo_trl.advantages import gigpo, hgpo, outcome, salt

ESTIMATORS = {
    "gigpo": (gigpo, naive.gigpo),
    "gigpo, as its program has it": (
        lambda turns: gigpo(turns, normalization="mean", statistics="step", guard_first_turn=False, omega=0.5),
        lambda episodes, size: naive.gigpo(episodes, size, 0.5, std=False, per_step=True, guard=False),
    ),
    "hgpo": (hgpo, naive.hgpo),
    "hgpo, code weights": (
        lambda turns: hgpo(turns, weights="code", max_history=3, alpha=0.5, renormalize=False),
        lambda episodes, size: naive.hgpo(episodes, size, 3, 0.5, first=2, renormalize=False),
    ),
    "salt": (salt, naive.salt),
    "salt, rloo": (
        lambda turns: salt(turns, trajectory="rloo"),
        lambda episodes, size: naive.salt(episodes, size, rloo=True),
    ),
}
by_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@by_estimator
@settings(max_examples=40, deadline=None)
@given(case=episode_tables, extra=st.integers(0, 2))
def test_estimator_equals_the_naive_one_whatever_the_padding(name, case, extra):
    (episodes, size), (estimate, expected) = case, ESTIMATORS[name]
    advantages = estimate(keyed(episodes, size, extra))
    assert as_lists(advantages, rewards_of(episodes)) == close(expected(episodes, size))


@by_estimator
@settings(max_examples=15, deadline=None)
@given(case=episode_tables, random=st.randoms())
def test_permuting_a_group_permutes_its_advantages(name, case, random):
    (episodes, size), (estimate, _) = case, ESTIMATORS[name]
    order = random.sample(range(size), size) + random.sample(range(size, 2 * size), size)
    before, after = (estimate(keyed(rows, size, extra=1)) for rows in (episodes, [episodes[i] for i in order]))
    assert after.tolist() == close(before[order].tolist())


@by_estimator
@settings(max_examples=15, deadline=None)
@given(case=episode_tables)
def test_other_keys_for_the_same_states_change_nothing(name, case):
    (episodes, size), (estimate, _) = case, ESTIMATORS[name]
    one, other = (estimate(keyed(episodes, size, offset=offset)) for offset in (0, 2**61))
    assert other.tolist() == close(one.tolist(), abs=1e-12)


@by_estimator
@settings(max_examples=15, deadline=None)
@given(case=episode_tables)
def test_equal_keys_of_different_prompts_do_not_meet(name, case):
    (episodes, size), (estimate, _) = case, ESTIMATORS[name]
    width = max(map(len, episodes)) + 1
    both = estimate(keyed(episodes, size, extra=1))
    alone = [estimate(keyed(rows, size, width - max(map(len, rows)))) for rows in (episodes[:size], episodes[size:])]
    assert both.tolist() == close(torch.cat(alone).tolist(), abs=1e-12)


@by_estimator
def test_what_stands_behind_the_last_turn_never_leaks(name):
    turns = keyed(episodes_of(["aX bX", "aX bY", "aY"], [1.0, 0.0, 0.5]), extra=1)
    estimate = ESTIMATORS[name][0]
    dirty = turns._replace(
        values=torch.where(turns.exists, turns.values, 9.9),
        state_keys=torch.where(turns.exists, turns.state_keys, turns.state_keys[0, 0]),
        action_keys=torch.where(turns.exists, turns.action_keys, turns.action_keys[0, 0]),
    )
    assert estimate(dirty).tolist() == estimate(turns).tolist()


@by_estimator
@pytest.mark.parametrize(
    ("texts", "outcomes"),
    [
        (["aX bX"], [1.0]),
        (["aX aY aX"], [1.0]),
        (["aX bX", "aX bY"], [0.1, 0.1]),
        (["aX bX"] * 3, [0.1] * 3),
        (["", ""], [None, None]),
        (["aX", "aY"], [1.0, None]),
    ],
    ids=["group of one", "group of one in a loop", "zero spread", "zero spread with rounding", "no turn", "one scored"],
)
def test_nothing_to_compare_with_gives_exactly_no_advantage(name, texts, outcomes):
    assert (ESTIMATORS[name][0](keyed(episodes_of(texts, outcomes))) == 0).all()


@by_estimator
def test_completion_without_turns_is_left_out(name):
    with_it, without = ["aX bX", "aX bY", ""], ["aX bX", "aX bY"]
    estimate = ESTIMATORS[name][0]
    advantages = estimate(keyed(episodes_of(with_it, [1.0, 0.0, None])))
    assert advantages[:2].tolist() == estimate(keyed(episodes_of(without, [1.0, 0.0]))).tolist()
    assert (advantages[2] == 0).all()


@by_estimator
def test_unscored_completion_is_no_failure(name):
    estimate = ESTIMATORS[name][0]
    advantages = estimate(keyed(episodes_of(["aX bX", "aX bY", "aX bY"], [1.0, 0.0, None])))
    assert advantages[:2].tolist() == estimate(keyed(episodes_of(["aX bX", "aX bY"], [1.0, 0.0]))).tolist()
    assert (advantages[2] == 0).all()


@pytest.mark.parametrize("estimate", [gigpo, salt])
def test_without_a_repeated_state_it_is_grpo(estimate):
    turns = keyed(episodes_of(["aX bX cX", "aY dX", "aZ eX fX gX"], [1.0, 0.0, 0.3]))
    assert estimate(turns).tolist() == close(outcome(turns).tolist(), abs=1e-12)


@by_estimator
def test_missing_state_keys_are_refused_with_what_gives_them(name):
    turns = keyed(episodes_of(["aX", "aY"], [1.0, 0.0]))._replace(state_keys=None)
    with pytest.raises(ValueError, match=r"state_keys None: .* the environment's names of states.*state_keys=\.\.\."):
        ESTIMATORS[name][0](turns)


@pytest.mark.parametrize(
    ("estimate", "options", "message"),
    [
        (gigpo, {"normalization": "sdt"}, r"normalization 'sdt': no such choice; expected one of \['std', 'mean'\]"),
        (gigpo, {"statistics": "row"}, "statistics 'row'"),
        (hgpo, {"weights": "papers"}, "weights 'papers'"),
        (hgpo, {"max_history": -1}, "max_history -1: no level would be left"),
        (salt, {"trajectory": "ppo"}, "trajectory 'ppo'"),
    ],
)
def test_wrong_options_are_refused(estimate, options, message):
    with pytest.raises(ValueError, match=message):
        estimate(keyed(episodes_of(["aX", "aY"], [1.0, 0.0])), **options)
