"""What a report shows: the records of a run, and the curves of its log."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..records import Record, read_records

# Title of a chart: patterns of the metrics that are its series.
CHARTS = {
    "reward": ("reward", "rewards/outcome/mean", "rewards/process/mean", "rewards/format/mean", "rewards/cost/mean"),
    "entropy": ("entropy",),
    "delta": ("acpo/delta",),
    "mode rate": ("acpo/mode_rate",),
    "credit by sign": ("acpo/credit_positive", "acpo/credit_negative"),
    "turns": ("turns/count/mean",),
    "completion length": ("completions/mean_length",),
    "stop reasons": ("turns/stop/*", "completions/clipped_ratio"),
    "groups without spread": ("frac_reward_zero_std",),
    "benchmarks": ("eval_*/mean@*",),
}


@dataclass(frozen=True)
class Run:
    """A run as a report shows it."""

    title: str
    records: Sequence[Record]
    charts: dict[str, dict[str, list[tuple[int, float]]]] = field(default_factory=dict)
    """Series by chart and name: steps with values."""


def load_run(folder: str | os.PathLike[str]) -> Run:
    """The records and the log of a run.

    Args:
        folder: output folder of the run.

    Raises:
        ValueError: no records, or a log that cannot be read.
    """
    where = Path(folder)
    return Run("/".join(where.resolve().parts[-2:]), read_records(where), charts_of(read_log(where)))


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The log history of a finished run, else of its newest checkpoint; empty without either."""
    states = [folder / "trainer_state.json", *folder.glob("checkpoint-*/trainer_state.json")]
    found = [path for path in states if path.is_file()]
    if not found:
        return []
    newest = max(found, key=lambda path: path.stat().st_mtime)
    try:
        return json.loads(newest.read_text(encoding="utf-8"))["log_history"]
    except (ValueError, KeyError) as error:
        raise ValueError(f"{str(newest)!r}: is no state of a trainer ({error!r}); remove or repair it.") from error


def charts_of(log: Sequence[dict[str, Any]]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """The series of CHARTS that a log has; values that are no numbers are left out."""
    charts: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for entry in log:
        for name, value in entry.items():
            chart = next((title for title, names in CHARTS.items() if _belongs(name, names)), None)
            is_number = isinstance(value, int | float) and abs(value) < float("inf")
            if chart is not None and is_number and "step" in entry:
                charts.setdefault(chart, {}).setdefault(name, []).append((entry["step"], value))
    return {title: charts[title] for title in CHARTS if title in charts}


def _belongs(name: str, names: Sequence[str]) -> bool:
    return any(fnmatchcase(name, each) for each in names)
