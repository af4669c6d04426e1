"""Numbers of an evaluation by enumeration, in plain Python. Imports nothing of acpo_trl."""

from fractions import Fraction
from itertools import combinations, product
from statistics import NormalDist

import numpy as np


def pass_at_k(verdicts, k):
    subsets = list(combinations(verdicts, k))
    return sum(any(subset) for subset in subsets) / len(subsets)


def maj_at_k(votes):
    """Over every order in which a tie can be decided, and every member that can stand for its class."""
    answers = [answer for answer, _ in votes if answer is not None]
    most = max((answers.count(answer) for answer in answers), default=0)
    winners = [verdict for answer, verdict in votes if answer is not None and answers.count(answer) == most]
    return sum(winners) / len(winners) if winners else 0.0


def sign_test(num_gained, num_lost):
    """Over every way that coins can fall."""
    n = num_gained + num_lost
    falls = [abs(2 * sum(coins) - n) >= abs(num_gained - num_lost) for coins in product((0, 1), repeat=n)]
    return sum(falls) / len(falls)


def quantile(values, level):
    """Between neighbours in proportion, the lowest at 0 and the highest at 1."""
    ordered = sorted(values)
    place = level * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 2)
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])


def bootstrap(values, confidence, seed, resamples, lowest=0, highest=1):
    """Percentiles over resamples of the problems and two unseen ones, from numpy's draws. `values` are fractions."""
    n, mean = len(values), Fraction(sum(values), len(values))
    furthest = max(abs(value - mean) for value in values)
    pool = [*values, max(mean - furthest, lowest), min(mean + furthest, highest)]
    distinct = sorted(set(pool))
    random = np.random.default_rng(seed)
    means = []
    for _ in range(resamples):
        times = random.multinomial(n, [pool.count(value) / len(pool) for value in distinct])
        means.append(float(sum(int(t) * value for t, value in zip(times, distinct, strict=True)) / n))
    return quantile(means, (1 - confidence) / 2), quantile(means, (1 + confidence) / 2)


def other_bootstraps(values, seed, resamples):
    """95% intervals that were not chosen, by name; None where all values are equal."""
    values, normal = np.asarray(values), NormalDist()
    n, mean, error = len(values), values.mean(), values.std() / np.sqrt(len(values) - 1)
    if np.ptp(values) < 1e-9:
        return None
    samples = np.random.default_rng(seed).choice(values, size=(resamples, n))
    means, errors = samples.mean(1), samples.std(1) / np.sqrt(n - 1)
    away = np.where(np.abs(means - mean) < 1e-9, 0.0, means - mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(away == 0, 0.0, away / errors)
    low, high = np.quantile(t, (0.975, 0.025), method="nearest")
    bias = normal.inv_cdf((1 + (away < 0).mean() - (away > 0).mean()) / 2)
    skew = ((values - mean) ** 3).sum() / (6 * ((values - mean) ** 2).sum() ** 1.5)
    levels = [normal.cdf(bias + (bias + z) / (1 - skew * (bias + z))) for z in (-1.959964, 1.959964)]
    return {
        "percentile": tuple(np.quantile(means, (0.025, 0.975))),
        "bca": tuple(np.quantile(means, levels)),
        "studentized": (mean - low * error, mean - high * error),
    }
