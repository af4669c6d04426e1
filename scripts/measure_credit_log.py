"""Train the quick start with and without `credit_log`: are the weights the same, and what does recording cost?

    python -m acpo_trl.quickstart build && python scripts/measure_credit_log.py [--steps 40]

Prints the seconds of each run, their ratio, and the share of the training that was spent on recording.
"""

import argparse
import platform
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import trl

from acpo_trl.cli.parse import parse
from acpo_trl.cli.train import make_parser, prepare
from acpo_trl.trainer import ACPOTrainer
from acpo_trl.trainer.credit_log import CreditLog

METHODS = ("stage", "use", "on_train_begin", "on_train_end")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    steps = parser.parse_args().steps
    spent = [0.0]
    for name in METHODS:
        setattr(CreditLog, name, timed(getattr(CreditLog, name), spent))
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: train(Path(folder) / name, log, steps) for name, log in (("without", "null"), ("with", "{}"))}
    (plain, without), (recorded, with_log) = runs["without"], runs["with"]
    pairs = zip(recorded.model.parameters(), plain.model.parameters(), strict=True)
    is_same = all(torch.equal(ours, theirs) for ours, theirs in pairs)
    print(f"{steps} steps: {without:.1f} s without, {with_log:.1f} s with records, ratio {with_log / without:.3f}")
    print(f"{spent[0]:.3f} s of them in recording: {100 * spent[0] / with_log:.2f} %")
    print(f"weights are {'the same' if is_same else 'DIFFERENT'}")
    print(f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}, trl {trl.__version__}")
    raise SystemExit(not is_same)


def timed(method: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """The method, its seconds added up."""

    def call(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return method(*args, **kwargs)
        finally:
            spent[0] += time.perf_counter() - started

    return call


def train(output_dir: Path, credit_log: str, steps: int) -> tuple[ACPOTrainer, float]:
    """A finished run of the quick start, and its seconds."""
    arguments = ["--config", "configs/quickstart.yaml", "--max_steps", str(steps), "--output_dir", str(output_dir)]
    if credit_log != "null":
        arguments += ["--credit_log", credit_log]
    parsed = parse(partial(make_parser, prog="measure_credit_log"), arguments)
    if credit_log == "null":
        parsed[1].credit_log = None
    trainer, _ = prepare(*parsed)
    started = time.perf_counter()
    trainer.train()
    return trainer, time.perf_counter() - started


if __name__ == "__main__":
    main()
