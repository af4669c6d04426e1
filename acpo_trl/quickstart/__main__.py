"""The parts of the quick start around training: `python -m acpo_trl.quickstart build` before, `report` after."""

import argparse
import json
from pathlib import Path

START = Path("outputs/quickstart/start")
RUN = Path("outputs/quickstart/run")


def main() -> None:
    """Run one part; options meant for training are passed over."""
    parser = argparse.ArgumentParser(prog="python -m acpo_trl.quickstart", description=__doc__, allow_abbrev=False)
    parser.add_argument("part", choices=["build", "report"])
    parser.add_argument("--seed", type=int, default=0, help="of problems, model and warm start")
    parser.add_argument("--output_dir", type=Path, default=RUN, help="of the run to report on")
    arguments, _ = parser.parse_known_args()
    if arguments.part == "build":
        build(arguments.seed)
    else:
        report(arguments.output_dir)


def build(seed: int) -> None:
    """Make the folder `START` that configs/quickstart.yaml names, or keep the one that is there."""
    from .start import build_start

    is_new = build_start(START, seed)
    print(f"{'Wrote' if is_new else 'Kept'} model and problems of seed {seed} in {START}.", flush=True)


def report(run: Path) -> None:
    """Print held-out accuracy before and after the run and draw its log."""
    from .accuracy import NUM_SAMPLES, TEMPERATURE, measure
    from .plot import draw

    rows = [json.loads(line) for line in (START / "test.jsonl").read_text().splitlines()]
    accuracies = {"before": measure(START / "model", rows), "after": measure(run, rows)}
    print(f"Accuracy on {len(rows)} held-out problems, with 95 % intervals")
    print(f"(sampled: mean of {NUM_SAMPLES} answers each at temperature {TEMPERATURE:g}):")
    for way, before in accuracies["before"].items():
        after = accuracies["after"][way]
        print(f"  {way:<8} before {before}   after {after}   {100 * (after.mean - before.mean):+.1f} points")
    log = json.loads((run / "trainer_state.json").read_text())["log_history"]
    picture = run.parent / "plot.png"
    draw(log, accuracies, f"Quick start: {run}", picture)
    print(f"Plot: {picture}")


if __name__ == "__main__":
    main()
