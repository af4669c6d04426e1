"""A word when completions have more or fewer turns than the estimator is meant for."""

import pytest
from tiny import build_trainer

from acpo_trl.advantages import TURN_ESTIMATORS
from acpo_trl.advantages.tiers import LONG, MIDDLE, SHORT, TIERS, hint_of
from acpo_trl.trainer.turn_hint import TurnHint


def test_tiers_are_of_estimators_that_exist_and_follow_each_other():
    assert set(TIERS) <= set(TURN_ESTIMATORS)
    assert (SHORT[1], MIDDLE[1]) == (MIDDLE[0], LONG[0]) == (5, 15)


@pytest.mark.parametrize(("estimator", "turns"), [("outcome", 5.0), ("gigpo", 5.0), ("salt", 15.0), ("process", 40.0)])
def test_inside_its_tier_an_estimator_is_not_spoken_of(estimator, turns):
    assert hint_of(estimator, turns) is None


@pytest.mark.parametrize(
    ("estimator", "turns", "others"),
    [("outcome", 7.25, "milestone"), ("gigpo", 3.0, "outcome"), ("process", 8.0, "salt"), ("hgpo", 22.0, "spa_rl")],
)
def test_outside_its_tier_the_hint_names_the_measured_mean_and_estimators_for_it(estimator, turns, others):
    hint = hint_of(estimator, turns)
    assert f"{estimator!r} with {turns:.1f} turns on average" in hint
    assert others in hint.split("for as many as here")[1]


@pytest.mark.parametrize("estimator", ["turn_ppo", "ppo", "my_package.mine"])
def test_estimators_without_a_tier_are_not_spoken_of(estimator):
    assert hint_of(estimator, 1.0) is None


def test_the_hint_comes_once_and_from_enough_completions(caplog):
    hint = TurnHint("outcome")
    hint.measure([9] * 99)
    assert not caplog.records
    hint.measure([9])
    hint.measure([9] * 200)
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "turn_estimator 'outcome' with 9.0 turns on average"
    ]


def test_other_processes_keep_quiet(caplog):
    TurnHint("outcome", is_heard=False).measure([9] * 200)
    assert not caplog.records


@pytest.mark.slow
def test_a_run_speaks_of_an_estimator_for_more_turns(tmp_path, caplog):
    trainer = build_trainer(
        output_dir=str(tmp_path), turn_estimator="gigpo", per_device_train_batch_size=32, max_steps=4
    )
    trainer.train()
    assert caplog.text.count("turn_estimator 'gigpo' with 1.0 turns on average") == 1
