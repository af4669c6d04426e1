"""Draw the samples of an evaluation that are still missing, check them, keep them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from accelerate.utils import broadcast_object_list
from tqdm.auto import tqdm  # type: ignore[import-untyped]

from .benchmarks import Benchmark, Problem
from .checks import check_responses
from .generate import Generator
from .plan import Batch
from .samples import Sample, SampleStore, read_samples


class Task(NamedTuple):
    """A benchmark with the problems of it that are asked."""

    benchmark: Benchmark
    problems: Mapping[str, Problem]
    """By id."""
    origin: str
    """What the problems were read from."""
    stop: Sequence[str] = ()
    is_thinking: bool = False
    """Responses begin inside a thinking block."""


def draw(batch: Batch, task: Task, generator: Generator) -> list[Sample]:
    """Responses to a batch, with their verdicts."""
    started = time.perf_counter()
    responses = generator(batch, task.stop)
    asked = [task.problems[request.problem_id] for request in batch.requests]
    pairs = [(problem, said.text) for problem, said in zip(asked, responses, strict=True)]
    verdicts = check_responses(task.benchmark, pairs, task.is_thinking)
    seconds = round((time.perf_counter() - started) / len(batch.requests), 4)
    return [
        Sample(
            request.benchmark,
            request.problem_id,
            request.sample_index,
            said.text,
            verdict.answer,
            verdict.score,
            verdict.reason,
            said.num_tokens,
            said.is_truncated,
            seconds,
        )
        for request, said, verdict in zip(batch.requests, responses, verdicts, strict=True)
    ]


def run(
    batches: Sequence[Batch], tasks: Mapping[str, Task], generator: Generator, store: SampleStore, state: Any
) -> list[Sample] | None:
    """Draw what is not on the disk yet, each process its share.

    Args:
        batches: all of the evaluation.
        tasks: by name of the benchmark.
        generator: of this process.
        store: where samples are kept.
        state: `accelerate.PartialState`.

    Returns:
        All samples in order, on the main process; None on the others.
    """
    sizes = {batch.number: len(batch.requests) for batch in batches}
    done = [sorted(store.collect(sizes))] if state.is_main_process else [None]
    finished = set(broadcast_object_list(done)[0] or ())
    missing = [batch for batch in batches if batch.number not in finished]
    own = missing[state.process_index :: state.num_processes]
    for batch in _progress(own, len(batches), len(finished), state):
        store.append(state.process_index, batch.number, draw(batch, tasks[batch.requests[0].benchmark], generator))
    state.wait_for_everyone()
    if not state.is_main_process:
        return None
    samples = [sample for batch in store.collect(sizes).values() for sample in batch]
    store.finish(sorted(samples, key=_order(tasks)))
    return read_samples(store.final)


def _order(tasks: Mapping[str, Task]) -> Callable[[Sample], tuple[int, int, int]]:
    """By benchmark and problem as they were given, then by index."""
    places = {
        (name, problem): (rank, place)
        for rank, (name, task) in enumerate(tasks.items())
        for place, problem in enumerate(task.problems)
    }
    return lambda sample: (*places[sample.benchmark, sample.problem_id], sample.sample_index)


def _progress(batches: Sequence[Batch], total: int, done: int, state: Any) -> Iterable[Batch]:
    """The batches of this process, with a bar on the main one that counts those of all."""
    with tqdm(total=total, initial=done, desc="evaluate", unit="batch", disable=not state.is_main_process) as bar:
        for batch in batches:
            yield batch
            bar.update(min(state.num_processes, total - bar.n))
