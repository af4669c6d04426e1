"""What the options of an evaluation say: benchmarks with their files, and how they are asked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..evaluation.benchmarks import Benchmark, Source, benchmark_of
from ..evaluation.evaluate import EvalOptions, Evaluation
from ..evaluation.evaluate import prepare as prepare_evaluation
from ..evaluation.generate import Sampling
from ..evaluation.prompts import PromptStyle
from .entry import as_options, read_json
from .evaluate import EvaluateArguments

FORMATS = {None: None, "chat": True, "text": False}
SEVERAL_TEMPERATURE = 0.6
OF_TRAINING = (
    "data",
    "num_samples",
    "temperature",
    "top_p",
    "max_new_tokens",
    "limit",
    "seed",
    "batch_size",
    "prompt_format",
    "system_prompt",
    "num_examples",
    "chat_template_kwargs",
)
"""The options of `acpo-trl evaluate` that an evaluation within a training run has."""


def choose_benchmarks(entries: list[Any] | None, data: list[str] | None) -> list[Benchmark]:
    """The benchmarks, each with its source.

    Raises:
        ValueError: none, an unknown one, or a file for something that is not evaluated.
    """
    files: dict[str, str] = {}
    for pair in data or ():
        name, equals, path = str(pair).partition("=")
        if not (name and equals and path) or name in files:
            raise ValueError(f"data {pair!r}: expected `name=path`, each name once; write e.g. gsm8k=gsm8k.jsonl.")
        files[name] = path
    asked = list(files) if entries is None else [read_json(each, "benchmarks", '{"name": "mine"}') for each in entries]
    if not asked:
        raise ValueError("benchmarks None: there is nothing to evaluate on; expected names of benchmarks; set it.")
    found = [benchmark_of(each) for each in asked]
    if unused := sorted(files.keys() - {benchmark.name for benchmark in found}):
        raise ValueError(
            f"data for {unused}: the benchmarks are {[benchmark.name for benchmark in found]}; expected one of them; "
            "correct the name, or add it to benchmarks."
        )
    return [
        replace(benchmark, source=Source(files[benchmark.name])) if benchmark.name in files else benchmark
        for benchmark in found
    ]


def options_of(arguments: EvaluateArguments) -> EvalOptions:
    """How the benchmarks are asked."""
    temperature = arguments.temperature
    if temperature is None:
        temperature = SEVERAL_TEMPERATURE if arguments.num_samples > 1 else 0.0
    return EvalOptions(
        arguments.num_samples,
        arguments.limit,
        arguments.seed,
        arguments.batch_size,
        PromptStyle(
            FORMATS[arguments.prompt_format],
            arguments.system_prompt,
            arguments.num_examples,
            mapping_of(arguments.chat_template_kwargs, "chat_template_kwargs", '{"enable_thinking": true}') or {},
        ),
        Sampling(arguments.max_new_tokens, float(temperature), arguments.top_p),
    )


def mapping_of(value: Any, option: str, example: str) -> Any:
    """The mapping that an option says, perhaps as JSON; None if it is not set."""
    return None if value is None else as_options(read_json(value, option, example), option)


def prepare_for_training(
    entries: list[Any] | None, every: int | None, given: Mapping[str, Any] | str | None, tokenizer: Any, model: str
) -> Evaluation | None:
    """The evaluation that a training run repeats, None without `eval_benchmarks`.

    Args:
        entries: `eval_benchmarks`.
        every: `eval_every`, in steps.
        given: `eval_options`.
        tokenizer: the model's.
        model: its name.

    Raises:
        ValueError, TypeError: what cannot be evaluated.
    """
    options = mapping_of(given, "eval_options", '{"limit": 100}')
    if entries is None:
        for name, value in (("eval_every", every), ("eval_options", options)):
            if value is not None:
                raise ValueError(f"{name} {value!r}: there is nothing to evaluate on; set eval_benchmarks too.")
        return None
    if type(every) is not int or every < 1:
        raise ValueError(f"eval_every {every!r}: expected a number of steps, 1 or more; set it beside eval_benchmarks.")
    if unknown := sorted(set(options or ()) - set(OF_TRAINING)):
        raise ValueError(f"eval_options has {unknown}: expected some of {list(OF_TRAINING)}; correct the keys.")
    arguments = EvaluateArguments(**(options or {}))
    benchmarks = choose_benchmarks(entries, arguments.data)
    return prepare_evaluation(benchmarks, tokenizer, options_of(arguments), {"name": model})
