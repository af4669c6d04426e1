"""Environments beside each other: nobody waits for one that hangs, and nothing of it comes back."""

import asyncio
import pickle
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from acpo_trl.rollouts import stepping
from acpo_trl.rollouts.stepping import EnvironmentPool, StepTimeout


class Environment:
    def __init__(self):
        self.thread = threading.get_ident()

    def work(self, seconds=0.0):
        time.sleep(seconds)
        return threading.get_ident() == self.thread

    async def work_async(self, seconds=0.0):
        await asyncio.sleep(seconds)
        return id(asyncio.get_running_loop())

    def leave(self):
        sys.exit(3)


def work(seconds):
    return partial(_work, seconds)


def _work(seconds, environment):
    return environment.work(seconds)


def call(pool, *calls):
    workers = pool.take(len(calls))
    return workers, pool.call(workers, calls)


def test_calls_run_beside_each_other_and_results_keep_their_order():
    pool = EnvironmentPool(Environment, limit_s=5.0, num_workers=8)
    calls = [lambda environment, i=i: (environment.work(0.2 - 0.02 * i), i) for i in range(8)]
    begun = time.monotonic()
    _, results = call(pool, *calls)
    assert time.monotonic() - begun < 0.6  # one after another: 1.0 s
    assert results == [(True, i) for i in range(8)]


def test_no_more_calls_than_workers_at_a_time():
    busy, most = [], []

    def count(environment):
        busy.append(1)
        most.append(len(busy))
        time.sleep(0.02)
        busy.pop()

    call(EnvironmentPool(Environment, limit_s=5.0, num_workers=2), *[count] * 6)
    assert max(most) == 2


def test_a_hanging_call_costs_one_limit_also_if_others_wait_for_its_worker():
    release = threading.Event()
    pool = EnvironmentPool(Environment, limit_s=0.3, num_workers=1)
    begun = time.monotonic()
    _, results = call(pool, lambda environment: release.wait(), work(0.0), work(0.0))
    assert 0.3 <= time.monotonic() - begun < 0.5
    assert isinstance(results[0], StepTimeout)
    assert str(results[0]) == "no answer within 0.3 s"
    assert results[1:] == [True, True]
    assert pool.num_hanging == 1
    release.set()
    deadline = time.monotonic() + 5
    while pool.num_hanging and time.monotonic() < deadline:
        time.sleep(0.01)
    assert pool.num_hanging == 0


def test_an_answer_that_comes_too_late_is_not_taken_for_another_one():
    pool = EnvironmentPool(Environment, limit_s=0.1, num_workers=2)
    _, first = call(pool, work(0.15), work(0.0))
    _, second = call(pool, lambda environment: (time.sleep(0.09), "second"), lambda environment: "third")
    assert isinstance(first[0], StepTimeout)
    assert second == [(None, "second"), "third"]


def test_exceptions_are_results_also_those_that_would_end_the_process():
    pool = EnvironmentPool(Environment, limit_s=5.0, num_workers=4)
    _, results = call(pool, lambda environment: 1 / 0, lambda environment: environment.leave(), work(0.0))
    assert [type(result) for result in results] == [ZeroDivisionError, SystemExit, bool]


def test_an_environment_that_cannot_be_made_is_a_failed_call():
    pool = EnvironmentPool(lambda: 1 / 0, limit_s=5.0, num_workers=4)
    _, (result,) = call(pool, work(0.0))
    assert isinstance(result, ZeroDivisionError)


def test_an_environment_lives_in_one_thread_with_one_loop():
    pool = EnvironmentPool(Environment, limit_s=5.0, num_workers=4)
    workers = pool.take(1)
    assert pool.call(workers, [work(0.0)]) == pool.call(workers, [work(0.0)]) == [True]
    first, second = (pool.call(workers, [lambda environment: environment.work_async()]) for _ in range(2))
    assert first == second


@pytest.mark.slow
def test_a_coroutine_that_hangs_costs_one_limit_and_keeps_no_thread():
    pool = EnvironmentPool(Environment, limit_s=0.2, num_workers=4)
    begun = time.monotonic()
    _, results = call(
        pool, lambda environment: environment.work_async(60), lambda environment: environment.work_async()
    )
    assert time.monotonic() - begun < 0.4
    assert isinstance(results[0], StepTimeout)
    assert isinstance(results[1], int)
    deadline = time.monotonic() + 5
    while pool.num_hanging and time.monotonic() < deadline:
        time.sleep(0.05)
    assert pool.num_hanging == 0


def test_workers_come_back_and_their_threads_end_with_the_pool():
    pool = EnvironmentPool(Environment, limit_s=5.0, num_workers=4)
    workers = pool.take(3)
    pool.call(workers, [work(0.0)] * 3)
    threads = [worker.thread for worker in workers]
    pool.give_back(workers)
    assert pool.take(4)[:3] == workers
    del pool, workers
    for thread in threads:
        thread.join(timeout=5)
        assert not thread.is_alive()


def test_too_many_hanging_calls_stop_the_run(monkeypatch):
    monkeypatch.setattr(stepping, "MAX_HANGING", 1)
    release = threading.Event()
    pool = EnvironmentPool(Environment, limit_s=0.05, num_workers=4)
    with pytest.raises(RuntimeError, match="2 steps of environments hang"):
        call(pool, *[lambda environment: release.wait()] * 3)
    release.set()


def test_a_pool_that_was_used_can_be_pickled():
    pool = EnvironmentPool(Environment, limit_s=5.0, num_workers=4)
    workers, _ = call(pool, work(0.0))
    pool.give_back(workers)
    copy = pickle.loads(pickle.dumps(pool))
    assert (copy.make, copy.limit_s, copy.num_workers) == (Environment, 5.0, 4)
    assert call(copy, work(0.0))[1] == [True]


@pytest.mark.slow
def test_the_process_ends_although_a_call_hangs():
    program = """
import time
from acpo_trl.rollouts.stepping import EnvironmentPool
pool = EnvironmentPool(dict, 0.1, 2)
print(pool.call(pool.take(1), [lambda environment: time.sleep(60)]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "[StepTimeout('no answer within 0.1 s')]\n"
