"""Reward functions as the trainer calls them: an error names function and completion, and unknown never becomes 0."""

import logging
from asyncio import CancelledError
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from torch import nn
from trl.trainer.grpo_trainer import get_callable_name, is_async_callable

from ..rewards.declare import KINDS, JudgeError, declaration_of
from ..rollouts.running import describe
from ..rollouts.view import TurnView
from .scores import MAX_SHOWN, RewardResultError, Scores, check_scores, check_turn_scores

logger = logging.getLogger(__name__)

ON_REWARD_ERROR = ("raise", "none")
JUDGE_ERRORS = (JudgeError, ConnectionError, TimeoutError)
# All else counts as a failure of the function: time limits of judges, such as math-verify's, are no `Exception`.
NOT_CAUGHT = (RewardResultError, KeyboardInterrupt, SystemExit, GeneratorExit, CancelledError)
MAX_JUDGE_FAILURES = 3  # in a row: a judge that is down is not asked again for each completion left
_WHOLE_BATCH = ("trainer_state", "log_extra", "log_metric")

Batch = dict[str, Any]

T = TypeVar("T")


def guard(functions: Sequence[Any], on_error: str) -> list[Any]:
    """The reward functions of a trainer, guarded; reward models stay as they are."""
    return [_guarded(function, on_error) for function in functions]


def _guarded(function: Any, on_error: str) -> Any:
    if isinstance(function, str | nn.Module) or not callable(function):
        return function
    if isinstance(function, GuardedReward):
        return function
    return (AsyncGuardedReward if is_async_callable(function) else GuardedReward)(function, on_error)


class GuardedReward:
    """A reward function whose failures are told apart.

    An exception stops the run, with the function's name and the first completion that causes it. With `on_error`
    "none", or if the judge failed (`JudgeError`, `ConnectionError`, `TimeoutError`), the completions are scored one by
    one, and those that fail stay unscored. A result that is no list of one number or None per completion always stops
    the run.

    A function for turns gets `turns` too, the `TurnView`s of each completion, and gives a list for each completion. TRL
    is given the sum over its scored turns.
    """

    def __init__(self, function: Callable[..., Any], on_error: str) -> None:
        self.function, self.on_error = function, on_error
        name = get_callable_name(function)
        self.__name__ = f"{name}_reward" if name in KINDS else name  # the log has `rewards/<kind>/mean` of its own
        self.__wrapped__ = function
        self.declaration = declaration_of(function)
        self.views: list[list[TurnView]] = []
        """The turns of the completions that are about to be scored; set by the trainer."""
        self.turn_scores: list[Scores] | None = None
        """What a function for turns said about each of them."""

    def __call__(self, **batch: Any) -> Scores:
        return _run(self._score(batch))

    async def _call(self, batch: Batch) -> Any:
        return self.function(**batch)

    async def _score(self, batch: Batch) -> Scores:
        size = len(batch["completions"])
        if self.declaration.level == "turn":
            batch = {**batch, "turns": self.views}
        try:
            scores, evidence = await self._score_rows(batch, size)
        except NOT_CAUGHT:
            raise
        except BaseException as error:
            scores, evidence = await self._score_one_by_one(batch, size)
            if self._stops_at(error):
                raise RuntimeError(
                    f"reward function {self.__name__!r} raised {describe(error)} for {size} completions together, for "
                    "none of them alone."
                ) from error
        for column, values in evidence.items():
            batch["log_extra"](column, values)
        if self.declaration.level == "trajectory":
            return scores
        self.turn_scores = [
            [None] * len(turns) if row is None else row for row, turns in zip(scores, self.views, strict=True)
        ]
        return [_total(row) for row in self.turn_scores]

    async def _score_rows(self, batch: Batch, size: int) -> tuple[list[Any], dict[str, list]]:
        evidence: dict[str, list] = defaultdict(list)  # kept back: the call may fail

        def log_extra(column: str, values: Sequence[Any]) -> None:
            if not isinstance(column, str):
                raise RewardResultError(
                    f"reward function {self.__name__!r} logged a column {column!r}; expected a text."
                )
            evidence[column].extend(values)

        def log_metric(name: str, value: float) -> None:
            if not isinstance(name, str) or not isinstance(value, int | float):
                raise RewardResultError(
                    f"reward function {self.__name__!r} logged the metric {name!r} as {value!r}; expected a text and a "
                    "number."
                )
            batch["log_metric"](name, value)

        result = await self._call({**batch, "log_extra": log_extra, "log_metric": log_metric})
        if self.declaration.level == "turn":
            scores: list[Any] = check_turn_scores(result, [len(turns) for turns in batch["turns"]], self.__name__)
        else:
            scores = check_scores(result, size, self.__name__)
        for column, values in evidence.items():
            if len(values) != size:
                raise RewardResultError(
                    f"reward function {self.__name__!r} logged {len(values)} values in {column!r}; expected {size}, "
                    "one for each completion."
                )
        return scores, evidence

    async def _score_one_by_one(self, batch: Batch, size: int) -> tuple[list[Any], dict[str, list]]:
        scores: list[Any] = [None] * size
        evidence: dict[str, list] = defaultdict(lambda: [None] * size)
        failures_in_a_row = 0
        for row in range(size):
            if failures_in_a_row == MAX_JUDGE_FAILURES:
                evidence[f"{self.__name__}_error"][row] = "not asked: the judge is down"
                continue
            try:
                (scores[row],), logged = await self._score_rows(_row_of(batch, row), 1)
                failures_in_a_row = 0
            except NOT_CAUGHT:
                raise
            except BaseException as error:
                if self._stops_at(error):
                    raise self._error(error, row, batch) from error
                failures_in_a_row = failures_in_a_row + 1 if isinstance(error, JUDGE_ERRORS) else 0
                logged = {f"{self.__name__}_error": [describe(error)]}
            for column, (value,) in logged.items():
                evidence[column][row] = value
        self._warn(evidence.get(f"{self.__name__}_error", []))
        return scores, evidence

    def _warn(self, errors: list[str | None]) -> None:
        rows = [row for row, error in enumerate(errors) if error]
        if rows:
            logger.warning(
                "reward function %r failed for completions %s of %d, which stay unscored by it: %s",
                self.__name__,
                rows,
                len(errors),
                errors[rows[0]],
            )

    def _stops_at(self, error: BaseException) -> bool:
        return self.on_error == "raise" and not isinstance(error, JUDGE_ERRORS)

    def _error(self, error: BaseException, row: int, batch: Batch) -> RuntimeError:
        completion = repr(batch["completions"][row])
        return RuntimeError(
            f"reward function {self.__name__!r} raised {describe(error)}, first for completion {row}: "
            f"{completion[:MAX_SHOWN]}{'...' * (len(completion) > MAX_SHOWN)}; return None where it cannot tell, raise "
            "JudgeError where its judge failed, or set on_reward_error='none' to leave such completions unscored."
        )


class AsyncGuardedReward(GuardedReward):
    """A guarded coroutine function, which TRL runs beside the others."""

    async def __call__(self, **batch: Any) -> Scores:  # type: ignore[override]
        return await self._score(batch)

    async def _call(self, batch: Batch) -> Any:
        return await self.function(**batch)


def _total(turns: Scores) -> float | None:
    scored = [score for score in turns if score is not None]
    return sum(scored) if scored else None


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("a sync reward function was awaited")


def _row_of(batch: Batch, row: int) -> Batch:
    return {name: value if name in _WHOLE_BATCH else [value[row]] for name, value in batch.items()}
