"""Turn estimators against turn credit that is known exactly (scripts/compare_turn_estimators.py)."""

import importlib.util
import random
from pathlib import Path

import pytest
import torch

from acpo_trl.advantages import TURN_ESTIMATORS

SCRIPT = Path(__file__).parents[2] / "scripts" / "compare_turn_estimators.py"
spec = importlib.util.spec_from_file_location("compare_turn_estimators", SCRIPT)
compare = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compare)


def test_true_credit_adds_up_to_what_happened_minus_what_was_to_be_expected():
    dice = random.Random(1)
    for _ in range(200):
        episode = compare.episode(dice, 6, sorted(dice.sample(range(5), 2)))
        assert sum(episode["credit"]) == pytest.approx(episode["outcome"][-1] - 0.6**2)


def test_true_credit_is_what_the_turn_changes_on_average():
    """The mean outcome of good first deciding turns, minus that of all, is their credit."""
    dice = random.Random(2)
    episodes = [compare.episode(dice, 4, [0, 2]) for _ in range(20_000)]
    good = [e["outcome"][-1] for e in episodes if e["actions"][0] == 1]
    everyone = [e["outcome"][-1] for e in episodes]
    credit = next(e["credit"][0] for e in episodes if e["actions"][0] == 1)
    assert credit == pytest.approx(0.6 - 0.36)
    assert sum(good) / len(good) - sum(everyone) / len(everyone) == pytest.approx(credit, abs=0.015)


def test_comparing_equal_states_finds_more_of_the_true_credit_than_the_outcome(capsys):
    compare.print_comparison(num_groups=100, seed=3)
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines() if line.strip()}
    correlations = {name: float(lines[name][0]) for name in TURN_ESTIMATORS}
    assert min(correlations[name] for name in ("gigpo", "hgpo", "salt")) > correlations["outcome"] + 0.03
    assert set(lines) > set(TURN_ESTIMATORS)


def test_noise_of_an_estimate_is_what_a_multiple_of_the_credit_does_not_explain():
    credit = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    assert compare.against(credit, 3 * credit) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-9))
    noise = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    assert compare.against(credit, 2 * credit + noise)[1] == pytest.approx(0.25)
