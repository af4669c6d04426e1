"""GiGPO: the worked numbers, the guard of the first turn, edge cases, and clusters of similar observations."""

from difflib import SequenceMatcher

import pytest
import torch
from state_tables import episodes_of, keyed
from turn_tables import close, table

from acpo_trl.advantages import gigpo, local, similar_keys
from acpo_trl.advantages.process import rewards_to_go
from acpo_trl.advantages.state import normalize, state_labels, step_returns

THREE = episodes_of(["0X 1X 2X", "0X 1X 3X", "0X 4X"], [1.0, 0.0, 1.0])  # states s0 to s4
PROGRAM = {"epsilon": 1e-6, "guard_first_turn": False}


def flat(advantages):
    """Of the turns of THREE."""
    return [*advantages[0].tolist(), *advantages[1].tolist(), *advantages[2, :2].tolist()]


def test_returns_are_those_of_the_worked_example():
    assert flat(step_returns(keyed(THREE), 0.95)) == pytest.approx([0.9025, 0.95, 1.0, 0.0, 0.0, 0.0, 0.95, 1.0])


@pytest.mark.parametrize(
    ("normalization", "statistics", "omega", "expected"),
    [
        ("std", "step", 0.0, [0.724567, 0.724567, 0.724567, -1.207612, -1.207612, -1.207612, 0.724567, 0.724567]),
        ("std", "trajectory", 0.0, [0.577349, 0.577349, 0.577349, -1.154699, -1.154699, -1.154699, 0.577349, 0.577349]),
        ("std", "step", 1.0, [1.25698, 1.431673, 0.724567, -2.361174, -1.914718, -1.207612, 1.345716, 0.724567]),
        ("std", "trajectory", 1.0, [1.109762, 1.284455, 0.577349, -2.30826, -1.861804, -1.154699, 1.198498, 0.577349]),
        ("mean", "step", 0.0, [0.375, 0.375, 0.375, -0.625, -0.625, -0.625, 0.375, 0.375]),
        (
            "mean",
            "trajectory",
            0.0,
            [0.333333, 0.333333, 0.333333, -0.666667, -0.666667, -0.666667, 0.333333, 0.333333],
        ),
        ("mean", "step", 1.0, [0.66, 0.85, 0.375, -1.2425, -1.1, -0.625, 0.7075, 0.375]),
        (
            "mean",
            "trajectory",
            1.0,
            [0.618333, 0.808333, 0.333333, -1.284167, -1.141667, -0.666667, 0.665833, 0.333333],
        ),
    ],
)
def test_gigpo_has_the_worked_numbers(normalization, statistics, omega, expected):
    advantages = gigpo(keyed(THREE), normalization=normalization, statistics=statistics, omega=omega, **PROGRAM)
    assert flat(advantages) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("by_std", "expected"),
    [
        (True, [0.532413, 0.707106, 0.0, -1.153561, -0.707106, 0.0, 0.621148, 0.0]),
        (False, [0.285, 0.475, 0.0, -0.6175, -0.475, 0.0, 0.3325, 0.0]),
    ],
)
def test_part_of_the_states_has_the_worked_numbers(by_std, expected):
    turns = keyed(THREE)
    advantages = normalize(step_returns(turns, 0.95), state_labels(turns), 1e-6, by_std=by_std)
    assert flat(advantages) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("by_std", "expected"), [(False, [0.423333, 0.153333, -0.576667]), (True, [0.818298, 0.296391, -1.114689])]
)
def test_three_returns_from_one_state_of_a_shop(by_std, expected):
    advantages = normalize(torch.tensor([1.0, 0.73, 0.0]), torch.zeros(3, dtype=torch.long), 1e-6, by_std=by_std)
    assert advantages.tolist() == pytest.approx(expected, abs=1e-5)


def test_penalty_of_an_invalid_action_stays_on_its_turn():
    returns = rewards_to_go(table([[None, None, 1.0]]), 0.95) + 0.1 * local(table([[0.0, -1.0, 0.0]]))
    assert returns[0].tolist() == pytest.approx([0.9025, 0.85, 1.0])


@pytest.mark.parametrize(
    "texts", [["aX bX", "aY aX"], ["aX bX", "aX cX", "dX eX"]], ids=["a later turn too", "not all completions"]
)
def test_guard_leaves_states_that_compare_something_else(texts):
    turns = keyed(episodes_of(texts, [1.0, 0.0, 0.0][: len(texts)]))
    assert gigpo(turns).tolist() == gigpo(turns, guard_first_turn=False).tolist()
    assert (gigpo(turns) - gigpo(turns, omega=0.0))[0, 0].item() > 0.5


def test_turn_without_tokens_gets_nothing_and_is_no_example_for_others():
    episodes = episodes_of(["aX bX", "aX bY", "aX bZ"], [1.0, 0.0, 0.0])
    episodes[2][1] = ("b", None, 0.0)
    advantages = gigpo(keyed(episodes), epsilon=1e-6)
    assert advantages[:2, 1].tolist() == pytest.approx([1.154699 + 0.707106, -0.577349 - 0.707106], abs=1e-5)
    assert advantages[2].tolist() == pytest.approx([-0.577349, 0.0], abs=1e-5)


def test_return_of_a_truncated_completion_counts_from_the_cut():
    turns = keyed(episodes_of(["aX bX", "aX bX cX"], [0.4, 1.0]))  # the first was cut off after two turns
    assert step_returns(turns, 0.5).nan_to_num(0.0).tolist() == close([[0.2, 0.4, 0.0], [0.25, 0.5, 1.0]])


def test_visit_before_the_last_one_to_a_state_is_compared_with_it():
    turns = keyed(episodes_of(["aX aY bX", "cX"], [1.0, 1.0]))
    assert gigpo(turns, gamma=0.5, normalization="mean").tolist() == close([[-0.125, 0.125, 0.0], [0.0] * 3])
    assert (gigpo(turns._replace(num_generations=1)) == 0).all()  # in a group of one, by its own discount alone


KITCHEN = [
    "You are in kitchen. You see a mug 1.",
    "You are in kitchen. You see a mug 2.",
    "You open the fridge 1. It is empty.",
]


def test_similar_observations_share_a_key():
    ratios = [[SequenceMatcher(None, a, b).ratio() for b in KITCHEN] for a in KITCHEN]
    expected = [[1.0, 0.972222, 0.309859], [0.972222, 1.0, 0.422535], [0.366197, 0.338028, 1.0]]
    assert ratios == close(expected, abs=1e-5)
    assert similar_keys(KITCHEN) == [0, 0, 1]
    assert similar_keys(KITCHEN, threshold=0.98) == [0, 1, 2]
    assert similar_keys([KITCHEN[2], *KITCHEN]) == [0, 1, 1, 0]


def test_clusters_depend_on_the_order():
    texts = ["abcdefghij", "abcdefghiX", "abcdefghYX"]  # neighbours have the ratio 0.9, the ends 0.8
    assert similar_keys(texts, 0.9) == [0, 0, 1]
    assert similar_keys([texts[1], texts[0], texts[2]], 0.9) == [0, 0, 0]


def test_long_observations_that_differ_in_a_number_share_a_key():
    room = "You see " + ", ".join(f"a drawer {i}" for i in range(1, 40)) + ". On the table is a mug {}."
    assert similar_keys([room.format(1), "You see nothing.", room.format(2)]) == [0, 1, 0]
