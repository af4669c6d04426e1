"""Call a function in processes that can be killed: hard limits of time and memory for code that cannot be interrupted.

The workers are fresh interpreters, so neither the caller's threads nor its libraries reach them, and a script needs no
`if __name__ == "__main__"` guard. A worker ends when its pipe closes, so it cannot outlive the process that started it.
"""

import atexit
import contextlib
import importlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

START_S = 120.0
MAX_WORKERS = 8
STACK_BYTES = 256 * 2**20
_READY = "ready"


@dataclass(frozen=True)
class Failure:
    """What a call gives that has no result."""

    reason: str
    """`time limit`, `crash`, or the name of the exception."""
    seconds: float = field(default=0.0, compare=False)
    """Wall-clock time until it failed."""


class Worker:
    """One interpreter that answers one call at a time."""

    def __init__(self, target: str, limit_s: float, memory_bytes: int) -> None:
        self.connection, theirs = Pipe()
        # The caller's search path, which need not contain the working directory that `-c` puts first.
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; "
            f"serve({theirs.fileno()}, {target!r}, {limit_s}, {memory_bytes})"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONHASHSEED": "0"},  # sympy orders by hash: the same verdict in every worker
        )
        theirs.close()
        self.is_ready = self.is_busy = False
        self.index = 0  # of its task in the batch
        self.deadline = 0.0

    def send(self, index: int, task: tuple, limit_s: float) -> None:
        self.index, self.is_busy = index, True
        self.deadline = time.monotonic() + (limit_s if self.is_ready else START_S)
        self.connection.send(task)

    def kill(self) -> None:
        """End the process; no zombie stays."""
        self.connection.close()
        self.process.kill()
        self.process.wait()


class Pool:
    """Workers that call `target` with a hard limit per call.

    Args:
        target: `package.module.function`; its arguments and results are pickled.
        limit_s: wall-clock seconds a call may take before its process is killed.
        memory_bytes: address space of each process.
        num_workers: processes; by default one for each core that is this local rank's share, at most 8.
    """

    def __init__(self, target: str, limit_s: float, memory_bytes: int, num_workers: int | None = None) -> None:
        self.target, self.limit_s, self.memory_bytes = target, limit_s, memory_bytes
        self.num_workers = num_workers or default_num_workers()
        self.workers: list[Worker] = []
        self.lock = threading.Lock()
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)

    def run(self, tasks: Sequence[tuple]) -> list:
        """Give `target(*task)` for each task, in order, or a `Failure`. Safe from any thread.

        Raises:
            RuntimeError: a worker cannot start.
        """
        results: list[object] = [None] * len(tasks)
        queue = deque(enumerate(tasks))
        with self.lock:
            try:
                while queue or any(worker.is_busy for worker in self.workers):
                    self._hand_out(queue)
                    self._collect(results)
            except BaseException:
                # An interrupted batch leaves replies in the pipes that would be taken for those of the next one.
                self.close()
                raise
        return results

    def close(self) -> None:
        """End all processes; the next `run` starts new ones."""
        while self.workers:
            self.workers.pop().kill()

    def _forget(self) -> None:
        # After a fork the workers still belong to the parent; the child gives up its copies of their pipes.
        self.lock = threading.Lock()
        while self.workers:
            self.workers.pop().connection.close()

    def _hand_out(self, queue: deque[tuple[int, tuple]]) -> None:
        for worker in [worker for worker in self.workers if not worker.is_busy]:
            if worker.process.poll() is not None:
                self._drop(worker)
            elif queue:
                worker.send(*queue.popleft(), self.limit_s)
        while queue and len(self.workers) < self.num_workers:
            self.workers.append(Worker(self.target, self.limit_s, self.memory_bytes))
            self.workers[-1].send(*queue.popleft(), self.limit_s)

    def _collect(self, results: list) -> None:
        """Wait for the first reply or deadline, then take every reply that is there."""
        busy = [worker for worker in self.workers if worker.is_busy]
        timeout = min(worker.deadline for worker in busy) - time.monotonic()
        readable = wait([worker.connection for worker in busy], max(timeout, 0.0))
        for worker in busy:
            if worker.connection in readable:
                self._take_reply(worker, results)
            elif time.monotonic() >= worker.deadline:
                self._fail(worker, results, "time limit")

    def _take_reply(self, worker: Worker, results: list) -> None:
        try:
            reply = worker.connection.recv()
        except (EOFError, OSError):
            return self._fail(worker, results, "crash")
        if reply == _READY:
            worker.is_ready, worker.deadline = True, time.monotonic() + self.limit_s
        else:
            results[worker.index], worker.is_busy = reply, False

    def _fail(self, worker: Worker, results: list, reason: str) -> None:
        self._drop(worker)
        if not worker.is_ready:
            raise RuntimeError(f"worker for {self.target!r}: {reason} before its first call; see its messages above.")
        started = worker.deadline - self.limit_s
        results[worker.index] = Failure(reason, time.monotonic() - started)

    def _drop(self, worker: Worker) -> None:
        self.workers.remove(worker)
        worker.kill()


def default_num_workers() -> int:
    """Give the number of cores for each process of this machine's launch, from 1 to 8."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MAX_WORKERS, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1))))


def serve(descriptor: int, target: str, limit_s: float, memory_bytes: int) -> None:
    """Answer calls from the pipe `descriptor` until it closes. Runs in the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(100_000)
    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=_answer, args=(Connection(descriptor), target, limit_s))
    thread.start()
    thread.join()


def _answer(connection: Connection, target: str, limit_s: float) -> None:
    module, _, name = target.rpartition(".")
    function = getattr(importlib.import_module(module), name)
    with contextlib.suppress(EOFError, OSError):  # the pipe is closed: the parent has no more calls, or is gone
        connection.send(_READY)
        while True:
            task = connection.recv()
            # The parent kills at the limit. If it is gone, the kernel does: the default action of SIGALRM is to end us.
            signal.setitimer(signal.ITIMER_REAL, limit_s + 1)
            started = time.monotonic()
            try:
                reply = function(*task)
            except Exception as error:
                reply = Failure(type(error).__name__, time.monotonic() - started)
            signal.setitimer(signal.ITIMER_REAL, 0)
            connection.send(reply)
