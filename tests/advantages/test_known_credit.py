"""Turn estimators against turn credit that is known exactly (scripts/compare_turn_estimators.py)."""

import random
import sys
from pathlib import Path

import pytest
import torch

from acpo_trl.advantages import TURN_ESTIMATORS

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
import compare_turn_estimators as compare
import known_credit


@pytest.fixture(scope="module")
def figures():
    return compare.comparison(num_groups=100, seed=3)


def test_true_credit_adds_up_to_what_happened_minus_what_was_to_be_expected():
    dice = random.Random(1)
    for _ in range(200):
        episode = known_credit.play(dice, 6, sorted(dice.sample(range(5), 2)))
        assert sum(episode.credit) == pytest.approx(episode.rewards["outcome alone"][-1] - 0.6**2)


@pytest.mark.slow
def test_true_credit_is_what_the_turn_changes_on_average():
    """The mean outcome of good first deciding turns, minus that of all, is their credit."""
    dice = random.Random(2)
    episodes = [known_credit.play(dice, 4, [0, 2]) for _ in range(20_000)]
    good = [e.rewards["outcome alone"][-1] for e in episodes if e.actions[0] == 1]
    everyone = [e.rewards["outcome alone"][-1] for e in episodes]
    credit = next(e.credit[0] for e in episodes if e.actions[0] == 1)
    assert credit == pytest.approx(0.6 - 0.36)
    assert sum(good) / len(good) - sum(everyone) / len(everyone) == pytest.approx(credit, abs=0.015)


@pytest.mark.slow
def test_exact_values_are_the_mean_rewards_from_the_turn_on():
    dice = random.Random(4)
    episodes = [known_credit.play(dice, 4, [0, 2]) for _ in range(20_000)]
    for scoring, expected in {"outcome alone": 0.36, "with process": 0.36 + 2 * 0.6}.items():
        assert all(e.returns[scoring][0] == pytest.approx(expected) for e in episodes)
        totals = [sum(r for r in e.rewards[scoring] if r == r) for e in episodes]
        assert sum(totals) / len(totals) == pytest.approx(expected, abs=0.03)
    failed = [e for e in episodes if e.actions[0] == 0]
    assert {e.returns["outcome alone"][2] for e in failed} == {0.0}
    assert {e.returns["with process"][2] for e in failed} == {0.6}  # the second deciding turn is still paid


@pytest.mark.parametrize("scoring", ["outcome alone", "with process"])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_contributions_add_up_to_the_rewards(scoring, noise):
    turns = known_credit.table(known_credit.play_groups(20, seed=5), scoring, 8, noise)
    assert torch.allclose(turns.contributions.nansum(dim=1), turns.totals)


def test_comparing_equal_states_finds_more_of_the_true_credit_than_the_outcome(figures):
    assert set(figures) >= set(TURN_ESTIMATORS)
    assert min(figures[name][0] for name in ("gigpo", "hgpo", "salt")) > figures["outcome"][0] + 0.03
    assert figures["gigpo_similar"] == figures["gigpo"]  # names of states are equal or not alike at all


def test_the_first_step_of_an_exact_critic_is_the_true_credit(figures):
    assert figures["turn_ppo, lam 0"][0] == pytest.approx(1.0, abs=1e-9)
    assert figures["turn_ppo, lam 0, noisy"][0] < 0.8


@pytest.mark.parametrize("name", ["turn_ppo", "step_ppo", "ppo", "bilevel_gae"])
def test_an_exact_critic_beats_a_noisy_one_and_that_the_outcome(name, figures):
    assert figures[name][0] > figures[f"{name}, noisy"][0] + 0.05 > figures["outcome"][0] + 0.1


def test_errors_cost_beliefs_and_contributions_some_of_their_agreement(figures):
    for name in ("igpo", "spa_rl"):
        assert figures[name][0] > figures[f"{name}, noisy"][0] + 0.03


def test_noise_of_an_estimate_is_what_a_multiple_of_the_credit_does_not_explain():
    credit = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    assert compare.against(credit, 3 * credit) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-9))
    noise = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    assert compare.against(credit, 2 * credit + noise)[1] == pytest.approx(0.25)


def test_format_errors_blame_well_formed_turns_only_where_kinds_are_mixed():
    figures = compare.isolation(num_groups=50, seed=0)
    leaking = {name for name, (separate, *_) in figures.items() if separate != 0}
    assert leaking == {"spa_rl, fused"}  # the paper's bonus for valid actions, summed over all turns to come
    for name, (_, mixed, size) in figures.items():
        assert mixed > 0.4 * size if name != "local" else mixed == 0


def test_failure_of_five_turns_under_every_estimator(capsys):
    compare.print_failure()
    outcome_alone, with_process = capsys.readouterr().out.split("with process", 1)
    tables = [
        {
            " ".join(words[:-5]): [float(word) for word in words[-5:]]
            for words in map(str.split, lines)
            if len(words) > 5
        }
        for lines in (part.splitlines()[first:] for part, first in ((outcome_alone, 6), (with_process, 1)))
    ]
    assert all(set(table) == {*TURN_ESTIMATORS, "input V", "input entropy", "input contribution"} for table in tables)
    assert tables[0]["input contribution"] == [0.3, -0.2, 0.25, -0.25, -0.1]  # of V 0.5, 0.7, 0.4, 0.55, 0.2
    assert tables[0]["outcome"] == [-0.707] * 5
    assert tables[0]["gtpo_trajectory"][0] == 0  # the success begins with the same search
    for name in ("turn_ppo", "step_ppo", "ppo", "bilevel_gae"):
        assert min(tables[0][name]) == tables[0][name][1]  # going astray cost most of the chance
