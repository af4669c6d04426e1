"""Train `lookup` with each turn estimator, stop, resume, and print one table.

    accelerate launch --config_file configs/accelerate/cpu2.yaml scripts/train_turn_estimators.py [--steps 20]

For plain GRPO and each `configs/methods/turns_*.yaml`: the advantages of a good and of a bad turn of a scripted group,
seconds a step (median, without the first three) and their ratio to plain GRPO's, whether a run that resumes half way
ends with the same weights, and how many warnings there were that plain GRPO does not give (those are of TRL and
transformers, and printed). The group is two completions of three turns: the same
first turn, then a good one that leads to success and a bad one that leads to failure, scored at the end or, for methods
of process rewards, at the second turn. What estimators ask about it is
given: exact values and contributions, beliefs that follow the second turn, one token a turn, entropies without
information. Ends with status 1 if a sign is wrong, a warning was given or a resumed run differs.
"""

import argparse
import gc
import logging
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
import trl
import yaml
from accelerate import PartialState
from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging as transformers_logging

from acpo_trl.advantages import TokenTable, TurnRewards
from acpo_trl.cli.parse import parse
from acpo_trl.cli.train import make_parser, prepare
from acpo_trl.quickstart.lookup import build_lookup_start

ROOT = Path(__file__).parents[1]
TASK, METHODS = ROOT / "configs/quickstart_multi_turn.yaml", ROOT / "configs/methods"
NAN = float("nan")
SKIPPED = 3  # first steps, which are slower
HINT = "by a rule of thumb"


class Row(NamedTuple):
    """What is printed of one run."""

    name: str
    good: float
    bad: float
    seconds: float
    is_same: bool
    warnings: list[str]

    @property
    def has_failed(self) -> bool:
        return not (self.good > 0 > self.bad) or not self.is_same or bool(self.warnings)


class Clock(TrainerCallback):
    """Seconds of each step, with its rollouts."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        self.started = time.perf_counter()

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        self.seconds.append(time.perf_counter() - self.started)


class Ear(logging.Handler):
    """Keeps warnings of all libraries, but for known ones and hints at other estimators."""

    def __init__(self, known: Sequence[str]) -> None:
        super().__init__(logging.WARNING)
        self.known, self.heard = known, list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage().splitlines()[0]
        if HINT not in message and message not in (*self.known, *self.heard):
            self.heard.append(message)


def scripted_group(values: list[list[float]]) -> TurnRewards:
    """Two completions of three turns with these rewards, and all that is known about them."""
    turn_ids = torch.tensor([[0, 1, 2]] * 2)
    state_values = torch.tensor([[0.5, 0.5, 1.0], [0.5, 0.5, 0.0]])
    return TurnRewards(
        torch.tensor(values),
        torch.tensor([3, 3]),
        2,
        state_keys=torch.tensor([[1, 2, 3], [1, 2, 4]]),
        action_keys=torch.tensor([[1, 2, 3], [1, 4, 5]]),
        num_tokens=torch.ones(2, 3, dtype=torch.long),
        is_valid=torch.ones(2, 3, dtype=torch.bool),
        is_truncated=torch.tensor([False, False]),
        observations=[["a", "b", "c"], ["a", "b", "d"]],
        beliefs=torch.tensor([[-1.0, -1.0, -0.1], [-1.0, -1.0, -3.0]]),
        state_values=state_values,
        end_values=torch.zeros(2),
        contributions=torch.tensor([[0.25, 0.5, 0.25], [0.25, -0.25, 0.0]]),
        tokens=TokenTable(turn_ids, torch.tensor([[1, 2, 3], [1, 4, 5]]), torch.full((2, 3), 0.5), 1.0, state_values),
    )


def signs(trainer: Any) -> tuple[float, float]:
    """Advantages of the good and of the bad turn, as the configured estimators give them."""
    if trainer.turn_credit is None:  # TRL compares whole completions
        return NAN, NAN
    if trainer.args.turn_estimator == "outcome" and trainer.args.kind_estimators:  # a method for the process
        tables = {"process": scripted_group([[NAN, 1.0, NAN], [NAN, 0.0, NAN]])}
    else:
        tables = {"outcome": scripted_group([[NAN, NAN, 1.0], [NAN, NAN, 0.0]])}
    advantages = trainer.turn_credit.combine(tables, dict.fromkeys(tables, 1.0)).advantages
    return advantages[0, 1].item(), advantages[1, 1].item()


def build(config: Path, arguments: argparse.Namespace, folder: Path, *more: str) -> Any:
    """The trainer of a method on the task."""
    options = ["--config", str(arguments.folder / "task.yaml"), "--config", str(config), "--output_dir", str(folder)]
    start = arguments.folder / "start"
    options += ["--model_name_or_path", str(start / "model"), "--dataset_name", str(start / "train.jsonl")]
    options += ["--per_device_train_batch_size", "16", "--max_steps", str(arguments.steps), "--disable_tqdm", "true"]
    options += ["--save_strategy", "steps", "--save_steps", str(arguments.steps // 2), *more]
    trainer, checkpoint = prepare(*parse(partial(make_parser, prog="train_turn_estimators"), options))
    trainer.remove_callback(PrinterCallback)
    return trainer, checkpoint


def run(config: Path, arguments: argparse.Namespace, *more: str) -> tuple[list[torch.Tensor], list[float], Any]:
    """Weights after the run, seconds of its steps, and the advantages of the scripted turns."""
    folder = arguments.folder / config.stem / ("resumed" if more else "whole")
    trainer, checkpoint = build(config, arguments, folder, *more)
    clock = Clock()
    trainer.add_callback(clock)
    trainer.train(resume_from_checkpoint=checkpoint)
    weights = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    advantages = signs(trainer)
    # A DDP module that outlives its process group waits, on being freed, for Gloo threads that wait for the GIL.
    trainer.model_wrapped = trainer.model
    trainer.accelerator.free_memory()
    gc.collect()
    return weights, clock.seconds, advantages


def measure(config: Path, arguments: argparse.Namespace, known: Sequence[str]) -> Row:
    """Train, resume and compare one method, of which some warnings are known."""
    ear = Ear(known)
    names = ["", "transformers", "trl", "accelerate", "py.warnings"]
    for name in names:
        logging.getLogger(name).addHandler(ear)
    weights, seconds, (good, bad) = run(config, arguments)
    checkpoint = arguments.folder / config.stem / "whole" / f"checkpoint-{arguments.steps // 2}"
    again, _, _ = run(config, arguments, "--resume_from_checkpoint", str(checkpoint))
    for name in names:
        logging.getLogger(name).removeHandler(ear)
    is_same = all(torch.equal(a, b) for a, b in zip(weights, again, strict=True))
    return Row(config.stem, good, bad, statistics.median(seconds[SKIPPED:]), is_same, ear.heard)


def show(row: Row, plain: float) -> None:
    """Print a line of the table."""
    same, warnings = "same" if row.is_same else "DIFFERS", str(len(row.warnings))
    times = f"{row.seconds:8.3f} {row.seconds / plain:7.2f}"
    print(f"{row.name:24} {row.good:8.3f} {row.bad:8.3f} {times} {same:>8} {warnings:>9}", flush=True)
    for warning in row.warnings:
        print(f"    {warning}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--only", nargs="*", help="names of method files, such as turns_gigpo")
    parser.add_argument("--folder", type=Path, default=Path("outputs/turn_estimators"))
    arguments = parser.parse_args()
    if arguments.steps <= SKIPPED:
        parser.error(f"--steps {arguments.steps}: the first {SKIPPED} are not timed; expected more.")
    logging.captureWarnings(True)
    transformers_logging.set_verbosity_warning()
    state = PartialState(cpu=True)
    with state.main_process_first():
        build_lookup_start(arguments.folder / "start", seed=0)
        task = {key: value for key, value in yaml.safe_load(TASK.read_text()).items() if key != "turn_estimator"}
        (arguments.folder / "task.yaml").write_text(yaml.safe_dump(task))
    turns = sorted(path.stem for path in METHODS.glob("turns_*.yaml"))
    rows: list[Row] = []
    if state.is_main_process:
        print(f"{'':24} {'good':>8} {'bad':>8} {'s/step':>8} {'x GRPO':>7} {'resumed':>8} {'warnings':>9}", flush=True)
    for name in ["grpo", *(arguments.only or turns)]:
        rows.append(measure(METHODS / f"{name}.yaml", arguments, rows[0].warnings if rows else []))
        if state.is_main_process:
            show(rows[-1], rows[0].seconds)
    if state.is_main_process:
        versions = f"torch {torch.__version__}, transformers {transformers.__version__}, trl {trl.__version__}"
        processes = f"{state.num_processes} processes, {arguments.steps} steps"
        print(f"{processes}; {platform.machine()}, Python {platform.python_version()}, {versions}")
    if any(row.has_failed for row in rows[1:]):
        sys.exit(1)


if __name__ == "__main__":
    main()
