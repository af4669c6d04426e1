"""The parts of a quick start around training: `python -m acpo_trl.quickstart build` before, `report` after."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import accuracy, episodes
from .lookup import build_lookup_start
from .panels import MULTI_TURN_PANELS, PANELS, Panels
from .start import build_start


class QuickStart(NamedTuple):
    """What differs between the quick starts."""

    root: Path
    """Has the folder `start`, and `run` unless the configuration is told otherwise."""
    build: Callable[[Path, int], bool]
    """Fill the start with a seed; False if it was there."""
    measure: Callable[[Path, Sequence[dict[str, Any]]], Mapping[str, accuracy.Estimate]]
    """Judge a model on held-out rows."""
    headline: str
    panels: Panels


SINGLE_TURN = QuickStart(
    Path("outputs/quickstart"),
    build_start,
    accuracy.measure,
    "Accuracy on {num_rows} held-out problems, with 95 % intervals\n"
    f"(sampled: mean of {accuracy.NUM_SAMPLES} answers each at temperature {accuracy.TEMPERATURE:g}):",
    PANELS,
)
MULTI_TURN = QuickStart(
    Path("outputs/quickstart_multi_turn"),
    build_lookup_start,
    episodes.measure_episodes,
    "{num_rows} held-out tasks, with 95 % intervals\n"
    f"(one episode each, sampled at temperature {accuracy.TEMPERATURE:g}; invalid: episodes with an invalid call):",
    MULTI_TURN_PANELS,
)


def main() -> None:
    """Run one part; options meant for training are passed over."""
    parser = argparse.ArgumentParser(prog="python -m acpo_trl.quickstart", description=__doc__, allow_abbrev=False)
    parser.add_argument("part", choices=["build", "report"])
    parser.add_argument("--multi-turn", action="store_true", help="tasks of several turns instead of additions")
    parser.add_argument("--seed", type=int, default=0, help="of problems, model and warm start")
    parser.add_argument("--output_dir", type=Path, help="of the run to report on, if it is not the usual one")
    arguments, _ = parser.parse_known_args()
    quick_start = MULTI_TURN if arguments.multi_turn else SINGLE_TURN
    if arguments.part == "build":
        build(quick_start, arguments.seed)
    else:
        report(quick_start, arguments.output_dir or quick_start.root / "run")


def build(quick_start: QuickStart, seed: int) -> None:
    """Make the folder `start` that the configuration names, or keep the one that is there."""
    start = quick_start.root / "start"
    is_new = quick_start.build(start, seed)
    print(f"{'Wrote' if is_new else 'Kept'} model and problems of seed {seed} in {start}.", flush=True)


def report(quick_start: QuickStart, run: Path) -> None:
    """Print what was measured before and after the run, and draw its log."""
    from .plot import draw  # matplotlib comes with the extra `plot`, and building goes without

    start = quick_start.root / "start"
    rows = [json.loads(line) for line in (start / "test.jsonl").read_text().splitlines()]
    before, after = quick_start.measure(start / "model", rows), quick_start.measure(run, rows)
    print(quick_start.headline.format(num_rows=len(rows)))
    for name, value in before.items():
        print(f"  {name:<8} before {value}   after {after[name]}   {value.change_to(after[name])}")
    log = json.loads((run / "trainer_state.json").read_text())["log_history"]
    picture = run.parent / "plot.png"
    draw(log, {"before": shares(before), "after": shares(after)}, f"Quick start: {run}", picture, quick_start.panels)
    print(f"Plot: {picture}")
    print(f"Credit of single tokens: acpo-trl report {run}")


def shares(measured: Mapping[str, accuracy.Estimate]) -> dict[str, accuracy.Accuracy]:
    """Give what fits on one axis from 0 to 1."""
    return {name: value for name, value in measured.items() if isinstance(value, accuracy.Accuracy)}


if __name__ == "__main__":
    main()
