"""HGPO: the worked numbers of all weightings and edge cases."""

import pytest
from state_tables import episodes_of, keyed

from acpo_trl.advantages import hgpo

THREE = episodes_of(["0X 1X 2X", "0X 1X 2X", "0X 4X 2X"], [1.0, 0.0, 1.0])  # states s0 to s4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"weights": "code"},
            [0.707105, 0.999998, 0.934911, -1.41421, -0.999998, -1.092045, 0.707105, 0.0, 0.707105],
        ),
        (
            {"weights": "paper"},
            [0.707104, 0.999998, 0.951182, -1.414209, -0.999998, -1.069033, 0.707104, 0.0, 0.707105],
        ),
        (
            {"weights": "paper", "renormalize": False},
            [0.117851, 0.499999, 0.951183, -0.235702, -0.499999, -1.069033, 0.117851, 0.0, 0.117851],
        ),
    ],
    ids=["code", "paper", "paper, fixed denominator"],
)
def test_hgpo_has_the_worked_numbers(options, expected):
    advantages = hgpo(keyed(THREE), max_history=2, alpha=1.0, epsilon=1e-6, **options)
    assert advantages.flatten().tolist() == pytest.approx(expected, abs=1e-5)


def test_without_history_it_compares_states_alone():
    advantages = hgpo(keyed(THREE), max_history=0, epsilon=1e-6)
    expected = [0.707105, 0.999998, 0.707105, -1.41421, -0.999998, -1.414211, 0.707105, 0.0, 0.707105]
    assert advantages.flatten().tolist() == pytest.approx(expected, abs=1e-5)


def test_state_that_nobody_else_met_gets_nothing():
    advantages = hgpo(keyed(episodes_of(["aX bX", "aX cX"], [1.0, 0.0])), epsilon=0.0)
    assert advantages.tolist() == [[1.0, 0.0], [-1.0, 0.0]]


def test_level_without_spread_still_weighs():
    # From state c: 1, 1, 0. After b, both have 1: no spread, but two of the three weights.
    turns = keyed(episodes_of(["bX cX", "bX cX", "aX cX"], [1.0, 1.0, 0.0]))
    at_c = hgpo(turns, max_history=1, epsilon=1e-6)[:, 1].tolist()
    assert at_c == pytest.approx([0.707105 / 3, 0.707105 / 3, -1.414211], abs=1e-5)


def test_turn_without_tokens_gets_nothing_but_stays_in_the_history():
    episodes = episodes_of(["aX bX cX", "aX bX cY", "aX dX cZ"], [1.0, 0.0, 0.0])
    for episode in episodes:
        episode[1] = (episode[1][0], None, None)
    advantages = hgpo(keyed(episodes), max_history=1, epsilon=1e-6)
    assert advantages[:, 1].tolist() == [0.0, 0.0, 0.0]
    # From state c: 1, 0, 0. After b: 1, 0, with twice the weight; nobody else came by d.
    expected = [(1.414211 + 2 * 0.999998) / 3, (-0.707105 - 2 * 0.999998) / 3, -0.707105]
    assert advantages[:, 2].tolist() == pytest.approx(expected, abs=1e-5)


def test_return_of_a_truncated_completion_counts_from_the_cut():
    # Cut off after b with 0.9; the other went on to 1 and is discounted at b.
    advantages = hgpo(keyed(episodes_of(["aX bX", "aX bX cX"], [0.9, 1.0])), gamma=0.5, epsilon=0.0)
    assert advantages[:, 1].tolist() == pytest.approx([1.0, -1.0])


def test_histories_longer_than_the_completion_change_nothing():
    turns = keyed(THREE)
    assert hgpo(turns, max_history=9).tolist() == hgpo(turns, max_history=2).tolist()
