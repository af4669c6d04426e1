"""GiGPO over similar observations, and its penalty for invalid actions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import states as naive
from state_tables import episode_tables, episodes_of, keyed, rewards_of
from turn_tables import as_lists, close, table

from acpo_trl.advantages import gigpo, gigpo_similar, outcome

KITCHEN = [
    "You are in kitchen. You see a mug 1.",
    "You are in kitchen. You see a mug 2.",
    "You open the fridge 1. It is empty.",
]
CHOICES = [{}, {"normalization": "mean", "statistics": "step", "omega": 0.5}]
by_choice = pytest.mark.parametrize("options", CHOICES, ids=["default", "as its program"])


def showing(observations, outcomes, size=None):
    """A table without keys; the outcome on the last turn, and a text that must not matter behind it."""
    rewards = [[None] * (len(row) - 1) + [r] if row else [] for row, r in zip(observations, outcomes, strict=True)]
    return table(rewards, size)._replace(observations=[[*row, KITCHEN[0]] for row in observations])


def test_turns_with_similar_observations_are_compared():
    turns = showing([[KITCHEN[2], KITCHEN[0]], [KITCHEN[1]]], [1.0, 0.0])
    expected = gigpo(keyed(episodes_of(["fX kX", "kX"], [1.0, 0.0]))._replace(action_keys=None))
    assert gigpo_similar(turns).tolist() == expected.tolist()
    assert gigpo_similar(turns)[1, 0] < gigpo_similar(turns, similarity=0.98)[1, 0]  # there it stands alone
    assert gigpo_similar(turns, similarity=0.98).tolist() == close(outcome(turns).tolist())


def test_states_of_different_prompts_do_not_meet():
    rows, outcomes = [[KITCHEN[0]], [KITCHEN[0], KITCHEN[2]]], [1.0, 0.0]
    both = gigpo_similar(showing([*rows, *rows], [*outcomes, 0.0, 1.0], size=2))
    assert torch.equal(both[:2], gigpo_similar(showing(rows, outcomes)))
    assert torch.equal(both[2:], gigpo_similar(showing(rows, [0.0, 1.0])))


@by_choice
@settings(max_examples=30, deadline=None)
@given(case=episode_tables)
def test_observations_that_name_the_state_give_what_its_key_gives(options, case):
    episodes, size = case
    turns = keyed(episodes, size)
    observations = [[5 * state for state, _, _ in episode] for episode in episodes]
    shown = turns._replace(state_keys=None, observations=observations)
    assert gigpo_similar(shown, **options).tolist() == close(gigpo(turns, **options).tolist(), abs=1e-12)


@pytest.mark.parametrize(
    ("observations", "outcomes"),
    [([KITCHEN], [1.0]), ([KITCHEN, KITCHEN], [0.1, 0.1]), ([[], []], [None, None])],
    ids=["group of one", "zero spread", "no turn"],
)
def test_nothing_to_compare_with_gives_exactly_no_advantage(observations, outcomes):
    turns = showing(observations, outcomes)
    advantages = gigpo_similar(turns, gamma=1.0)
    assert (advantages == 0).all()
    assert advantages.shape == turns.values.shape


def test_wrong_options_and_missing_observations_are_refused():
    turns = showing([KITCHEN, KITCHEN[:2]], [1.0, 0.0])
    with pytest.raises(TypeError, match="gama"):
        gigpo_similar(turns, gama=0.9)
    with pytest.raises(ValueError, match="statistics 'row': no such choice"):
        gigpo_similar(turns, statistics="row")
    with pytest.raises(ValueError, match=r"observations None: .*texts shown before each turn"):
        gigpo_similar(turns._replace(observations=None))


# Penalty for invalid actions


def judged(turns, invalid):
    """Nothing that does not exist is valid."""
    is_valid = turns.exists.clone()
    for place in invalid:
        is_valid[place] = False
    return turns._replace(is_valid=is_valid)


@pytest.mark.parametrize(
    ("options", "naive_options"),
    [({}, {}), ({"normalization": "mean", "statistics": "step"}, {"std": False, "per_step": True})],
    ids=["default", "as its program"],
)
@settings(max_examples=40, deadline=None)
@given(case=episode_tables, random=st.randoms(), extra=st.integers(0, 2))
def test_penalised_gigpo_equals_the_naive_one(options, naive_options, case, random, extra):
    episodes, size = case
    invalid = [(i, k) for i, episode in enumerate(episodes) for k in range(len(episode)) if random.random() < 0.3]
    turns = judged(keyed(episodes, size, extra), invalid)
    advantages = gigpo(turns, invalid_penalty=0.1, **options)
    expected = naive.gigpo(episodes, size, invalid=invalid, penalty=0.1, **naive_options)
    assert as_lists(advantages, rewards_of(episodes)) == close(expected)


@by_choice
def test_no_penalty_is_what_it_was(options):
    turns = keyed(episodes_of(["aX bX", "aX bY", "aY"], [1.0, 0.0, 0.5]))
    assert torch.equal(gigpo(judged(turns, [(0, 1)]), **options), gigpo(turns, **options))
    assert torch.equal(gigpo(judged(turns, []), invalid_penalty=0.1, **options), gigpo(turns, **options))


def test_penalty_stays_on_its_turn_after_discounting():
    """Returns 0.9025, 0.95 and 1 become 0.9025, 0.85 and 1, each from a state that a return of 0 starts from, too."""
    turns = judged(keyed(episodes_of(["aX bX cX", "aY bY cY"], [1.0, 0.0])), [(0, 1)])
    by_state = {"normalization": "mean", "omega": 1e6, "guard_first_turn": False}  # as good as the second term alone
    returns = 2e-6 * gigpo(turns, invalid_penalty=0.1, **by_state)[0]
    assert returns.tolist() == pytest.approx([0.9025, 0.85, 1.0], abs=1e-5)


def test_invalid_turn_from_a_state_of_its_own_pays_the_penalty_and_no_other():
    turns = judged(keyed(episodes_of(["aX bX", "aX cX"], [1.0, 0.0])), [(1, 1)])
    paid = gigpo(turns, invalid_penalty=0.1) - gigpo(turns)
    assert paid.tolist() == close([[0.0, 0.0], [0.0, -0.1]])


def test_penalty_in_a_group_without_spread_stays_small():
    turns = judged(keyed(episodes_of(["aX bX", "aX cX"], [1.0, 1.0])), [(0, 1), (1, 1)])
    assert gigpo(turns, gamma=1.0, invalid_penalty=0.1).tolist() == close([[0.0, -0.1], [0.0, -0.1]])


def test_penalty_without_validity_is_refused():
    turns = keyed(episodes_of(["aX", "aY"], [1.0, 0.0]))
    with pytest.raises(ValueError, match=r"is_valid None: .*TurnRewards\(\.\.\., is_valid=\.\.\.\)"):
        gigpo(turns, invalid_penalty=0.1)
