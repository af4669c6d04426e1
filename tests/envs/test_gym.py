"""Gymnasium's interface as a step environment."""

import functools
import pickle

import pytest

from acpo_trl.envs import GymEnvironment

MOVES = {"left": -1, "right": 1}


class Corridor:
    """Walk from cell 0, or the seed's, to cell 2 in at most three steps."""

    def reset(self, *, seed=None, options=None):
        self.cell, self.num_steps = seed or 0, 0
        return self.cell, {"cells": object()}

    def step(self, action):
        self.cell += action
        self.num_steps += 1
        return self.cell, int(self.cell == 2), self.cell == 2, self.num_steps == 3, {}


def to_text(cell):
    return f"You are in cell {cell}."


def to_action(text):
    if text.strip() not in MOVES:
        raise ValueError(f"{text.strip()!r} is no move; say left or right.")
    return MOVES[text.strip()]


@pytest.fixture
def corridor():
    return GymEnvironment(Corridor, to_text, to_action)


def test_a_walk_to_the_end(corridor):
    assert corridor.reset(prompt="Walk.") == "You are in cell 0."
    first, last = corridor.step("right"), corridor.step(" right\n")
    assert (first.observation, first.rewards, first.done) == (
        "You are in cell 1.",
        {"process": 0.0, "format": 0.0},
        False,
    )
    assert (last.observation, last.rewards, last.done) == ("You are in cell 2.", {"process": 1.0, "format": 0.0}, True)
    assert (first.state_key, last.state_key) == ("You are in cell 0.", "You are in cell 1.")
    assert last.info == {"terminated": True, "truncated": False}
    assert type(last.rewards["process"]) is float


def test_a_truncated_episode_is_over(corridor):
    corridor.reset()
    steps = [corridor.step("left") for _ in range(3)]
    assert [step.done for step in steps] == [False, False, True]
    assert steps[-1].info == {"terminated": False, "truncated": True}


def test_a_text_that_is_no_action_takes_no_step(corridor):
    corridor.reset()
    step = corridor.step("fly")
    assert step.observation == "Nothing was done: 'fly' is no move; say left or right."
    assert (step.rewards, step.done) == ({"process": None, "format": -1.0}, False)
    assert corridor.step("right").state_key == "You are in cell 0."
    assert corridor.step("right").done


def test_the_reward_goes_to_the_kind_that_was_asked_for():
    environment = GymEnvironment(Corridor, to_action=to_action, kind="outcome")
    assert environment.reward_kinds == ("outcome", "format")
    assert environment.reset(seed=1) == "1"
    assert environment.step("right").rewards == {"outcome": 1.0, "format": 0.0}


@pytest.mark.parametrize("kind", ["foo", "format", None])
def test_an_unknown_kind_is_refused(kind):
    with pytest.raises(ValueError, match=f"kind {kind!r}: no kind of the environment's reward"):
        GymEnvironment(Corridor, kind=kind)


def test_reset_leaves_nothing_of_the_episode_before(corridor):
    corridor.reset()
    corridor.step("right")
    assert corridor.reset(seed=0) == "You are in cell 0."
    assert corridor.step("left").state_key == "You are in cell 0."


def test_a_factory_can_be_pickled():
    factory = functools.partial(GymEnvironment, Corridor, to_text=to_text, to_action=to_action)
    assert pickle.loads(pickle.dumps(factory))().reset() == "You are in cell 0."
