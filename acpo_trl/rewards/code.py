"""Does the program pass its tests? The reward `code`."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any

from acpo_trl.resolve import resolve
from acpo_trl.rewards.code_extract import program_of
from acpo_trl.rewards.code_tests import CodeVerdict, judge, read_tests
from acpo_trl.rewards.extract import Completion, last_assistant_text
from acpo_trl.rewards.worker import default_num_workers
from acpo_trl.sandbox import SANDBOXES, Limits, Sandbox, SandboxError

MAX_CHARACTERS = 200_000
COLUMNS = ("test", "tests", "entry_point", "starter_code")

_sandboxes: dict[str, Sandbox] = {}


class CodeReward:
    """1.0 for a program that passes all its tests, 0.0 for a wrong or missing one, None where nothing was found out.

    The program is taken from the last assistant message. The tests come from the dataset: column `test` (assertions, a
    function `check(candidate)` or `unittest` classes) or column `tests` (a list, or its JSON text, of assertions, of
    `{input, output}` or of `{args, expected}`), with `entry_point` and `starter_code`. docs/concepts/sandbox.md says
    which part of a message is the program, what the tests can ask of it, and what the program cannot do.

    Args:
        sandbox: `bubblewrap`, `process`, the dotted path of a callable that gives a sandbox, or a sandbox.
        partial_credit: the score is the share of tests passed.
        tolerance: by how much a number may differ from the expected one, absolutely or relatively; not in assertions.
        limits: what a program may use; the defaults of `acpo_trl.sandbox.Limits` with these changes.
        num_workers: programs that run at a time; by default one for each core that is this local rank's share.

    Raises:
        TypeError: an option has no such type.
        ValueError: an option has no such value.
    """

    __name__ = "code"

    def __init__(
        self,
        sandbox: str | Sandbox = "bubblewrap",
        partial_credit: bool = False,
        tolerance: float = 0.0,
        limits: dict[str, Any] | None = None,
        num_workers: int | None = None,
    ) -> None:
        _check_options(sandbox, partial_credit, tolerance, limits, num_workers)
        self.sandbox = sandbox
        self.partial_credit = partial_credit
        self.tolerance = tolerance
        self.limits = Limits(**limits or {})
        self.num_workers = num_workers

    def check_columns(self, columns: Iterable[str]) -> None:
        """Find out before training whether programs can be judged.

        Raises:
            SandboxError: the sandbox cannot isolate programs here.
            ValueError: there is neither a column `test` nor a column `tests`.
        """
        names = set(columns)
        if not {"test", "tests"} & names:
            raise ValueError(
                f"reward 'code': no tests among the columns {sorted(names)}; expected a column 'test' or 'tests'; "
                "rename the column that holds them."
            )
        self._open_sandbox()

    def gold(self, row: Mapping[str, Any]) -> str | None:
        """Give the row's `canonical_solution` as a model would write it; None if there is none.

        One that is indented is the body of the last function of `starter_code`, else of `prompt`, as in HumanEval.
        """
        solution = row.get("canonical_solution")
        if not solution:
            return None
        start = (row.get("starter_code") or row.get("prompt")) if solution.lstrip("\n")[:1].isspace() else ""
        return f"```python\n{start}\n{solution}\n```" if isinstance(start, str) else None

    def __call__(
        self,
        completions: Sequence[Completion],
        log_extra: Callable[[str, list], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Run the program in each completion against its tests.

        Raises:
            SandboxError: the sandbox cannot isolate programs here, or failed for every completion.
            ValueError: there is neither a column `test` nor a column `tests`.
        """
        self.check_columns(columns)
        sandbox = self._open_sandbox()
        given = [name for name in COLUMNS if name in columns]
        rows = [{name: columns[name][index] for name in given} for index in range(len(completions))]
        with ThreadPoolExecutor(self.num_workers or default_num_workers()) as threads:
            texts = map(last_assistant_text, completions)
            judged = list(threads.map(lambda text, row: self._judge(sandbox, text, row), texts, rows))
        verdicts = [verdict for _, verdict in judged]
        if verdicts and all(verdict.outcome == "sandbox_error" for verdict in verdicts):
            raise SandboxError(f"reward 'code': the sandbox failed for every completion: {verdicts[-1].message}")
        if log_extra is not None:
            log_extra("code_program", [program or "" for program, _ in judged])
            log_extra("code_reason", [f"{verdict.outcome}: {verdict.message}".rstrip(": ") for verdict in verdicts])
            log_extra("code_seconds", [verdict.seconds for verdict in verdicts])
        if log_metric is not None and verdicts:
            log_metric(
                "rewards/code/no_code", sum(verdict.outcome == "no_code" for verdict in verdicts) / len(verdicts)
            )
            log_metric("rewards/code/unscored", sum(verdict.score is None for verdict in verdicts) / len(verdicts))
        return [verdict.score for verdict in verdicts]

    def _judge(self, sandbox: Sandbox, text: str, row: dict[str, Any]) -> tuple[str | None, CodeVerdict]:
        try:
            tests = read_tests(row)
        except ValueError as error:
            return None, CodeVerdict(None, "no_tests", str(error))
        if len(text) > MAX_CHARACTERS:
            return None, CodeVerdict(0.0, "too_long")
        program = program_of(text, tests.entry_point, tests.starter)
        if program is None:
            return None, CodeVerdict(0.0, "no_code")
        try:
            return program, judge(sandbox, program, tests, self.limits, self.partial_credit, self.tolerance)
        except SandboxError as error:
            return program, CodeVerdict(None, "sandbox_error", str(error))

    def _open_sandbox(self) -> Sandbox:
        if not isinstance(self.sandbox, str):
            return self.sandbox
        if self.sandbox not in _sandboxes:
            _sandboxes[self.sandbox] = resolve(self.sandbox, SANDBOXES, "sandbox")()
        return _sandboxes[self.sandbox]


def _check_options(sandbox: object, partial_credit: object, tolerance: object, limits: object, workers: object) -> None:
    """Raise TypeError or ValueError for an option that could not work."""
    if not isinstance(sandbox, str) and not callable(getattr(sandbox, "start", None)):
        raise _wrong_type("sandbox", sandbox, "the name of a sandbox, a dotted path, or an object with a method start")
    if not isinstance(partial_credit, bool):
        raise _wrong_type("partial_credit", partial_credit, "True or False")
    if not isinstance(tolerance, int | float) or isinstance(tolerance, bool):
        raise _wrong_type("tolerance", tolerance, "a number, 0 or more")
    if not 0 <= tolerance < math.inf:
        raise ValueError(f"reward 'code', tolerance {tolerance!r}: no number is that near; expected 0 or more.")
    if limits is not None and not isinstance(limits, Mapping):
        raise _wrong_type("limits", limits, "names and values such as {'wall_s': 6.0}")
    if unknown := set(limits or ()) - {field.name for field in fields(Limits)}:
        known = [field.name for field in fields(Limits)]
        raise ValueError(
            f"reward 'code', limits {sorted(map(str, unknown))}: no such limits; expected some of {known}."
        )
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool)):
        raise _wrong_type("num_workers", workers, "a whole number, 1 or more")
    if workers is not None and workers < 1:
        raise ValueError(f"reward 'code', num_workers {workers!r}: no program would run; expected 1 or more.")


def _wrong_type(option: str, value: object, expected: str) -> TypeError:
    return TypeError(f"reward 'code', {option} {value!r}: is a {type(value).__name__}; expected {expected}.")
