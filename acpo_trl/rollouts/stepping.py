"""Environments beside each other: each in a thread of its own, none waited for longer than a limit."""

import asyncio
import inspect
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

Call = Callable[[Any], Any]
"""Something to do with an environment; may give a coroutine."""

# So many threads in which a step hangs are left behind; with more, the machine is no longer fit for training.
MAX_HANGING = 64


class StepTimeout(TimeoutError):
    """An environment gave no answer in time."""


class Worker:
    """An environment in a thread of its own, made there by its first call.

    Always the same thread, and one event loop, so that connections and clients of the environment stay usable. The
    thread ends with the worker, or, if a call hangs, with the process.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._calls: SimpleQueue[Any] = SimpleQueue()
        self.thread = Thread(target=_serve, args=(make, self._calls), name="environment", daemon=True)
        self.thread.start()
        weakref.finalize(self, self._calls.put, None)

    def end(self) -> None:
        """Let the thread end as soon as its call does."""
        self._calls.put(None)

    def start(self, call: Call, answers: SimpleQueue[Any], ticket: int, limit_s: float) -> None:
        """Put `(ticket, result)` into `answers` once the call is done; the result may be an exception."""
        self._calls.put((call, answers, ticket, limit_s))


class EnvironmentPool:
    """Environments for one batch after another; those that failed never come back.

    Args:
        make: gives an environment.
        limit_s: seconds for a call.
        num_workers: calls at a time.
    """

    def __init__(self, make: Callable[[], Any], limit_s: float, num_workers: int) -> None:
        self.make = make
        self.limit_s = limit_s
        self.num_workers = num_workers
        self._idle: list[Worker] = []
        self._left_behind: list[Thread] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return EnvironmentPool, (self.make, self.limit_s, self.num_workers)  # threads stay in their process

    def take(self, count: int) -> list[Worker]:
        """Give `count` workers; those that there are come first."""
        taken, self._idle = self._idle[:count], self._idle[count:]
        return taken + [Worker(self.make) for _ in range(count - len(taken))]

    def give_back(self, workers: Sequence[Worker]) -> None:
        """Take back workers of which no call failed."""
        self._idle += workers

    @property
    def num_hanging(self) -> int:
        """How many calls still run behind their limit."""
        self._left_behind = [thread for thread in self._left_behind if thread.is_alive()]
        return len(self._left_behind)

    def call(self, workers: Sequence[Worker], calls: Sequence[Call]) -> list[Any]:
        """Make one call with each worker, beside each other.

        A call that hangs keeps no other one waiting: the whole takes one limit, plus, if there are more calls than
        `num_workers`, the time until those have had their turn.

        Returns:
            N results; the exception of a call that failed, `StepTimeout` of one that hangs.

        Raises:
            RuntimeError: too many calls hang, of this batch and of earlier ones.
        """
        results: list[Any] = [None] * len(calls)
        answers: SimpleQueue[Any] = SimpleQueue()
        waiting, deadlines = deque(range(len(calls))), dict[int, float]()  # in the order of their start
        while waiting or deadlines:
            while waiting and len(deadlines) < self.num_workers:
                index = waiting.popleft()
                deadlines[index] = time.monotonic() + self.limit_s
                workers[index].start(calls[index], answers, index, self.limit_s)
            oldest = next(iter(deadlines))
            try:
                index, result = answers.get(timeout=max(0.0, deadlines[oldest] - time.monotonic()))
            except Empty:
                index, result = oldest, StepTimeout(f"no answer within {self.limit_s} s")
                self._leave_behind(workers[index])
            if deadlines.pop(index, None) is not None:  # else it comes too late
                results[index] = result
        return results

    def _leave_behind(self, worker: Worker) -> None:
        worker.end()
        self._left_behind.append(worker.thread)
        if self.num_hanging > MAX_HANGING:
            raise RuntimeError(
                f"{self.num_hanging} steps of environments hang: each keeps a thread and its memory; expected at most "
                f"{MAX_HANGING}; give what the environment waits for a time limit of its own."
            )


def _serve(make: Callable[[], Any], calls: SimpleQueue[Any]) -> None:
    environment, loop = None, None
    while (item := calls.get()) is not None:
        call, answers, ticket, limit_s = item
        try:
            environment = make() if environment is None else environment
            result = call(environment)
            if inspect.isawaitable(result):
                loop = loop or asyncio.new_event_loop()
                result = loop.run_until_complete(_within(limit_s, result))
        except BaseException as error:  # also SystemExit: it ends an episode, and neither thread nor process
            result = error
        answers.put((ticket, result))
    if loop is not None:
        loop.close()


async def _within(limit_s: float, awaitable: Awaitable[T]) -> T:
    """Cancel a coroutine that hangs, so that it keeps no thread; a second late, because the caller gives up first."""
    return await asyncio.wait_for(awaitable, limit_s + 1.0)
