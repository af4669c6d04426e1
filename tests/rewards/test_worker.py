"""Processes with limits: what is killed, what survives, and what is left behind (nothing)."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acpo_trl.rewards.worker import Failure, Pool

LIMIT_S = 1.0
MEMORY_BYTES = 2 * 2**30


@pytest.fixture
def pool():
    pool = Pool("worker_calls.act", LIMIT_S, MEMORY_BYTES, num_workers=2)
    yield pool
    pool.close()


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children():
    """Processes, zombies included, whose parent is this one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == os.getpid():
            found.append(int(stat.parent.name))
    return found


def test_results_come_in_order_from_more_calls_than_workers(pool):
    assert pool.run([("echo", n) for n in range(50)]) == list(range(50))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sleep", "compute"])
def test_call_beyond_the_limit_is_killed_and_its_neighbours_are_not(pool, kind):
    pool.run([("echo", 0)] * 2)
    start = time.monotonic()
    results = pool.run([("echo", 1), (kind,), ("echo", 2), (kind,), ("echo", 3)])
    assert results == [1, Failure("time limit"), 2, Failure("time limit"), 3]
    assert time.monotonic() - start < LIMIT_S + 2


def test_crash_memory_and_exception_are_failures_of_their_call_only(pool):
    calls = [("exit",), ("echo", 1), ("allocate", 10 * MEMORY_BYTES), ("echo", 2), ("raise", "key"), ("echo", 3)]
    assert pool.run(calls) == [Failure("crash"), 1, Failure("MemoryError"), 2, Failure("KeyError"), 3]


def test_threads_share_the_pool(pool):
    with ThreadPoolExecutor(4) as threads:
        batches = list(threads.map(pool.run, [[("echo", (n, i)) for i in range(20)] for n in range(4)]))
    assert batches == [[(n, i) for i in range(20)] for n in range(4)]


def test_worker_that_died_between_batches_is_replaced(pool):
    (pid,) = pool.run([("pid",)])
    os.kill(pid, signal.SIGKILL)
    pool.workers[0].process.wait()
    assert pool.run([("echo", 1)]) == [1]


@pytest.mark.slow
def test_close_leaves_no_process_and_no_zombie(pool):
    before = set(children())
    pids = set(pool.run([("pid",), ("pid",), ("sleep",)])[:2])
    pool.close()
    assert not any(map(is_alive, pids))
    assert set(children()) <= before
    assert pool.run([("echo", 1)]) == [1]


def test_forked_child_has_workers_of_its_own(pool):
    (pid,) = pool.run([("pid",)])
    child = os.fork()
    if not child:
        os._exit(0 if pool.run([("pid",)]) != [pid] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert pool.run([("pid",)]) == [pid]


def test_worker_that_cannot_start_is_an_error():
    with pytest.raises(RuntimeError, match=r"worker for 'no_such_module.f': crash before its first call"):
        Pool("no_such_module.f", LIMIT_S, MEMORY_BYTES).run([()])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["echo", "compute"])
def test_workers_end_when_their_parent_is_killed(kind):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, kind], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": PATH}
    )
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    time.sleep(0.2)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + LIMIT_S + 3
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(pids) == 2
    assert not any(map(is_alive, pids))


PATH = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
PARENT = f"""
import sys, time
from acpo_trl.rewards.worker import Pool
pool = Pool("worker_calls.act", {LIMIT_S}, {MEMORY_BYTES}, num_workers=2)
pool.run([("echo", 1), ("echo", 2)])
print(*(worker.process.pid for worker in pool.workers), flush=True)
pool.run([(sys.argv[1],)] * 2)
time.sleep(60)
"""
