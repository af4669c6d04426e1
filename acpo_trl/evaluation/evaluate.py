"""An evaluation: prepared and checked before anything is generated, then run, and gone on with after a kill."""

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from ..sandbox import SandboxError
from .benchmarks import Benchmark
from .checks import check_responses
from .generate import Generator, Sampling
from .load import load_problems
from .plan import Batch, make_batches
from .prompts import Prompt, PromptStyle, make_prompts, uses_chat
from .results import BenchmarkResult, summarize, write_results
from .run import Task, run
from .samples import Sample, SampleStore, read_samples, write_whole
from .tables import markdown_table

SETTINGS, CARD = "evaluation.json", "results.md"


@dataclass(frozen=True)
class EvalOptions:
    """How benchmarks are asked.

    Raises:
        ValueError: a number that cannot be.
    """

    num_samples: int = 1
    """k, for each problem."""
    limit: int | None = None
    """So many problems of each benchmark, drawn at random; None takes all."""
    seed: int = 0
    batch_size: int = 8
    """Responses that are generated together. Samples depend on it."""
    style: PromptStyle = field(default_factory=PromptStyle)
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        for name in ("num_samples", "batch_size"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} {value!r}: nothing would be asked; expected a whole number, 1 or more.")
        if self.num_samples > 1 and self.sampling.temperature == 0:
            raise ValueError(
                f"num_samples {self.num_samples} with temperature 0: all would be the same response; expected one "
                "sample, or a temperature above 0; set one of them."
            )


class Evaluation(NamedTuple):
    """Everything that samples depend on, checked."""

    tasks: Mapping[str, Task]
    """By name of the benchmark."""
    batches: Sequence[Batch]
    options: EvalOptions
    settings: Mapping[str, Any]
    """All this in words, as JSON: equal settings give equal samples."""


def prepare(
    benchmarks: Sequence[Benchmark],
    tokenizer: Any,
    options: EvalOptions,
    model: Mapping[str, Any],
    max_length: int | None = None,
) -> Evaluation:
    """Load the problems, write the prompts, and find out whether responses could be checked here.

    Args:
        benchmarks: each with its source.
        tokenizer: the model's.
        options: how they are asked.
        model: what identifies the model, as JSON.
        max_length: tokens that the model can read, prompt and response together; None: nobody knows.

    Raises:
        ValueError: nothing to ask, two benchmarks of one name, programs that cannot be isolated here, or as
            `load_problems`, `make_prompts` and `check_responses` do.
        TypeError: as `check_responses` does.
    """
    names = [benchmark.name for benchmark in benchmarks]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"benchmarks {names!r}: expected one or more, each of another name; correct them.")
    tasks: dict[str, Task] = {}
    batches: list[Batch] = []
    for benchmark in benchmarks:
        _check_check(benchmark)
        problems, origin = load_problems(benchmark, options.limit, options.seed)
        prompts = make_prompts(benchmark, problems, tokenizer, options.style)
        _check_lengths(benchmark, prompts, options.sampling.max_new_tokens, max_length)
        stop = () if uses_chat(tokenizer, options.style) else tuple(benchmark.stop)
        is_thinking = all(prompt.is_thinking for prompt in prompts)
        tasks[benchmark.name] = Task(benchmark, {each.id: each for each in problems}, origin, stop, is_thinking)
        asked = [(prompt.problem_id, prompt.ids) for prompt in prompts]
        batches += make_batches(
            benchmark.name, asked, options.num_samples, options.batch_size, options.seed, len(batches)
        )
    return Evaluation(tasks, batches, options, _settings(tasks, batches, options, model))


def evaluate(evaluation: Evaluation, generator: Generator, folder: Path, state: Any) -> list[BenchmarkResult] | None:
    """Draw what is missing and write `samples.jsonl`, `results.json` and `results.md` into the folder.

    Args:
        evaluation: what `prepare` gave, the same on every process.
        generator: of this process.
        folder: what an evaluation with equal settings left there is kept.
        state: `accelerate.PartialState`.

    Returns:
        The numbers of each benchmark, on the main process; None on the others.

    Raises:
        ValueError: see `check_folder` and `claimed`.
    """
    check_folder(folder, evaluation.settings)
    state.wait_for_everyone()
    store = SampleStore(folder)
    with claimed(folder, evaluation.settings) if state.is_main_process else nullcontext():
        state.wait_for_everyone()
        is_finished = store.final.is_file()
        state.wait_for_everyone()
        if is_finished:
            samples = read_samples(store.final) if state.is_main_process else None
        else:
            samples = run(evaluation.batches, evaluation.tasks, generator, store, state)
        return None if samples is None else _finish(evaluation, samples, folder)


def _finish(evaluation: Evaluation, samples: Sequence[Sample], folder: Path) -> list[BenchmarkResult]:
    results = [
        summarize(
            task.benchmark,
            list(task.problems.values()),
            [sample for sample in samples if sample.benchmark == name],
            evaluation.options.num_samples,
        )
        for name, task in evaluation.tasks.items()
    ]
    origins = [task.origin for task in evaluation.tasks.values()]
    write_results(folder, evaluation.settings, origins, results)
    write_whole(folder / CARD, markdown_table(results, evaluation.settings))
    return results


class FolderInUse(ValueError):
    """Another evaluation is at work in the folder."""


@contextmanager
def claimed(folder: Path, settings: Mapping[str, Any]) -> Iterator[None]:
    """Write the settings if they are not there, and keep other evaluations out of the folder; a kill lets go of it.

    Raises:
        FolderInUse: another evaluation is at work in it.
    """
    if not (folder / SETTINGS).is_file():
        write_whole(folder / SETTINGS, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
    with (folder / SETTINGS).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FolderInUse(
                f"output_dir {str(folder)!r}: another evaluation is at work in it; expected one at a time; wait for "
                "its end, or give another folder."
            ) from error
        yield


def check_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """Raise ValueError for a folder that holds something else than an evaluation with these settings."""
    if not folder.exists():
        return
    file = folder / SETTINGS
    if not file.is_file():
        if folder.is_dir() and all(path.name == f"{SETTINGS}.tmp" for path in folder.iterdir()):
            return  # killed before it was written
        raise ValueError(f"output_dir {str(folder)!r}: holds no evaluation; expected a new folder; give another.")
    found = json.loads(file.read_text(encoding="utf-8"))
    differing = sorted(key for key in found.keys() | settings.keys() if found.get(key) != settings.get(key))
    if differing:
        was = {key: found.get(key) for key in differing}
        now = {key: settings.get(key) for key in differing}
        raise ValueError(
            f"output_dir {str(folder)!r}: holds an evaluation with other settings, {was!r} instead of {now!r}; "
            "samples of both must not be mixed; give another folder, or remove this one."
        )


def digest_of(settings: Mapping[str, Any]) -> str:
    """Eight hexadecimal digits that tell evaluations with other settings apart."""
    return blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=4).hexdigest()


def _check_check(benchmark: Benchmark) -> None:
    try:
        check_responses(benchmark, [])
    except SandboxError as error:
        raise ValueError(f"benchmark {benchmark.name!r}: its programs cannot be run here: {error}") from error


def _check_lengths(
    benchmark: Benchmark, prompts: Sequence[Prompt], max_new_tokens: int, max_length: int | None
) -> None:
    longest = max(prompts, key=lambda prompt: len(prompt.ids))
    if max_length is not None and len(longest.ids) + max_new_tokens > max_length:
        raise ValueError(
            f"max_new_tokens {max_new_tokens}: with the prompt of {longest.problem_id!r} of benchmark "
            f"{benchmark.name!r}, {len(longest.ids)} tokens, that is more than the {max_length} that the model can "
            "read; expected no more; set it lower."
        )


def _settings(
    tasks: Mapping[str, Task], batches: Sequence[Batch], options: EvalOptions, model: Mapping[str, Any]
) -> dict[str, Any]:
    asked = blake2b(digest_size=16)
    for batch in batches:
        asked.update(repr(batch).encode())
    words = {
        "model": dict(model),
        **asdict(options),
        "benchmarks": {
            name: {
                "origin": task.origin,
                "num_problems": len(task.problems),
                "check": task.benchmark.check,
                "options": dict(task.benchmark.options),
                "stop": list(task.stop),
            }
            for name, task in tasks.items()
        },
        "requests": asked.hexdigest(),
    }
    return json.loads(json.dumps(words, default=repr))  # as it will be read from the file
