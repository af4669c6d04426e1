"""The numbers of an evaluation: enumerations, what must not matter, and how often an interval holds the truth."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import evaluation as naive

from acpo_trl.evaluation.metrics import (
    Interval,
    interval,
    maj_at_k,
    mean_at_k,
    paired,
    pass_at_k,
    problem_maj_at_k,
    problem_mean,
    problem_pass_at_k,
    sign_test,
)

verdicts = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=8)
problems = st.lists(verdicts, min_size=1, max_size=6)
# A verdict belongs to a sample, so one class may hold both.
votes = st.lists(st.tuples(st.sampled_from([None, "1", "2", "3"]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=8)
eighths = st.lists(st.integers(0, 8).map(lambda i: Fraction(i, 8)), min_size=2, max_size=12)


def test_every_problem_counts_the_same_whatever_its_number_of_samples():
    assert mean_at_k([[1.0], [0.0, 0.0, 0.0, 1.0]]) == 0.625
    assert pass_at_k([[1.0, 0.0], [0.0, 0.0, 0.0, 1.0]], 2) == 0.75
    assert maj_at_k([[("4", 1.0)], [("5", 0.0), ("5", 0.0), ("4", 1.0)]]) == 0.5


def test_mean_over_no_problem_is_unknown():
    assert mean_at_k([]) is None and pass_at_k([], 1) is None and maj_at_k([]) is None and interval([]) is None


@given(verdicts, st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(samples, data):
    k = data.draw(st.integers(1, len(samples)))
    assert problem_pass_at_k(samples, k) == pytest.approx(naive.pass_at_k(samples, k), abs=1e-15)


@given(verdicts)
def test_pass_at_1_is_the_mean(samples):
    assert problem_pass_at_k(samples, 1) == problem_mean(samples)


def test_pass_at_k_is_exact_where_binomials_overflow_a_float():
    # C(9999, 100) / C(10000, 100) = 1 - 100 / 10000
    assert problem_pass_at_k([1.0] + [0.0] * 9999, 100) == 0.01


@given(votes)
def test_maj_at_k_is_the_mean_over_all_ways_to_decide_a_tie(samples):
    assert problem_maj_at_k(samples) == pytest.approx(naive.maj_at_k(samples), abs=1e-15)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([("4", 1.0), ("5", 0.0), ("4", 1.0)], 1.0, id="majority"),
        pytest.param([("4", 1.0), ("5", 0.0)], 0.5, id="tie of two"),
        pytest.param([("4", 1.0), ("5", 0.0), ("6", 0.0), ("7", 0.0)], 0.25, id="tie of four"),
        pytest.param([(None, 0.0), (None, 0.0), ("4", 1.0)], 1.0, id="one answer beats many without"),
        pytest.param([(None, 0.0), (None, 0.0)], 0.0, id="no answer at all"),
        pytest.param([(0, 1.0), (None, 0.0)], 1.0, id="a false class is an answer"),
    ],
)
def test_maj_at_k_of_small_elections(samples, expected):
    assert problem_maj_at_k(samples) == expected


@given(st.integers(0, 7), st.integers(0, 7))
def test_sign_test_is_the_share_of_coin_falls_as_uneven(gained, lost):
    assert sign_test(gained, lost) == naive.sign_test(gained, lost)


@pytest.mark.slow
def test_sign_test_of_a_textbook_case_and_of_thousands():
    assert sign_test(8, 1) == 0.0390625  # 2 * (1 + 9) / 512
    assert sign_test(20, 20) == 1.0
    assert sign_test(2100, 1900) == pytest.approx(0.001651, abs=2e-6)  # normal tail with continuity correction


@settings(max_examples=30, deadline=None)
@given(values=eighths.filter(lambda values: len(set(values)) > 1), confidence=st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_interval_is_the_naive_bootstrap_of_the_same_draws(values, confidence):
    got = interval(map(float, values), confidence, seed=3, resamples=200)
    assert got[:2] == pytest.approx(naive.bootstrap(values, confidence, seed=3, resamples=200), abs=1e-9)
    assert got.method == "bootstrap"


@settings(max_examples=30, deadline=None)
@given(samples=problems, random=st.randoms())
def test_order_of_problems_and_of_samples_changes_nothing(samples, random):
    shuffled = [random.sample(each, len(each)) for each in random.sample(samples, len(samples))]
    k = min(map(len, samples))
    assert mean_at_k(shuffled) == mean_at_k(samples)
    assert pass_at_k(shuffled, k) == pass_at_k(samples, k)
    assert interval(map(problem_mean, shuffled), resamples=100) == interval(map(problem_mean, samples), resamples=100)


@given(samples=votes, random=st.randoms())
def test_order_of_votes_and_names_of_answers_change_nothing(samples, random):
    renamed = [(answer and f"\\boxed{{{answer}}}", verdict) for answer, verdict in samples]
    assert problem_maj_at_k(random.sample(renamed, len(renamed))) == problem_maj_at_k(samples)


def test_interval_follows_from_the_seed_and_widens_with_confidence():
    values = [0.0, 0.0, 0.25, 1.0, 0.5, 0.0, 0.125]
    one, again, other = (interval(values, seed=seed, resamples=100) for seed in (1, 1, 2))
    assert one == again != other
    low, high, _ = interval(values, confidence=0.8)
    wide_low, wide_high, _ = interval(values, confidence=0.99)
    assert wide_low < low < sum(values) / 7 < high < wide_high


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        pytest.param([1.0] * 15, 0.05 ** (1 / 15), 1.0, id="all right"),
        pytest.param([0.0] * 300, 0.0, 1 - 0.05 ** (1 / 300), id="all wrong"),
        pytest.param([0.25] * 2, 0.25 * 0.05**0.5, 1 - 0.75 * 0.05**0.5, id="all a quarter"),
        pytest.param([0.5], 0.025, 0.975, id="one problem"),
        pytest.param([0.3, 0.1 + 0.2], 0.3 * 0.05**0.5, 1 - 0.7 * 0.05**0.5, id="equal but for rounding"),
    ],
)
def test_equal_values_give_an_interval_with_width(values, low, high):
    got = interval(values)
    assert got.method == "rule of three"
    assert got[:2] == pytest.approx((low, high), abs=1e-12)


def test_rule_of_three_is_three_over_n():
    assert interval([0.0] * 300).high == pytest.approx(3 / 300, rel=0.01)


def test_paired_tells_what_was_gained_and_lost():
    before = {"p1": [0.0, 0.0], "p2": [1.0, 0.0], "p3": [1.0, 1.0], "p4": [1.0, 0.0], "p5": [0.0]}
    after = {"p5": [1.0], "p4": [0.0, 1.0], "p3": [1.0, 0.0], "p2": [1.0, 1.0], "p1": [1.0, 0.0]}
    got = paired(before, after, seed=5, resamples=300)
    assert (got.gained, got.lost, got.num_equal) == (["p1", "p2", "p5"], ["p3"], 1)
    assert got.difference == 0.3
    assert got.p_value == 0.625  # 2 * (1 + 4) / 16
    halves = [Fraction(i, 2) for i in (1, 1, -1, 0, 2)]
    assert got.interval[:2] == pytest.approx(naive.bootstrap(halves, 0.95, 5, 300, lowest=-1), abs=1e-9)


def test_paired_with_itself_is_equal_but_not_surely():
    same = {str(i): [float(i % 2)] for i in range(30)}
    other = 1 - 0.05 ** (1 / 30)
    got = paired(same, same)
    assert got == (0.0, Interval(pytest.approx(-other), pytest.approx(other), "rule of three"), 1.0, [], [], 30)
    assert paired({}, {}) == (None, None, 1.0, [], [], 0)


def test_means_of_other_numbers_of_samples_are_compared_without_rounding():
    got = paired({"p": [1.0, 0.0, 0.0]}, {"p": [1.0, 0.0, 0.0] * 3})
    assert (got.gained, got.lost, got.num_equal) == ([], [], 1)


def test_equal_means_of_partial_verdicts_are_equal_however_they_were_rounded():
    got = paired({"p": [0.1, 0.2]}, {"p": [0.15]})  # 0.15000000000000002 and 0.15
    assert (got.difference, got.gained, got.lost, got.num_equal) == (0.0, [], [], 1)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(verdicts, verdicts), min_size=1, max_size=8), st.randoms())
def test_paired_the_other_way_round_swaps_the_sign(pairs, random):
    a, b = ({str(i): pair[side] for i, pair in enumerate(pairs)} for side in (0, 1))
    forth = paired(a, b, resamples=100)
    back = paired(dict(random.sample(list(b.items()), len(b))), a, resamples=100)
    assert back.difference == -forth.difference and back.p_value == forth.p_value
    assert (set(back.gained), set(back.lost)) == (set(forth.lost), set(forth.gained))
    assert back.num_equal == forth.num_equal


@pytest.mark.parametrize(
    ("call", "words"),
    [
        pytest.param(lambda: pass_at_k([[1.0, 0.0], [1.0]], 2), "k 2: a problem has 1 scored", id="too few samples"),
        pytest.param(lambda: pass_at_k([[1.0]], 0), "k 0", id="k 0"),
        pytest.param(lambda: pass_at_k([[0.5, 1.0]], 1), "verdict 0.5", id="partial verdict"),
        pytest.param(lambda: mean_at_k([[1.0], []]), r"verdicts \[\]", id="no samples"),
        pytest.param(lambda: mean_at_k([[float("nan")]]), "verdict nan", id="nan"),
        pytest.param(lambda: maj_at_k([[]]), r"verdicts \[\]", id="no votes"),
        pytest.param(lambda: maj_at_k([[(None, 2.0), ("1", 1.0)]]), "verdict 2.0", id="verdict of a lost vote"),
        pytest.param(lambda: interval([0.5, 1.5]), "value of a problem 1.5", id="value out of bounds"),
        pytest.param(lambda: interval([0.5, float("nan")]), "value of a problem nan", id="value nan"),
        pytest.param(lambda: interval([0.5], confidence=95), "confidence 95", id="confidence in percent"),
        pytest.param(lambda: interval([0.5], resamples=10), "resamples 10", id="too few resamples"),
        pytest.param(lambda: paired({"p1": [1.0], "p2": [1.0]}, {"p2": [1.0], "p9": [0.0]}), "'p1', 'p9'", id="ids"),
    ],
)
def test_what_cannot_be_counted_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# Chance of a right sample over problems: Beta(alpha, beta), from even to nearly always wrong or right.
POPULATIONS = [(1, 1), (0.5, 0.5), (0.2, 0.2), (0.3, 3), (2, 6), (8, 1)]


def draw(n, population, k, times, seed):
    """(times, n, k) verdicts of a model, and those of one that gets a tenth of what the first misses."""
    random = np.random.default_rng(seed)
    chances = random.beta(*population, size=(times, n, 1))
    return [(random.random((times, n, k)) < p).astype(float) for p in (chances, chances + 0.1 * (1 - chances))]


def coverage(intervals, truth):
    return np.mean([low - 1e-9 <= truth <= high + 1e-9 for low, high, *_ in intervals])


@pytest.mark.slow
def test_interval_holds_the_truth_as_often_as_it_says():
    verdicts, _ = draw(30, (0.5, 0.5), 8, times=500, seed=0)
    assert 0.925 < coverage([interval(each, resamples=500) for each in verdicts.mean(2)], 0.5) < 0.975
    assert 0.76 < coverage([interval(each, 0.8, resamples=500) for each in verdicts.mean(2)], 0.5) < 0.86


def test_a_bootstrap_of_samples_instead_of_problems_would_be_caught():
    verdicts, _ = draw(30, (0.5, 0.5), 8, times=500, seed=0)
    assert coverage([interval(each.ravel(), resamples=500) for each in verdicts], 0.5) < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize(("n", "lowest"), [(15, 0.88), (30, 0.90), (100, 0.91), (500, 0.92)])
def test_interval_holds_the_truth_in_all_populations(n, lowest, k):
    for population in POPULATIONS:
        miss = population[1] / sum(population)
        before, after = (verdicts.mean(2) for verdicts in draw(n, population, k, times=600, seed=n + k))
        of_means = [interval(each, resamples=500) for each in before]
        assert coverage(of_means, 1 - miss) > lowest, population
        of_differences = [interval(each, resamples=500, bounds=(-1, 1)) for each in after - before]
        assert coverage(of_differences, 0.1 * miss) > max(lowest, 0.91), population


@pytest.mark.slow
def test_the_other_bootstraps_miss_the_truth_or_say_little():
    before, after = (verdicts.mean(2) for verdicts in draw(15, (8, 1), 1, times=600, seed=0))
    chosen = [interval(each, resamples=500, bounds=(-1, 1)) for each in after - before]
    others = [
        naive.other_bootstraps(each, seed, 500) or dict.fromkeys(("percentile", "bca", "studentized"), same)
        for seed, (each, same) in enumerate(zip(after - before, chosen, strict=True))
    ]
    held = {name: coverage([other[name] for other in others], 0.1 / 9) for name in others[0]}
    assert coverage(chosen, 0.1 / 9) > 0.93 > 0.88 > max(held.values()), held
    assert np.mean([high - low for low, high, _ in chosen]) < 0.6
    assert np.mean([np.diff(other["studentized"][:2]) for other in others]) > 0.6
