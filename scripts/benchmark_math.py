"""The `math` reward beside TRL's accuracy_reward and plain math-verify: wrong verdicts, hangs, crashes and speed.

    python scripts/benchmark_math.py --cases CASES.jsonl --responses RESPONSES.jsonl.gz [--limit 20] [--speed 256]

Cases have the fields gold, prediction (or completion), correct; responses have gold, response, is_correct. TRL and
math-verify run in the main thread of a process of their own, where their time limits work; a verdict that takes longer
than `--limit` seconds is a hang. TRL gets the gold answer in dollars and math-verify in a box, which is best for them.
Speed is that of one batch of boxed responses with different answers (the reward grades equal ones once), after one
batch to warm up, without remembered verdicts.
"""

import argparse
import gzip
import importlib.metadata
import json
import multiprocessing
import os
import platform
import random
import subprocess
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from acpo_trl.rewards import MathReward
from acpo_trl.rewards import math as math_module
from acpo_trl.rewards.extract import last_assistant_text, last_box

Row = dict[str, Any]
GRADERS = ("acpo_trl math", "TRL accuracy_reward", "math-verify")


def grade_by_trl(rows: list[Row]) -> list[float | None]:
    from trl.rewards import accuracy_reward

    completions = [
        [{"role": "assistant", "content": row["text"]}] if isinstance(row["text"], str) else row["text"] for row in rows
    ]
    return accuracy_reward(completions, [f"${row['gold']}$" for row in rows])


def grade_by_math_verify(rows: list[Row]) -> list[float | None]:
    from math_verify import parse, verify

    verdicts: list[float | None] = []
    for row in rows:
        gold = parse(rf"\boxed{{{row['gold']}}}")
        verdicts.append(float(verify(gold, parse(last_assistant_text(row["text"])))) if gold else None)
    return verdicts


def serve(grader: str, connection: Connection) -> None:
    """Grade batches that come through the pipe, in the main thread. Runs in a child process."""
    grade = grade_by_trl if grader == "TRL accuracy_reward" else grade_by_math_verify
    while True:
        rows = connection.recv()
        try:
            connection.send(grade(rows))
        except Exception as error:
            connection.send(f"crash: {type(error).__name__}")


class Child:
    """A process that grades with somebody else's code, started again after a hang."""

    def __init__(self, grader: str) -> None:
        self.grader = grader
        self.start()

    def start(self) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        program = f"import sys; sys.path[:] = {sys.path!r}; import benchmark_math as b; "
        program += f"b.serve({self.grader!r}, b.Connection({theirs.fileno()}))"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL
        )
        theirs.close()
        self.grade([{"gold": "1", "text": r"\boxed{1}"}], 300)  # imports

    def grade(self, rows: list[Row], limit_s: float) -> list[float | None] | str:
        self.connection.send(rows)
        try:
            if self.connection.poll(limit_s):
                return self.connection.recv()
            outcome = "hang"
        except EOFError:
            outcome = "crash"
        self.stop()
        self.start()
        return outcome

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()


def verdicts_by_child(grader: str, rows: list[Row], limit_s: float) -> list[float | str | None]:
    child = Child(grader)
    outcomes = [child.grade([row], limit_s) for row in rows]
    child.stop()
    return [outcome if isinstance(outcome, str) else outcome[0] for outcome in outcomes]


def verdicts(grader: str, rows: list[Row], limit_s: float) -> list[float | str | None]:
    """Give a score, None, `hang` or `crash: ...` for each row."""
    if grader != GRADERS[0]:
        return verdicts_by_child(grader, rows, limit_s)
    return list(MathReward()([row["text"] for row in rows], solution=[row["gold"] for row in rows]))


def speed(grader: str, rows: list[Row]) -> float:
    """Give verdicts a second for one batch."""
    if grader == GRADERS[0]:
        reward = MathReward()
        reward([r"\boxed{1}"] * 16, solution=[str(n) for n in range(16)])  # starts every worker
        math_module._remembered.clear()
        start = time.perf_counter()
        reward([row["text"] for row in rows], solution=[row["gold"] for row in rows])
    else:
        child = Child(grader)
        child.grade(rows[:16], 300)
        start = time.perf_counter()
        child.grade(rows, 300)
    seconds = time.perf_counter() - start
    if grader != GRADERS[0]:
        child.stop()
    return len(rows) / seconds


def summary(rows: list[Row], outcomes: list[float | str | None]) -> str:
    """Give the cells of a table row."""
    count: Counter[str] = Counter()
    for row, outcome in zip(rows, outcomes, strict=True):
        count["right"] += (not isinstance(outcome, str) and bool(outcome)) == row["correct"]
        count["accepted"] += outcome == 1.0 and not row["correct"]
        count["rejected"] += outcome == 0.0 and row["correct"]
        count["none"] += outcome is None and row["correct"]
        count["hang"] += outcome == "hang"
        count["crash"] += str(outcome).startswith("crash")
    cells = [f"{100 * count['right'] / len(rows):.1f} %"]
    return " | ".join(cells + [str(count[name]) for name in ("accepted", "rejected", "none", "hang", "crash")])


def read(path: Path) -> list[Row]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return [json.loads(line) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--responses", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds until a verdict counts as a hang")
    parser.add_argument("--speed", type=int, default=256, help="responses in the batch that is timed")
    args = parser.parse_args()

    cases = [
        {"gold": row["gold"], "text": row.get("completion", row["prediction"]), "correct": row["correct"]}
        for row in read(args.cases)
        if row.get("certainty", "clear") == "clear"
    ]
    responses = [
        {"gold": row["gold"], "text": row["response"] or "", "correct": row["is_correct"]}
        for row in read(args.responses)
    ]
    boxed = [row for row in responses if r"\boxed" in row["text"]]
    random.Random(0).shuffle(boxed)

    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("trl", "math-verify", "sympy", "mpmath")]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {', '.join(versions)}\n")
    print("| rows | grader | right | wrong accepted | right rejected | right without verdict | hangs | crashes |")
    print("|---|---|---|---|---|---|---|---|")
    for name, rows in ((f"{len(cases)} clear cases", cases), (f"{len(boxed)} boxed responses", boxed)):
        for grader in GRADERS:
            print(f"| {name} | {grader} | {summary(rows, verdicts(grader, rows, args.limit))} |", flush=True)
    batch = list({(row["gold"], last_box(row["text"])): row for row in boxed}.values())[: args.speed]
    print(f"\n| grader | verdicts a second, {len(batch)} different answers |\n|---|---|")
    for grader in GRADERS:
        print(f"| {grader} | {speed(grader, batch):.0f} |", flush=True)


if __name__ == "__main__":
    main()
