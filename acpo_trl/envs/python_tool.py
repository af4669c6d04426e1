"""The environment `python_tool`: solve a task with Python programs that run in a sandbox."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..resolve import resolve
from ..rollouts.options import check_number, check_whole
from ..rollouts.view import TurnView
from ..sandbox import SANDBOXES, ExecResult, Limits, Sandbox, SandboxError, run
from .base import TurnScore
from .judge import check_outcome_columns, format_score, num_attempts, outcome_reward, outcome_scores, tools_of


class PythonTool:
    """A tool that runs a program and returns what it printed. Each call is a fresh process: nothing is kept.

    Rewards of a turn: `outcome`, on the last turn: what the reward `outcome` says about its text. `cost`: `call_cost`
    for each call it attempts, negative. `format`: -1.0 if one of its calls cannot be carried out, else 0.0. `process`
    is None: neither a program that ran nor one that printed the right number shows that the step was right. The state
    key is the number of calls so far. An episode in which the sandbox failed is not judged.

    Args:
        sandbox: `bubblewrap`, `process`, the dotted path of a callable that gives a sandbox, or a sandbox.
        limits: what a program may use: the defaults of `acpo_trl.sandbox.Limits` with these changes.
        max_characters: output that the policy sees, and as much again of the error message.
        call_cost: what a call costs.
        outcome: name of a reward in `acpo_trl.rewards.REWARDS`, a dotted path, or a reward; it gets the row's columns.

    Raises:
        SandboxError: the sandbox cannot isolate programs here.
        ValueError, TypeError: an option that cannot work.
    """

    reward_kinds: tuple[str, ...] = ("outcome", "format", "cost", "process")

    def __init__(
        self,
        sandbox: str | Sandbox = "bubblewrap",
        limits: dict[str, Any] | None = None,
        max_characters: int = 1000,
        call_cost: float = 0.1,
        outcome: str | Callable[..., Any] = "math",
    ) -> None:
        check_whole("max_characters", max_characters)
        check_number("call_cost", call_cost, zero=True)
        if not isinstance(sandbox, str) and not hasattr(sandbox, "start"):
            raise TypeError(f"sandbox {sandbox!r}: is none; expected one of {sorted(SANDBOXES)}, a path, or a sandbox.")
        if not isinstance(limits, Mapping | None):
            raise TypeError(f"limits {limits!r}: are none; expected a dictionary such as {{'wall_s': 2.0}}, or None.")
        self._limits = Limits(**limits or {})
        self._sandbox = _open(sandbox) if isinstance(sandbox, str) else sandbox
        self._max_characters = max_characters
        self._call_cost = call_cost
        self._outcome = outcome_reward(outcome)

    def reset(self, **row: Any) -> None:
        """Begin an episode; the reward `outcome` says which columns it needs, `math` needs `solution` or `answer`."""
        self._row = row
        self._failure: SandboxError | None = None

    def _check_columns(self, columns: Collection[str]) -> None:
        """Raise ValueError for a dataset without a column that the reward `outcome` needs."""
        check_outcome_columns(self._outcome, columns)

    def python(self, code: str) -> str:
        """
        Run a Python program and read what it prints. Each run starts afresh.

        Args:
            code: The program.
        """
        try:
            result = run(self._sandbox, code, limits=self._limits)
        except SandboxError as error:
            self._failure = error  # TRL's loop shows it to the policy and goes on
            raise
        return _report(result, self._max_characters)

    def _score(self, turns: Sequence[TurnView]) -> list[TurnScore]:
        if self._failure is not None:
            raise self._failure
        outcomes = outcome_scores(self._outcome, self._row, turns)
        scores, num_calls, tools = [], 0, tools_of(self)
        for turn, outcome in zip(turns, outcomes, strict=True):
            attempts = num_attempts(turn)
            rewards = {
                "outcome": outcome,
                "format": format_score(tools, turn),
                "cost": 0.0 - self._call_cost * attempts,
                "process": None,
            }
            scores.append(TurnScore(rewards, str(num_calls)))
            num_calls += attempts
        return scores


@functools.cache
def _open(name: str) -> Sandbox:
    """Give the one sandbox of this name that all environments of the process share."""
    return resolve(name, SANDBOXES, "sandbox")()


def _report(result: ExecResult, max_characters: int) -> str:
    """Give what a program printed, the end of its error message and what ended it, shortened."""
    output = result.output.decode(errors="replace")
    errors = result.errors.decode(errors="replace").rstrip()
    # What stands before is the frames of the sandbox.
    errors = errors[max(errors.find('  File "program.py"'), 0) :]
    if len(output) > max_characters:
        output = f"{output[:max_characters]}\n[{len(output) - max_characters} characters more]"
    if len(errors) > max_characters:
        errors = f"[...]{errors[-max_characters:]}"
    end = f"[{result.exit.reason}]" if result.exit.reason else ""
    return "\n".join(part.rstrip() for part in (output, errors, end) if part) or "[no output]"
