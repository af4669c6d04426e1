"""The numbers of an evaluation, and the file that holds them."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from .benchmarks import Benchmark, Problem
from .checks import vote_classes
from .metrics import Interval, Vote, interval, problem_maj_at_k, problem_mean, problem_pass_at_k
from .samples import Sample, write_whole

FILE = "results.json"


@dataclass(frozen=True)
class Estimate:
    """A mean over problems."""

    mean: float
    interval: Interval
    num_problems: int
    """That could be told about; the others are in no mean."""


@dataclass(frozen=True)
class GroupResult:
    """The problems of one subject or level."""

    num_problems: int
    mean_at_k: Estimate | None
    truncation_rate: float
    mean_tokens: float


@dataclass(frozen=True)
class BenchmarkResult:
    """The numbers of one benchmark. What nobody knows is None."""

    name: str
    num_problems: int
    num_samples: int
    """k, for each problem."""
    num_unscored: int
    """Samples whose judge failed. They are in no mean."""
    mean_at_k: Estimate | None
    """None: no sample was scored."""
    pass_at_k: dict[int, Estimate]
    """By number of samples, powers of two up to k, and k; without partial verdicts. A problem with fewer scored samples
    is in no mean."""
    maj_at_k: Estimate | None
    """None for one sample."""
    truncation_rate: float
    """Share of samples that the limit of tokens ended."""
    mean_tokens: float
    groups: dict[str, GroupResult] = field(default_factory=dict)
    """By subject or level, where known, in the order of the problems."""


def summarize(
    benchmark: Benchmark, problems: Sequence[Problem], samples: Sequence[Sample], num_samples: int
) -> BenchmarkResult:
    """What the samples of a benchmark say.

    Args:
        benchmark: says which answers are equal.
        problems: all that were asked.
        samples: in any order.
        num_samples: k.

    Raises:
        ValueError: samples that do not belong to the problems, or not k of each.
    """
    by_problem: dict[str, list[Sample]] = {problem.id: [] for problem in problems}
    for sample in sorted(samples, key=lambda sample: sample.sample_index):
        if sample.problem_id not in by_problem:
            raise ValueError(f"sample of {sample.problem_id!r}: no such problem; expected one of {benchmark.name!r}.")
        by_problem[sample.problem_id].append(sample)
    for name, each in by_problem.items():
        indices = [sample.sample_index for sample in each]
        if indices != list(range(num_samples)):
            raise ValueError(
                f"benchmark {benchmark.name!r}, problem {name!r}: has the samples {indices}; expected 0 to "
                f"{num_samples - 1}, each once; evaluate anew."
            )
    scored = {name: [s.verdict for s in each if s.verdict is not None] for name, each in by_problem.items()}
    members = defaultdict(list)
    for problem in problems:
        if problem.group is not None:
            members[problem.group].append(problem.id)
    return BenchmarkResult(
        benchmark.name,
        len(problems),
        num_samples,
        sum(sample.verdict is None for sample in samples),
        mean_of(scored),
        pass_of(scored, num_samples),
        maj_of(benchmark, by_problem) if num_samples > 1 else None,
        *_lengths(samples),
        {
            name: GroupResult(
                len(ids),
                mean_of({each: scored[each] for each in ids}),
                *_lengths([sample for each in ids for sample in by_problem[each]]),
            )
            for name, ids in members.items()
        },
    )


def mean_of(scored: Mapping[str, Sequence[float]]) -> Estimate | None:
    """mean@k, over the problems with a verdict."""
    return _estimate([problem_mean(verdicts) for verdicts in scored.values() if verdicts])


def pass_of(scored: Mapping[str, Sequence[float]], num_samples: int) -> dict[int, Estimate]:
    """pass@k for powers of two and k, nothing if some verdict is neither right nor wrong."""
    if any(verdict not in (0, 1) for verdicts in scored.values() for verdict in verdicts):
        return {}
    sizes = [2**power for power in range(num_samples.bit_length()) if 2**power < num_samples]
    found = {
        k: _estimate([problem_pass_at_k(verdicts, k) for verdicts in scored.values() if len(verdicts) >= k])
        for k in (*sizes, num_samples)
    }
    return {k: estimate for k, estimate in found.items() if estimate is not None}


def maj_of(benchmark: Benchmark, by_problem: Mapping[str, Sequence[Sample]]) -> Estimate | None:
    """maj@k, over the problems with a verdict."""
    values = []
    for samples in by_problem.values():
        known = [(sample.answer, sample.verdict) for sample in samples if sample.verdict is not None]
        if known:
            classes = vote_classes(benchmark, [answer for answer, _ in known])
            votes: list[Vote] = [(each, verdict) for each, (_, verdict) in zip(classes, known, strict=True)]
            values.append(problem_maj_at_k(votes))
    return _estimate(values)


def _estimate(values: Sequence[float]) -> Estimate | None:
    found = interval(values)
    return None if found is None else Estimate(fmean(values), found, len(values))


def _lengths(samples: Sequence[Sample]) -> tuple[float, float]:
    return fmean(sample.is_truncated for sample in samples), fmean(sample.num_tokens for sample in samples)


def write_results(
    folder: Path, settings: Mapping[str, Any], origins: Sequence[str], results: Sequence[BenchmarkResult]
) -> None:
    """Write the numbers with the settings that they come from.

    Args:
        folder: of the evaluation.
        settings: of the evaluation.
        origins: what each benchmark's problems were read from.
        results: of each benchmark.
    """
    entries = [{"origin": origin, **_plain(result)} for origin, result in zip(origins, results, strict=True)]
    content = {"settings": settings, "benchmarks": entries}
    write_whole(folder / FILE, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _plain(result: BenchmarkResult) -> dict[str, Any]:
    content = asdict(result)
    estimates = [content["mean_at_k"], content["maj_at_k"], *content["pass_at_k"].values()]
    estimates += [group["mean_at_k"] for group in content["groups"].values()]
    for estimate in estimates:
        if estimate is not None:
            low, high, method = estimate["interval"]
            estimate["interval"] = {"low": low, "high": high, "method": method}
    return content


def read_origins(folder: Path) -> dict[str, str]:
    """What each benchmark of a finished evaluation was read from, by its name.

    Raises:
        ValueError: the folder holds no finished evaluation.
    """
    file = folder / FILE
    if not file.is_file():
        raise ValueError(
            f"{str(folder)!r}: has no {FILE}; expected the folder of a finished evaluation; run it to its end."
        )
    try:
        return {entry["name"]: entry["origin"] for entry in json.loads(file.read_text(encoding="utf-8"))["benchmarks"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{str(file)!r}: is none of an evaluation ({error!r}); expected what one writes.") from error
