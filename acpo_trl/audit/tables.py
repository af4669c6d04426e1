"""The verdicts of many solutions as numbers with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..evaluation.metrics import Interval, interval
from .blame import Verdict

Verdicts = dict[tuple[str, str], Verdict]
HEAD = ("blame", "pooled by", "top-1", "AUC", "AUC before", "mean rank")


@dataclass(frozen=True)
class Share:
    """A mean over solutions between 0 and 1."""

    mean: float
    interval: Interval
    num_solutions: int


@dataclass(frozen=True)
class AuditRow:
    """How well one kind of blame finds the first wrong step."""

    signal: str
    pool: str
    top1: Share
    auc: Share
    auc_before: Share | None
    """None: the first wrong step is the first in all of them."""
    mean_rank: float


def summarize(verdicts: Sequence[Verdicts]) -> list[AuditRow]:
    """Means over solutions, with 95 % bootstrap intervals.

    Args:
        verdicts: of each solution, all with the same keys.

    Raises:
        ValueError: no solution.
    """
    if not verdicts:
        raise ValueError("verdicts []: no solution could be judged; expected some with two steps or more.")
    rows = []
    for key in verdicts[0]:
        own = [each[key] for each in verdicts]
        before = [verdict.auc_before for verdict in own if verdict.auc_before is not None]
        top1, auc = _share([v.top1 for v in own]), _share([v.auc for v in own])
        rows.append(AuditRow(*key, top1, auc, _share(before) if before else None, fmean(v.rank for v in own)))
    return rows


def _share(values: Sequence[float]) -> Share:
    found = interval(values)
    assert found is not None
    return Share(fmean(values), found, len(values))


def _cells(row: AuditRow) -> list[str]:
    shares = [
        "-" if share is None else f"{share.mean:.3f} [{share.interval.low:.3f}, {share.interval.high:.3f}]"
        for share in (row.top1, row.auc, row.auc_before)
    ]
    return [row.signal, row.pool, *shares, f"{row.mean_rank:.2f}"]


def text_table(rows: Sequence[AuditRow]) -> str:
    """For the terminal."""
    lines = [list(HEAD), *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown_table(rows: Sequence[AuditRow]) -> str:
    """For a page."""
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    return "\n".join([*lines, *(f"| {' | '.join(_cells(row))} |" for row in rows)])
