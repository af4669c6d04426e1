"""The numbers of an evaluation: mean@k, pass@k, maj@k, and how far they can be trusted.

A verdict is 0 (wrong) to 1 (right). Samples without one are taken out before, so a problem may have fewer than k. What
is not known, such as the mean over no problem, is None.

Why `interval` is the bootstrap it is: share of 95% intervals that held the truth, lowest and mean over 18 cases (1, 2
and 8 samples; chance of a right one from Beta(1, 1), (.5, .5), (.2, .2), (.3, 3), (2, 6), (8, 1)), 1000 runs of each,
1000 resamples. On the right, for the difference to a model that gets a tenth of the misses right. Studentized
intervals hold a mean by their length: 0.82 for 15 problems, one sample and Beta(8, 1), where `interval` has 0.34.

    mean  percentile   BCa          studentized  `interval`   paired  percentile   BCa          studentized  `interval`
    15    0.876 0.931  0.900 0.957  0.943 0.984  0.909 0.965  15      0.794 0.899  0.764 0.880  0.848 0.915  0.947 0.958
    30    0.848 0.937  0.937 0.956  0.948 0.972  0.930 0.961  30      0.902 0.933  0.880 0.922  0.896 0.933  0.953 0.964
    100   0.914 0.946  0.942 0.954  0.944 0.958  0.943 0.957  100     0.919 0.943  0.920 0.939  0.923 0.940  0.937 0.957
    500   0.930 0.949  0.928 0.950  0.930 0.950  0.931 0.951  500     0.934 0.950  0.932 0.948  0.928 0.948  0.934 0.954
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import comb
from statistics import fmean
from typing import NamedTuple

import numpy as np

Vote = tuple[Hashable | None, float]
"""The class of equal answers that a sample belongs to, None without an answer; and its verdict."""

# Equal fractions that were rounded differently are one value.
DECIMALS = 12


def mean_at_k(verdicts: Iterable[Sequence[float]]) -> float | None:
    """Mean over problems of the mean verdict of their samples, see `problem_mean`."""
    return _mean(map(problem_mean, verdicts))


def pass_at_k(verdicts: Iterable[Sequence[float]], k: int) -> float | None:
    """Mean over problems of the chance that one of k samples is right, see `problem_pass_at_k`."""
    return _mean(problem_pass_at_k(each, k) for each in verdicts)


def maj_at_k(votes: Iterable[Sequence[Vote]]) -> float | None:
    """Mean over problems of the verdict of the most frequent answer, see `problem_maj_at_k`."""
    return _mean(map(problem_maj_at_k, votes))


def problem_mean(verdicts: Sequence[float]) -> float:
    """Mean verdict of the samples of one problem, the same to the last bit in any order.

    Raises:
        ValueError: no verdict, or one outside 0 to 1.
    """
    if not verdicts:
        raise ValueError("verdicts []: a mean of none is unknown; expected one or more; leave the problem out")
    wrong = [verdict for verdict in verdicts if not 0 <= verdict <= 1]
    if wrong:
        raise ValueError(
            f"verdict {wrong[0]!r}: it cannot be averaged; expected 0 to 1; take out samples that were not scored"
        )
    return fmean(verdicts)


def problem_pass_at_k(verdicts: Sequence[float], k: int) -> float:
    """Share of the k-subsets of a problem's samples that hold a right one: 1 - C(n - c, k) / C(n, k).

    It estimates the chance that one of k samples is right, without bias. Whole numbers of any size keep it exact.

    Args:
        verdicts: 1 or 0 for each of n samples, c of them 1.
        k: 1 to n.

    Raises:
        ValueError: fewer than k samples, or a verdict between 0 and 1.

    Source: Chen et al. 2021, arXiv:2107.03374, section 2.1.
    """
    n = len(verdicts)
    if not 1 <= k <= n:
        raise ValueError(
            f"k {k!r}: a problem has {n} scored samples; expected 1 to {n}; draw more samples or leave the problem out"
        )
    partial = [verdict for verdict in verdicts if verdict not in (0, 1)]
    if partial:
        raise ValueError(
            f"verdict {partial[0]!r}: pass@k counts right samples; expected 0 or 1; use mean@k for partial verdicts"
        )
    subsets = comb(n, k)
    return (subsets - comb(verdicts.count(0), k)) / subsets


def problem_maj_at_k(votes: Sequence[Vote]) -> float:
    """Expected verdict of the answer that most samples of a problem give, ties decided by lot.

    Samples without an answer have no vote; if none has one, the problem is wrong. Should samples of one class differ
    in verdict, the class has their mean.

    Source: Wang et al. 2023, arXiv:2203.11171 (self-consistency).
    """
    classes = defaultdict(list)
    for answer, verdict in votes:
        classes[answer].append(verdict)
    problem_mean([verdict for _, verdict in votes])  # raises for what has no mean
    classes.pop(None, None)
    most = max(map(len, classes.values()), default=0)
    return fmean([fmean(each) for each in classes.values() if len(each) == most] or [0.0])


class Interval(NamedTuple):
    """Where the mean over all problems of this kind lies, of which the benchmark is a sample."""

    low: float
    high: float
    method: str
    """"bootstrap", or "rule of three" when all values are equal."""


def interval(
    values: Iterable[float],
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = 10_000,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval | None:
    """Confidence interval of the mean over problems.

    A percentile bootstrap that draws problems, each with all its samples, from those seen and two unseen ones: as far
    from the mean on either side as the furthest seen, within the bounds. Without these two it is too short where few
    problems differ. The resamples follow from the seed, whatever the order of the values.

    Equal values tell a bootstrap nothing about their spread. They do say that at most 1 - (1 - confidence) ** (1 / n)
    of all problems differ from them (about 3 / n, the rule of three), by no more than the bounds allow: 15 right of 15
    gives 0.82 to 1.

    Args:
        values: a number for each problem, such as its mean verdict or its pass@k.
        confidence: 0.5 to 0.999.
        seed: of the resamples.
        resamples: 100 or more.
        bounds: lowest and highest value that a problem can have.

    Returns:
        The interval, or None without a value.

    Raises:
        ValueError: a value outside the bounds, or an argument outside its range.

    Source: Efron 1979, Ann. Stat. 7:1; Agresti and Coull 1998, Am. Stat. 52:119, for unseen problems; Hanley and
    Lippman-Hand 1983, JAMA 249:1743.
    """
    _check_range("confidence", confidence, 0.5, 0.999)
    _check_range("resamples", resamples, 100, 10_000_000)
    known = np.round(list(values), DECIMALS)
    n = len(known)
    if not n:
        return None
    for value in (known.min(), known.max()):
        _check_range("value of a problem", float(value), *bounds)
    if known.min() == known.max():
        return _rule_of_three(float(known[0]), n, confidence, bounds)
    distinct, counts = np.unique(np.append(known, _unseen(known, bounds)), return_counts=True)
    # How often each value is drawn says all about a resample.
    draws = np.random.default_rng(seed).multinomial(n, counts / counts.sum(), size=resamples)
    low, high = np.quantile(draws @ distinct / n, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high), "bootstrap")


def _unseen(known: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    mean = fmean(known)
    furthest = np.abs(known - mean).max()
    return np.round(np.clip([mean - furthest, mean + furthest], *bounds), DECIMALS)


def _rule_of_three(value: float, n: int, confidence: float, bounds: tuple[float, float]) -> Interval:
    lowest, highest = bounds
    other = 1 - (1 - confidence) ** (1 / n)
    return Interval(value - other * (value - lowest), value + other * (highest - value), "rule of three")


class Paired(NamedTuple):
    """How evaluation b differs from evaluation a of the same problems."""

    difference: float | None
    """Mean over problems of b - a."""
    interval: Interval | None
    """Of the difference."""
    p_value: float
    """Two-sided, of the sign test."""
    gained: list[str]
    """Problems with a higher mean verdict in b."""
    lost: list[str]
    """Problems with a lower one."""
    num_equal: int


def paired(
    a: Mapping[str, Sequence[float]],
    b: Mapping[str, Sequence[float]],
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = 10_000,
) -> Paired:
    """What changed from a to b, problem by problem.

    Args:
        a: verdicts of the samples of each problem, by its id.
        b: of the same problems; their samples may be more or fewer.
        confidence, seed, resamples: see `interval`.

    Raises:
        ValueError: a problem is in one of them only, or `problem_mean` refuses its verdicts.
    """
    alone = sorted(a.keys() ^ b.keys())
    if alone:
        raise ValueError(
            f"problems {alone!r}: they are in one of the two evaluations only; expected the same problems in both; "
            "evaluate what is missing, or leave these out"
        )
    differences = {name: round(problem_mean(b[name]) - problem_mean(a[name]), DECIMALS) for name in a}
    gained = [name for name, difference in differences.items() if difference > 0]
    lost = [name for name, difference in differences.items() if difference < 0]
    return Paired(
        _mean(differences.values()),
        interval(differences.values(), confidence, seed, resamples, bounds=(-1.0, 1.0)),
        sign_test(len(gained), len(lost)),
        gained,
        lost,
        len(differences) - len(gained) - len(lost),
    )


def sign_test(num_gained: int, num_lost: int) -> float:
    """Chance that fair coins for the problems that differ fall at least this unevenly, in either direction.

    Source: Dixon and Mood 1946, J. Am. Stat. Assoc. 41:557.
    """
    n = num_gained + num_lost
    tail = sum(comb(n, i) for i in range(min(num_gained, num_lost) + 1))
    return min(1.0, 2 * tail / 2**n)


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None


def _check_range(what: str, value: float, lowest: float, highest: float) -> None:
    if not lowest <= value <= highest:
        raise ValueError(f"{what} {value!r}: it is out of range; expected {lowest:g} to {highest:g}")
