"""The tests of a programming task, and what they say about a program."""

import ast
import dataclasses
import json
import math
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acpo_trl.rewards.syntax import parse
from acpo_trl.sandbox import ExecResult, Exit, Limits, Sandbox, SandboxError, run
from acpo_trl.sandbox.base import MemoryFile
from acpo_trl.sandbox.inside.names import free_names

# The tests may still have work to do after the last moment at which the program answers.
GRADER_EXTRA_S = 2.0
# What the tests themselves are to blame for says nothing about the program.
_NOT_SCORED = ("bad_tests", "no_tests", "unsupported")
_OUTCOMES = {"time limit": "timeout", "memory limit": "memory", "output limit": "output_limit"}


@dataclass(frozen=True)
class CodeTests:
    """The tests of one task: either `code`, or `cases` of one of two kinds."""

    entry_point: str = ""
    """The function or class to be defined, or an expression such as `Solution().solve`."""
    starter: str = ""
    """Code that the task gives."""
    code: str = ""
    """Assertions, a function `check(candidate)`, or `unittest` classes."""
    cases: tuple[Mapping[str, Any], ...] = ()
    """`input` and `output` of a whole program, or `args` and `expected` of the entry point."""


@dataclass(frozen=True)
class CodeVerdict:
    """What tests say about a program."""

    score: float | None
    """The share of tests passed, or 1.0 only for all; None: not scored, which is not the same as wrong."""
    outcome: str
    """`pass`, `wrong_answer`, `runtime_error`, `timeout`, ..., or why there is no score."""
    message: str = ""
    seconds: float = 0.0


def read_tests(row: Mapping[str, Any]) -> CodeTests:
    """Give the tests in the columns `test` or `tests`, `entry_point` and `starter_code` of a dataset row.

    Raises:
        ValueError: they are no tests.
    """
    entry_point, starter = row.get("entry_point") or "", row.get("starter_code") or ""
    tests = row["tests"] if row.get("tests") is not None else row.get("test")
    if isinstance(tests, str):
        tests = json.loads(tests) if tests.lstrip().startswith("[") else [tests]
    if not isinstance(tests, Sequence) or not tests:
        raise ValueError("there are none")
    if not all(isinstance(test, str) for test in tests):
        return CodeTests(entry_point, starter, cases=tuple(_case(test, entry_point) for test in tests))
    code = "\n".join(tests)
    entry_point = entry_point or first_free_name(code)
    if not entry_point and "candidate" in code:
        raise ValueError("they call 'candidate', but there is no 'entry_point' that says what that is")
    return CodeTests(entry_point, starter, code)


def first_free_name(code: str) -> str:
    """Give the name that the code uses first of those it needs from elsewhere, "" if there is none."""
    tree = parse(code)
    if tree is None:
        return ""
    wanted = free_names(tree) - {"candidate"} - set(sys.stdlib_module_names)
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in wanted]
    return min(uses, key=lambda node: (node.lineno, node.col_offset)).id if uses else ""


def _case(test: Any, entry_point: str) -> dict[str, Any]:
    if isinstance(test, Mapping):
        # A table gives every row all keys, with None for those it does not have.
        if isinstance(test.get("input"), str) and isinstance(test.get("output"), str):
            return {"input": test["input"], "output": test["output"]}
        if isinstance(test.get("args"), Sequence) and "expected" in test and entry_point:
            return {"args": test["args"], "expected": test["expected"]}
    raise ValueError(f"{str(test)[:100]!r} is neither input and output, nor args and expected of an entry point")


def judge(
    sandbox: Sandbox, program: str, tests: CodeTests, limits: Limits, partial: bool = False, tolerance: float = 0.0
) -> CodeVerdict:
    """Give what the tests say about the program.

    Args:
        sandbox: where the program runs, and apart from it the tests.
        program: Python source.
        tests: the tests.
        limits: for each run of the program: once for each pair of input and output, or once for all other tests.
        partial: the score is the share of tests passed.
        tolerance: by how much a number may differ from the expected one, absolutely or relatively.

    Raises:
        SandboxError: the sandbox failed.
    """
    if tests.cases and "input" in tests.cases[0]:
        return _judge_output(sandbox, program, tests.cases, limits, partial, tolerance)
    task = {
        "test": tests.code,
        "starter": tests.starter,
        "entry_point": tests.entry_point,
        "cases": list(tests.cases) if tests.cases else None,
        "tolerance": tolerance,
        "partial": partial,
    }
    found, ended = _confront(sandbox, _parts(program, tests), task, limits)
    outcome, message = found["outcome"], found["message"]
    if outcome == "ended":
        outcome = _OUTCOMES.get(ended.reason, "runtime_error")
        how = ended.reason or f"exit code {ended.code}"
        message = f"the program did not answer its tests to the end: {how}"
    if outcome in _NOT_SCORED:
        return CodeVerdict(None, outcome, message, ended.seconds)
    score = _score(outcome, found["passed"], found["total"], partial)
    return CodeVerdict(score, outcome, message, ended.seconds)


def _score(outcome: str, passed: int, total: int, partial: bool) -> float:
    if outcome == "pass":
        return 1.0
    return passed / total if partial and total else 0.0


def _parts(program: str, tests: CodeTests) -> list[str]:
    """Give the modules' worth of code to run: the starter, if it is code by itself, and the program."""
    if program[:1] in (" ", "\t"):
        return [f"{tests.starter}\n{program}"]  # the body of its last function
    return [program] if parse(tests.starter) is None else [tests.starter, program]


def _confront(sandbox: Sandbox, parts: list[str], task: dict, limits: Limits) -> tuple[dict, Exit]:
    """Let the tests, in one process, call the program, in another that sees nothing of them.

    Returns:
        What the tests found, as `inside.grader` tells it, and how the program ended.
    """
    for_program = f"from inside.callee import serve\nserve({parts!r})\n"
    for_tests = f"import json\nfrom inside.grader import main\nmain(json.loads({json.dumps(task)!r}))\n"
    more = dataclasses.replace(limits, wall_s=limits.wall_s + GRADER_EXTRA_S)
    theirs, ours = socket.socketpair()
    # The two must not share a file: a program reads what it can write.
    with MemoryFile() as found, MemoryFile() as errors, MemoryFile() as program_errors:
        with theirs, ours:
            program = sandbox.start(
                for_program, limits, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=program_errors.fd
            )
            try:
                grader = sandbox.start(for_tests, more, stdin=ours.fileno(), stdout=found.fd, stderr=errors.fd)
            except BaseException:
                program.kill()
                program.wait()
                raise
        try:
            graded = grader.wait()
        finally:
            program.kill()
            ended = program.wait()
        if text := found.read(limits.max_output_bytes):
            return json.loads(text), ended
        if graded.reason in _OUTCOMES:
            # Whoever sends the tests what they cannot digest in time has not passed them.
            late = {"outcome": _OUTCOMES[graded.reason], "message": "the tests did not come to an end"}
            return late | {"passed": 0, "total": 0}, ended
        told = errors.read(limits.max_output_bytes).decode("utf-8", "replace").strip()
        raise SandboxError(f"the tests ended with exit code {graded.code} and without a verdict: {told[-500:]}")


def _judge_output(
    sandbox: Sandbox, program: str, cases: Sequence[Mapping], limits: Limits, partial: bool, tolerance: float
) -> CodeVerdict:
    failed: list[CodeVerdict] = []
    seconds = 0.0
    for number, case in enumerate(cases):
        result = run(sandbox, program, case["input"].encode("utf-8", "surrogatepass"), limits)
        seconds += result.exit.seconds
        outcome = _output_outcome(result, case["output"], tolerance)
        if outcome != "pass":
            errors = result.errors.decode("utf-8", "replace").strip()
            message = f"test {number}: exit code {result.exit.code}; {errors[-500:]}"
            failed.append(CodeVerdict(0.0, outcome, message))
            if not partial:
                break
    if not failed:
        return CodeVerdict(1.0, "pass", seconds=seconds)
    score = 1 - len(failed) / len(cases) if partial else 0.0
    return dataclasses.replace(failed[0], score=score, seconds=seconds)


def _output_outcome(result: ExecResult, expected: str, tolerance: float) -> str:
    if result.exit.reason:
        return _OUTCOMES.get(result.exit.reason, "runtime_error")
    if result.exit.code != 0:
        return "runtime_error"
    is_right = is_same_output(result.output.decode("utf-8", "replace"), expected, tolerance)
    return "pass" if is_right else "wrong_answer"


def is_same_output(output: str, expected: str, tolerance: float = 0.0) -> bool:
    """Are the words the same, numbers up to the tolerance?"""
    words, wanted = output.split(), expected.split()
    if len(words) != len(wanted):
        return False
    return all(a == b or (tolerance > 0 and _is_close(a, b, tolerance)) for a, b in zip(words, wanted, strict=True))


def _is_close(word: str, wanted: str, tolerance: float) -> bool:
    try:
        return math.isclose(float(word), float(wanted), rel_tol=tolerance, abs_tol=tolerance)
    except ValueError:
        return False
