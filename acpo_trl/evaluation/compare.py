"""Two evaluations of the same problems, compared problem by problem."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from .metrics import Interval, mean_at_k, paired
from .results import read_origins
from .samples import read_samples


@dataclass(frozen=True)
class Comparison:
    """What changed on one benchmark."""

    name: str
    num_problems: int
    """That both have a verdict of."""
    num_unscored: int
    """Problems that one of the two has no verdict of; they are in no number."""
    mean_before: float | None
    mean_after: float | None
    difference: float | None
    """Mean over problems of the change of their mean verdict."""
    interval: Interval | None
    p_value: float
    """Two-sided, of the sign test."""
    gained: list[str]
    """Problems with a higher mean verdict after."""
    lost: list[str]
    num_equal: int


def compare(before: Path, after: Path) -> list[Comparison]:
    """What changed from one finished evaluation to another, by benchmark.

    Args:
        before: folder of the one.
        after: folder of the other; it may have more or fewer samples of a problem.

    Raises:
        ValueError: a folder without finished evaluation, or evaluations of other benchmarks or problems.
    """
    origins = [read_origins(folder) for folder in (before, after)]
    if origins[0].keys() != origins[1].keys():
        alone = sorted(origins[0].keys() ^ origins[1].keys())
        raise ValueError(f"benchmarks {alone}: are in one of the two evaluations only; expected the same in both.")
    for name in origins[0]:
        contents = [content_of(each[name]) for each in origins]
        if contents[0] != contents[1]:
            raise ValueError(
                f"benchmark {name!r}: its problems were read from {origins[0][name]!r} and {origins[1][name]!r}, which "
                "differ; expected the same problems in both; evaluate both on the same."
            )
    tables = [verdicts_of(folder) for folder in (before, after)]
    return [_compare(name, tables[0][name], tables[1][name]) for name in origins[0]]


def content_of(origin: str) -> str:
    """What tells the problems apart from others: the digest of a file, whatever it is called, or name and commit."""
    return origin.rpartition(" sha256:")[2]


def verdicts_of(folder: Path) -> dict[str, dict[str, list[float]]]:
    """Verdicts by benchmark and problem, none for a problem that nobody scored."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in read_samples(folder / "samples.jsonl"):
        verdicts = found[sample.benchmark][sample.problem_id]
        if sample.verdict is not None:
            verdicts.append(sample.verdict)
    return found


def _compare(name: str, before: dict[str, list[float]], after: dict[str, list[float]]) -> Comparison:
    if alone := sorted(before.keys() ^ after.keys()):
        raise ValueError(
            f"benchmark {name!r}, problems {alone[:5]} ({len(alone)} in all): are in one of the two evaluations only; "
            "expected the same in both; evaluate with the same limit and seed."
        )
    known = [problem for problem in before if before[problem] and after[problem]]
    one, other = ({problem: table[problem] for problem in known} for table in (before, after))
    found = paired(one, other)
    return Comparison(
        name,
        len(known),
        len(before) - len(known),
        mean_at_k(one.values()),
        mean_at_k(other.values()),
        found.difference,
        found.interval,
        found.p_value,
        found.gained,
        found.lost,
        found.num_equal,
    )
