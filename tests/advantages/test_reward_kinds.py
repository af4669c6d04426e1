"""Kinds kept apart, mixed, and GDPO: who is blamed for what."""

import pytest
import torch
from turn_tables import table

from acpo_trl.advantages import KIND_ESTIMATORS, combine, gdpo, mixed, outcome, process

ONES = {"outcome": 1.0, "format": 1.0}


def test_a_format_error_blames_no_other_turn_unless_kinds_are_mixed():
    """Two completions of three turns, equally right; the first breaks the format in its second turn."""
    clean = {"outcome": table([[None, None, 1.0], [None, None, 1.0]]), "format": table([[0, 0, 0], [0, 0, 0.0]])}
    broken = {**clean, "format": table([[0, -1.0, 0], [0, 0, 0]])}
    apart = combine(broken, ONES)[0] - combine(clean, ONES)[0]
    assert apart.tolist() == [[0, -1, 0], [0, 0, 0]]
    together = mixed(broken, ONES, outcome)[0] - mixed(clean, ONES, outcome)[0]
    assert together[0].tolist() == pytest.approx([-0.707007] * 3, abs=1e-5)  # its well-formed turns pay as well
    assert together[1].tolist() == pytest.approx([0.707007] * 3, abs=1e-5)  # and the other completion is paid for it


def test_mixed_kinds_are_the_usual_summed_reward():
    tables = {"outcome": table([[None, 1.0], [0.0]]), "cost": table([[-1.0, -1.0], [None]])}
    advantages, shares, _ = mixed(tables, {"outcome": 1.0, "cost": 0.25}, outcome)
    assert advantages.tolist() == outcome(table([[0.0, 0.5], [0.0]])).tolist()
    assert shares == {}


def test_gdpo_tells_one_better_reward_from_two():
    def before_batch(rows):
        tables = {kind: table([[row[i]] for row in rows]) for i, kind in enumerate(("outcome", "format"))}
        return sum(outcome(turns)[:, 0] for turns in tables.values()).tolist()

    assert before_batch([[0.0, 0.0], [1.0, 0.0]]) == pytest.approx([-0.707007, 0.707007], abs=1e-5)
    assert before_batch([[0.0, 0.0], [1.0, 1.0]]) == pytest.approx([-1.414014, 1.414014], abs=1e-5)
    both = {"outcome": table([[0.0], [1.0]]), "format": table([[0.0], [1.0]])}
    summed = mixed(both, ONES, outcome)[0].flatten().tolist()
    assert summed == pytest.approx([-0.707057, 0.707057], abs=1e-6)  # as if one were better
    # in one batch of both groups the second counts twice as much
    tables = {
        "outcome": table([[0.0], [1.0], [0.0], [1.0]], 2),
        "format": table([[0.0], [0.0], [0.0], [1.0]], 2),
    }
    advantages = gdpo(tables, ONES)[0][:, 0]
    assert (advantages[3] / advantages[1]).item() == pytest.approx(2.0, rel=1e-6)
    assert advantages.mean().item() == pytest.approx(0.0, abs=1e-9)
    assert advantages.std().item() == pytest.approx(1.0, abs=1e-3)


def test_gdpo_gives_unscored_rows_and_missing_turns_nothing():
    advantages = gdpo({"outcome": table([[None, 1.0], [0.0], [None]])}, {"outcome": 1.0})[0]
    assert advantages[2].tolist() == [0, 0]
    assert advantages[1, 1] == 0
    assert advantages[0, 0] == advantages[0, 1] > 0


def test_estimator_of_a_kind_can_be_chosen():
    tables = {"outcome": table([[None, 1.0], [0.0]]), "cost": table([[-1.0, 0.0], [-0.5]])}
    advantages, *_ = combine(tables, {"outcome": 1.0, "cost": 0.5}, {**KIND_ESTIMATORS, "cost": process})
    expected = outcome(tables["outcome"]) + 0.5 * process(tables["cost"])
    assert torch.equal(advantages, expected)
