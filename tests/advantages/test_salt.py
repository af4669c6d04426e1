"""SALT: the worked numbers and edge cases."""

import pytest
from state_tables import episodes_of, keyed
from turn_tables import close

from acpo_trl.advantages import salt

THREE = episodes_of(["0A 1B 2C", "0A 1B 2D", "0A 1E 3C"], [1.0, 0.0, 0.0])


def test_shared_transitions_get_the_mean_of_their_completions():
    expected = [[0.0, 0.288675, 1.154699], [0.0, 0.288675, -0.577349], [0.0, -0.577349, -0.577349]]
    assert salt(keyed(THREE), epsilon=1e-6).tolist() == close(expected, abs=1e-5)


def test_rloo_compares_a_completion_with_the_others():
    expected = [[0.0, 0.25, 1.0], [0.0, 0.25, -0.5], [0.0, -0.5, -0.5]]
    assert salt(keyed(THREE), trajectory="rloo").tolist() == close(expected)


def test_completion_that_loops_counts_once():
    turns = keyed(episodes_of(["aX aX aX bX", "aX aX cX", "dX"], [1.0, 0.0, 0.0]))
    assert salt(turns, epsilon=1e-6)[0].tolist() == pytest.approx([0.288675, 0.288675, 1.154699, 1.154699], abs=1e-5)


@pytest.mark.parametrize("other", ["aX cY", "aY bY", "cX bY"], ids=["next state", "action", "state"])
def test_transitions_that_differ_in_one_part_are_two(other):
    advantages = salt(keyed(episodes_of(["aX bY", other], [1.0, 0.0])), trajectory="rloo")
    assert advantages[:, 0].tolist() == [1.0, -1.0]


def test_turn_without_tokens_is_a_transition_like_any():
    episodes = episodes_of(["aX bX", "aX bX", "aX bY"], [1.0, 0.0, 0.0])
    for episode in episodes[:2]:
        episode[0] = ("a", None, None)
    expected = [[0.288675, 0.288675], [0.288675, 0.288675], [-0.577349, -0.577349]]
    assert salt(keyed(episodes), epsilon=1e-6).tolist() == close(expected, abs=1e-5)


def test_truncated_completion_shares_what_came_before_the_cut():
    advantages = salt(keyed(episodes_of(["aX bX", "aX bX cX"], [0.0, 1.0])), trajectory="rloo")
    assert advantages.tolist() == [[0.0, -1.0, 0.0], [0.0, 1.0, 1.0]]  # behind b one was cut off


def test_missing_action_keys_are_refused_with_what_gives_them():
    with pytest.raises(ValueError, match=r"action_keys None: .* the trainer gives them"):
        salt(keyed(THREE)._replace(action_keys=None))
