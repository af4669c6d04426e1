"""Runs the tests of a program that is another process, and prints the verdict as JSON."""

import ast
import importlib
import json
import math
import os
import sys
from collections.abc import Callable
from typing import Any

from .child import open_streams
from .names import free_names
from .remote import Program, ProgramEnded, Unsupported
from .wire import Channel


def main(task: dict) -> None:
    """Talk with the program over standard input and print the verdict on standard output. Never returns."""
    channel = Channel(os.dup(0), os.dup(0))
    verdict = os.dup(1)
    os.dup2(2, 1)  # what the tests print is no verdict
    open_streams()
    os.write(verdict, json.dumps(Grading(channel, **task).verdict()).encode())
    os._exit(0)


class Grading:
    """One run of tests.

    Args:
        channel: where the program answers.
        test: assertions, a function `check(candidate)`, or `unittest` classes.
        starter: code that the task gives; what it defines, except the entry point, is at the tests' disposal.
        entry_point: the name that the program has to define, or an expression such as `Solution().solve`.
        cases: instead of `test`: arguments and the result expected for them.
        tolerance: by how much a number in a result may differ from the one in `cases`, absolutely or relatively.
        partial: go on after a failed test, to count the others.
    """

    def __init__(
        self,
        channel: Channel,
        test: str = "",
        starter: str = "",
        entry_point: str = "",
        cases: list[dict] | None = None,
        tolerance: float = 0.0,
        partial: bool = False,
    ) -> None:
        self.channel, self.starter, self.entry_point = channel, starter, entry_point
        self.cases, self.tolerance, self.partial = cases, tolerance, partial
        self.source = test
        self.passed: set[int] = set()
        self.failed: set[int] = set()
        self.total = len(cases or [])

    def verdict(self) -> dict:
        """Give `outcome`, the numbers of tests `passed` and in `total`, and a `message`."""
        try:
            tree = ast.parse(self.source, "tests.py")
        except (SyntaxError, ValueError) as error:
            return self._verdict("bad_tests", error)
        self.program = Program(self.channel)
        try:
            self.program.wait_until_ready()
            self._run(tree)
        except Exception as error:
            return self._failure(error)
        if self.program.end or self.program.unsupported:
            return self._failure(self.program.end or Unsupported(self.program.unsupported))
        if not self.program.num_requests:
            return self._verdict("no_tests", "the tests never call the program")
        return self._verdict("wrong_answer" if self.failed else "pass")

    def _failure(self, error: Exception) -> dict:
        if self.program.unsupported:
            return self._verdict("unsupported", self.program.unsupported)
        if isinstance(error, ProgramEnded):
            return self._verdict("ended", error)
        if isinstance(error, AssertionError) and self.program.num_requests:
            return self._verdict("wrong_answer", error)
        # Tests that fail before they ask the program anything say nothing about it.
        is_programs = self.program.num_requests or not self.program.is_ready
        return self._verdict("runtime_error" if is_programs else "bad_tests", error)

    def _verdict(self, outcome: str, message: object = "") -> dict:
        if isinstance(message, Exception):
            message = f"{type(message).__name__}: {message}"
        num_passed = self.total if outcome == "pass" else len(self.passed - self.failed)
        return {"outcome": outcome, "passed": num_passed, "total": self.total, "message": str(message)[:1000]}

    def _run(self, tree: ast.Module) -> None:
        candidate = self.program.name(self.entry_point)
        if self.cases is not None:
            return self._run_cases(candidate)
        namespace = self._namespace(free_names(tree) - {"candidate"}) | {"candidate": candidate}
        if self.partial:
            tree = self._count_assertions(tree)
            namespace |= {"__test_passed__": self.passed.add, "__test_failed__": self.failed.add}
        if self.entry_point.isidentifier():
            namespace[self.entry_point] = candidate
        exec(compile(tree, "tests.py", "exec"), namespace)
        check = namespace.get("check")
        if callable(check) and not self.program.num_requests:
            check(candidate)
        if "unittest" in sys.modules:
            self._run_unittests([value for value in namespace.values() if isinstance(value, type)])

    def _namespace(self, names: set[str]) -> dict[str, Any]:
        """Give the tests what they use without defining it: the starter's names, modules, else the program's names."""
        namespace: dict[str, Any] = {"__name__": "tests"}
        try:
            exec(compile(self.starter, "starter.py", "exec"), namespace)
        except Exception:
            namespace = {"__name__": "tests"}  # the beginning of a function is no code by itself
        # Objects cross to the program only if they are its own, so it has to make those of the starter's classes too.
        classes = {name for name, value in namespace.items() if getattr(value, "__module__", "") == "tests"}
        classes = {name for name in classes if isinstance(namespace[name], type)}
        borrowed = names - (set(namespace) - classes)
        self.program.allow_objects = any(name[0].isupper() for name in borrowed)
        for name in borrowed:
            is_module = name in sys.stdlib_module_names
            namespace[name] = importlib.import_module(name) if is_module else self.program.name(name)
        return namespace

    def _run_cases(self, candidate: Callable) -> None:
        for index, case in enumerate(self.cases or []):
            try:
                result = candidate(*case["args"])
            except Exception:
                if not self.partial or self.program.end:
                    raise
                self.failed.add(index)
                continue
            (self.passed if is_same(result, case["expected"], self.tolerance) else self.failed).add(index)
            if self.failed and not self.partial:
                return

    def _run_unittests(self, kinds: list[type]) -> None:
        import unittest  # slow to load, and rarely needed

        for kind in kinds:
            if kind.__module__ != "tests" or not issubclass(kind, unittest.TestCase):
                continue
            result = unittest.TestResult()
            unittest.defaultTestLoader.loadTestsFromTestCase(kind).run(result)
            num_failed = len(result.failures) + len(result.errors)
            self.passed.update(range(self.total, self.total + result.testsRun - num_failed))
            self.failed.update(range(self.total + result.testsRun - num_failed, self.total + result.testsRun))
            self.total += result.testsRun

    def _count_assertions(self, tree: ast.Module) -> ast.Module:
        counter = _AssertionCounter()
        counted = ast.fix_missing_locations(counter.visit(tree))
        self.total = counter.total
        return counted


class _AssertionCounter(ast.NodeTransformer):
    """Lets the tests go on after a failed assertion, and notes for each whether it held."""

    def __init__(self) -> None:
        self.total = 0

    def visit_Assert(self, node: ast.Assert) -> ast.Try:
        handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, [self._note("failed")])
        counted = ast.Try([node], [handler], [self._note("passed")], [])
        self.total += 1
        return ast.copy_location(counted, node)

    def _note(self, event: str) -> ast.Expr:
        return ast.Expr(ast.Call(ast.Name(f"__test_{event}__", ast.Load()), [ast.Constant(self.total)], []))


def is_same(result: Any, expected: Any, tolerance: float) -> bool:
    """Is the result the expected value, which may come from JSON and then has lists for tuples?"""
    if isinstance(expected, list | tuple):
        return (
            isinstance(result, list | tuple)
            and len(result) == len(expected)
            and all(is_same(*pair, tolerance) for pair in zip(result, expected, strict=True))
        )
    if isinstance(expected, dict) and isinstance(result, dict):
        return expected.keys() == result.keys() and all(is_same(result[k], expected[k], tolerance) for k in expected)
    if isinstance(expected, bool) or isinstance(result, bool):
        return result is expected
    if tolerance and isinstance(expected, int | float) and isinstance(result, int | float):
        return math.isclose(result, expected, rel_tol=tolerance, abs_tol=tolerance)
    return bool(result == expected)
