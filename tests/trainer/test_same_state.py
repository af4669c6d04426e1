"""Estimators that compare turns of the same state, in the trainer, on cards of `lookup`."""

import pytest
import torch
from scripted import call, scripted_trainer

from acpo_trl.envs.lookup import Lookup, lookup_tasks

TASK = next(task for task in lookup_tasks(50, seed=0) if len(task["path"]) == 2)
FIRST, SECOND, RIGHT = *TASK["path"], TASK["solution"]
WRONG = str(9 - int(RIGHT))
BESIDE = next(letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in TASK["path"])


def look(card):
    return call("look", key=card)


def batch_of(tmp_path, script, **options):
    row = {key: TASK[key] for key in ("path", "cards", "solution")}
    weights = [1.0, 0.0, 0.0, 0.0]  # outcomes alone
    trainer = scripted_trainer(
        tmp_path, script, None, rows=[row], environment_factory=Lookup, reward_weights=weights, **options
    )
    trainer.train()
    return trainer.batches[0]


def by_turn(batch, row):
    ids = batch["turn_ids"][row]
    return [batch["advantages"][row][ids == turn].unique().tolist() for turn in range(int(ids.max()) + 1)]


@pytest.mark.parametrize("name", ["gigpo", *(pytest.param(name, marks=pytest.mark.slow) for name in ("hgpo", "salt"))])
def test_good_and_bad_turn_from_the_same_state_have_opposite_signs(tmp_path, name):
    # All read the first card. Then one reads the second and answers right; one reads a card beside the path.
    script = [[look(FIRST)] * 3, [look(SECOND), look(BESIDE), WRONG], [RIGHT, WRONG]]
    batch = batch_of(tmp_path, script, turn_estimator=name)
    good, beside, guess = ([turn[0] for turn in by_turn(batch, row)] for row in range(3))
    assert good[1] > 0.5 > -0.5 > beside[1]
    assert guess[1] < -0.5
    assert (batch["advantages"][batch["turn_ids"] < 0] == 0).all()
    if name == "salt":
        assert [good[0], beside[0], guess[0]] == pytest.approx(
            [0.0] * 3, abs=1e-6
        )  # what all did is to nobody's credit


@pytest.mark.slow
def test_gigpo_of_completions_that_never_meet_is_grpo(tmp_path):
    script = [[look(FIRST), WRONG], [RIGHT]]  # they share the prompt only
    one, plain = batch_of(tmp_path, script, turn_estimator="gigpo"), batch_of(tmp_path, script)
    mask = one["turn_ids"] >= 0
    expected = plain["advantages"].unsqueeze(1).expand_as(mask)
    assert torch.allclose(one["advantages"][mask], expected[mask], atol=1e-6)
    assert plain["advantages"].abs().min() > 0.5
