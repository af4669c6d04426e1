"""Check the reward `code` against known verdicts and measure its speed.

    python scripts/benchmark_code.py [humaneval | humaneval_pro | mbpp | mbpp_pro | responses | speed ...]

Reads the data beside the checkout, or in the folder that ACPO_TRL_SHARED names.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from acpo_trl.rewards.code_extract import program_of
from acpo_trl.rewards.code_tests import CodeTests, CodeVerdict, judge, read_tests
from acpo_trl.rewards.worker import default_num_workers
from acpo_trl.sandbox import Bubblewrap, Exit, Limits, Sandbox, run

SHARED = Path(os.environ.get("ACPO_TRL_SHARED", Path(__file__).parents[2] / "shared"))
TYPING = "from typing import *\n"  # how these benchmarks are run by their authors
Case = tuple[str, str, CodeTests, bool]
"""Name, program, tests, whether they should pass."""


def rows(path: str) -> Iterator[dict]:
    with gzip.open(SHARED / "data" / path, "rt") as file:
        yield from map(json.loads, file)


def humaneval() -> Iterator[Case]:
    for row in rows("benchmarks/humaneval.jsonl.gz"):
        tests = {"test": row["test"], "entry_point": row["entry_point"], "starter_code": row["prompt"]}
        yield row["task_id"], row["prompt"] + row["canonical_solution"], read_tests(tests), row["reference_passes"]


def pro(name: str) -> Iterator[Case]:
    for row in rows(f"benchmarks/{name}.jsonl.gz"):
        program = "\n".join(row[key] for key in ("raw_problem", "raw_solution", "new_problem", "new_solution"))
        yield row["task_id"], program, CodeTests(starter=TYPING, code=row["test_code"]), row["reference_passes"]


def mbpp() -> Iterator[Case]:
    for row in rows("benchmarks/mbpp.jsonl.gz"):
        tests = [row["test_setup_code"], *row["test_list"], *row["challenge_test_list"]]
        called = re.findall(r"(\w+)\(", " ".join(row["test_list"]))
        entry_point = next(name for name in called if re.search(rf"^(def|class) {name}\b", row["code"], re.MULTILINE))
        yield row["task_id"], row["code"], read_tests({"tests": tests, "entry_point": entry_point}), True


def responses() -> Iterator[Case]:
    """Give the programs of models whose label two runs agree on."""
    stdin_tests = {row["id"]: row["tests"] for row in rows("benchmarks/stdin_stdout.jsonl.gz")}
    for row in rows("labelled/code_responses.jsonl.gz"):
        if row["passed"] != row["rerun_passed"]:
            continue
        if row["test"] is None:
            columns = {"tests": stdin_tests[row["task_id"]]}
        else:
            columns = {"test": row["test"], "entry_point": row["entry_point"], "starter_code": TYPING + row["prompt"]}
        yield row["id"], row["code"], read_tests(columns), row["passed"]


def extraction() -> Iterator[Case]:
    """Give the same with the program taken from the response, not as the label's authors took it."""
    responses_of = {row["id"]: row["response"] for row in rows("labelled/code_responses.jsonl.gz")}
    for name, _, tests, should_pass in responses():
        if responses_of[name]:
            yield name, program_of(responses_of[name], tests.entry_point) or "", tests, should_pass


CHECKS = {
    "humaneval": humaneval,
    "humaneval_pro": lambda: pro("humaneval_pro"),
    "mbpp": mbpp,
    "mbpp_pro": lambda: pro("mbpp_pro"),
    "responses": responses,
    "extraction": extraction,
}


def check(name: str, sandbox: Sandbox) -> float:
    """Print and give the share of programs whose verdict is the known one."""
    cases = list(CHECKS[name]())
    started = time.perf_counter()
    with ThreadPoolExecutor(default_num_workers()) as threads:
        verdicts = list(threads.map(lambda case: judge(sandbox, case[1], case[2], Limits()), cases))
    seconds = time.perf_counter() - started
    wrong = [(case, found) for case, found in zip(cases, verdicts, strict=True) if found.score != float(case[3])]
    right = len(cases) - len(wrong)
    print(f"{name:14} {right}/{len(cases)} as labelled ({right / len(cases):.2%}), {len(cases) / seconds:.0f}/s")
    for (label, _, _, should_pass), verdict in wrong:
        print(f"  {label}: expected {float(should_pass)}, got {verdict.score} ({verdict.outcome}: {verdict.message})")
    return right / len(cases)


class FreshPython:
    """The baseline: a fresh interpreter for each program, with no protection at all."""

    def __init__(self, *options: str) -> None:
        self.options = options

    def start(self, program: str, limits: Limits, *, stdin: int, stdout: int, stderr: int) -> "FreshPython.Run":
        command = [sys.executable, *self.options, "-c", program]
        return self.Run(subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr))

    class Run:
        def __init__(self, process: subprocess.Popen) -> None:
            self.process = process

        def wait(self) -> Exit:
            return Exit(self.process.wait(), "", 0.0)

        def kill(self) -> None:
            self.process.kill()

    def close(self) -> None: ...


def per_second(work, num: int) -> tuple[float, float]:
    """Give calls a second of wall-clock time and of CPU time of this process and its children."""
    work()
    before, started = os.times(), time.perf_counter()
    with ThreadPoolExecutor(default_num_workers()) as threads:
        list(threads.map(lambda _: work(), range(num)))
    seconds, after = time.perf_counter() - started, os.times()
    return num / seconds, num / max(sum(after[:4]) - sum(before[:4]), 1e-9)


def speed() -> None:
    """Compare trivial tests in the sandbox with a fresh interpreter for each."""
    program = "print(sum(map(int, input().split())))"
    function = "def add(a, b):\n    return a + b\n"
    cases = [{"args": [i, i], "expected": 2 * i} for i in range(10)]
    calls = CodeTests(entry_point="add", cases=tuple(cases))
    script = f"{function}\nassert add(1, 1) == 2"

    def graded() -> CodeVerdict:
        return judge(sandbox, function, calls, Limits())

    fresh, bare = FreshPython(), FreshPython("-I", "-S")
    baseline = per_second(lambda: run(fresh, script), 100)[0]
    bare_baseline = per_second(lambda: run(bare, script), 200)[0]
    sandbox = Bubblewrap()
    whole = per_second(lambda: run(sandbox, program, b"1 2"), 1000)[0]
    called = per_second(graded, 500)[0]
    print(f"a fresh python for each test         {baseline:7.0f} tests/s")
    print(f"a fresh python -I -S for each test   {bare_baseline:7.0f} tests/s")
    for label, value in (
        ("sandbox: whole programs", whole),
        ("sandbox: functions", called),
        ("sandbox: functions, 10 tests each", 10 * called),
    ):
        print(f"{label:36} {value:7.0f} tests/s: {value / baseline:5.1f} x, {value / bare_baseline:5.1f} x -I -S")
    sandbox.close()


def main() -> None:
    names = sys.argv[1:] or [*CHECKS, "speed"]
    sandbox = Bubblewrap()
    for name in names:
        if name == "speed":
            speed()
        else:
            check(name, sandbox)


if __name__ == "__main__":
    main()
