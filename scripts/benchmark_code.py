"""Check the reward `code` against known verdicts and measure its speed.

    python scripts/benchmark_code.py [humaneval | humaneval_pro | mbpp | mbpp_pro | responses | extraction | speed ...]

Reads the data beside the checkout, or in the folder that ACPO_TRL_SHARED names.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from acpo_trl.rewards.code_extract import program_of
from acpo_trl.rewards.code_tests import CodeTests, judge, read_tests
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


def rates(sandbox: Sandbox, work: Callable[[Sandbox], object], num: int) -> tuple[float, float]:
    """Give calls a second of wall-clock time on all workers, and a second of CPU time."""
    work(sandbox)
    before, started = os.times(), time.perf_counter()
    with ThreadPoolExecutor(default_num_workers()) as threads:
        list(threads.map(lambda _: work(sandbox), range(num)))
    seconds = time.perf_counter() - started
    sandbox.close()  # the kernel tells a process's CPU time when it has ended
    after = os.times()
    return num / seconds, num / (sum(after[:4]) - sum(before[:4]))


def speed() -> None:
    """Compare trivial tests in the sandbox with a fresh interpreter for each."""
    function = "def add(a, b):\n    return a + b\n"
    calls = CodeTests(entry_point="add", cases=tuple({"args": [i, i], "expected": 2 * i} for i in range(10)))
    program = "print(sum(map(int, input().split())))"

    def whole(sandbox: Sandbox) -> object:
        return run(sandbox, program, b"1 2")

    def called(sandbox: Sandbox) -> object:
        return judge(sandbox, function, calls, Limits())

    fresh, bare = rates(FreshPython(), whole, 100), rates(FreshPython("-I", "-S"), whole, 200)
    found = {
        "a fresh python for each test": fresh,
        "a fresh python -I -S for each test": bare,
        "sandbox: a whole program for each test": rates(Bubblewrap(), whole, 1000),
        "sandbox: 10 tests of a function": tuple(10 * rate for rate in rates(Bubblewrap(), called, 400)),
    }
    print(f"{'':40} tests/s     x  x -I -S   tests/CPU s     x  x -I -S")
    for label, (wall, cpu) in found.items():
        print(
            f"{label:40} {wall:7.0f} {wall / fresh[0]:5.1f} {wall / bare[0]:8.1f} "
            f"{cpu:13.0f} {cpu / fresh[1]:5.1f} {cpu / bare[1]:8.1f}"
        )


def main() -> None:
    everything = [*CHECKS, "speed"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(everything))
    names = parser.parse_args().names or everything
    if unknown := set(names) - set(everything):
        parser.error(f"{sorted(unknown)}: expected names among {everything}")
    sandbox = Bubblewrap()
    for name in names:
        if name == "speed":
            speed()
        else:
            check(name, sandbox)


if __name__ == "__main__":
    main()
