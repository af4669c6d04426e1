"""Evaluate a model, or compare two evaluations: `acpo-trl evaluate --model MODEL --benchmarks NAME ...`."""

import os
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .parse import parse

if TYPE_CHECKING:
    from trl import TrlParser

    from ..evaluation.evaluate import Evaluation
    from .generator import ModelChoice

ROOT = Path("outputs/evaluations")
TEXTS = ("model", "output_dir", "system_prompt", "adapter", "model_revision", "dtype", "attn_implementation")


@dataclass
class EvaluateArguments:
    r"""
    What is evaluated, and how.

    Args:
        model (`str`, *optional*):
            Hub name or folder of a causal language model, or the folder of a LoRA adapter.
        benchmarks (`list[str]`, *optional*):
            Names of `acpo_trl.evaluation.benchmarks.BENCHMARKS`, dotted paths, or mappings with the fields of a
            `Benchmark`.
        data (`list[str]`, *optional*):
            `name=path`: the file that a benchmark is read from instead of the Hub.
        compare (`list[str]`, *optional*):
            Two folders of finished evaluations; nothing is evaluated.
    """

    model: str | None = field(
        default=None,
        metadata={"help": "Hub name or folder of a causal language model, or the folder of a LoRA adapter."},
    )
    benchmarks: list[str] | None = field(
        default=None,
        metadata={
            "help": "Names of built-in benchmarks, dotted paths, or mappings (here JSON objects) with the fields of a "
            "Benchmark; by default those of --data."
        },
    )
    data: list[str] | None = field(
        default=None, metadata={"help": "name=path: the file that a benchmark is read from instead of the Hub."}
    )
    compare: list[str] | None = field(
        default=None, metadata={"help": "Two folders of finished evaluations, the earlier first; nothing is evaluated."}
    )
    flips: bool = field(default=False, metadata={"help": "With --compare: name every problem that changed."})
    groups: bool = field(default=False, metadata={"help": "Show the numbers of each subject or level too."})
    output_dir: str | None = field(
        default=None,
        metadata={
            "help": f"Where samples and results go; by default a folder of {ROOT} named after the model and the "
            "settings. An evaluation that was interrupted goes on there."
        },
    )
    num_samples: int = field(default=1, metadata={"help": "k: responses to each problem."})
    temperature: float | None = field(
        default=None, metadata={"help": "0 takes the likeliest token; by default 0 for one sample, 0.6 for several."}
    )
    top_p: float = field(default=1.0, metadata={"help": "Share of the probability that is sampled from."})
    max_new_tokens: int = field(default=2048, metadata={"help": "Longest response."})
    limit: int | None = field(
        default=None, metadata={"help": "So many problems of each benchmark, drawn at random by the seed."}
    )
    seed: int = field(default=0, metadata={"help": "Of samples and of the limit's draw."})
    batch_size: int = field(default=8, metadata={"help": "Responses that are generated together in a process."})
    prompt_format: str | None = field(
        default=None,
        metadata={
            "help": "chat or text; by default chat when the tokenizer has a chat template.",
            "choices": ["chat", "text"],
        },
    )
    system_prompt: str | None = field(default=None, metadata={"help": "System message of chat prompts."})
    num_examples: int = field(default=0, metadata={"help": "Worked examples in front of each problem (few-shot)."})
    chat_template_kwargs: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Arguments of the chat template, here as a JSON object such as '{\"enable_thinking\": true}'."
        },
    )
    adapter: str | None = field(default=None, metadata={"help": "Folder of a LoRA adapter on the model."})
    model_revision: str | None = field(default=None, metadata={"help": "Branch, tag or commit on the Hub."})
    dtype: str = field(default="auto", metadata={"help": "Of the weights; auto: as they were saved."})
    attn_implementation: str | None = field(default=None, metadata={"help": "Such as sdpa or flash_attention_2."})
    trust_remote_code: bool = field(default=False, metadata={"help": "Run code that lies with the model."})
    use_vllm: bool = field(default=False, metadata={"help": "Generate with vLLM, in one process."})
    vllm_options: dict[str, Any] | str | None = field(
        default=None, metadata={"help": "Arguments of vllm.LLM, here as a JSON object."}
    )

    def __post_init__(self) -> None:
        for name in ("benchmarks", "data", "compare"):  # one of them in YAML
            value = getattr(self, name)
            if value is not None and not isinstance(value, list):
                setattr(self, name, [value])
        for name in TEXTS:
            value = getattr(self, name)
            if not isinstance(value, str | None):
                raise ValueError(f"{name} {value!r}: is a {type(value).__name__}; expected text; put it in quotes.")
        if self.prompt_format not in (None, "chat", "text"):  # argparse does not check what YAML says
            raise ValueError(f"prompt_format {self.prompt_format!r}: expected 'chat' or 'text'.")
        if self.compare is not None and len(self.compare) != 2:
            raise ValueError(f"compare {self.compare!r}: expected two folders of finished evaluations.")
        if self.vllm_options is not None and not self.use_vllm:
            raise ValueError(f"vllm_options {self.vllm_options!r}: nothing would use them; set use_vllm too.")


class Prepared(NamedTuple):
    """An evaluation that lacks nothing but the weights of the model."""

    evaluation: "Evaluation"
    choice: "ModelChoice"
    tokenizer: Any
    folder: Path
    state: Any
    """`accelerate.PartialState`."""


def make_parser(prog: str) -> "TrlParser":
    """The parser of this command."""
    from trl import TrlParser

    usage = "%(prog)s --model MODEL --benchmarks NAME ... [--data NAME=FILE ...] [--key value ...]\n"
    usage += "       %(prog)s --compare FOLDER FOLDER"
    return TrlParser(dataclass_types=(EvaluateArguments,), prog=prog, usage=usage, allow_abbrev=False)


def prepare(arguments: EvaluateArguments) -> "Prepared":
    """Everything but the weights, loaded and checked.

    Raises:
        ValueError, TypeError: what cannot be evaluated, before anything is generated.
    """
    import torch
    from accelerate import PartialState
    from accelerate.utils import parse_flag_from_env

    from ..evaluation.evaluate import check_folder, digest_of
    from ..evaluation.evaluate import prepare as prepare_evaluation
    from .benchmarks import choose_benchmarks, mapping_of, options_of
    from .generator import check_vllm, choose_model, look_at
    from .model import load_processor

    benchmarks, options = choose_benchmarks(arguments.benchmarks, arguments.data), options_of(arguments)
    if not arguments.model:
        raise ValueError("model None: there is no model to evaluate; expected a Hub name or a folder; set it.")
    vllm_options = mapping_of(arguments.vllm_options, "vllm_options", '{"max_model_len": 8192}') or {}
    choice = choose_model(
        arguments.model,
        arguments.adapter,
        revision=arguments.model_revision,
        dtype=arguments.dtype,
        attn_implementation=arguments.attn_implementation,
        trust_remote_code=arguments.trust_remote_code,
        vllm_options=vllm_options if arguments.use_vllm else None,
    )
    # Asked for a CPU it knows of other processes; not asked, it takes each for the only one.
    state = PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available())
    check_vllm(choice, state.num_processes)
    known = look_at(choice)
    processor = load_processor(choice.tokenizer, arguments.model_revision, arguments.trust_remote_code, "model")
    tokenizer = getattr(processor, "tokenizer", processor)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    evaluation = prepare_evaluation(benchmarks, tokenizer, options, known.identity, known.max_length)
    name = f"{Path(arguments.model).name}-{digest_of(evaluation.settings)}"
    folder = Path(arguments.output_dir) if arguments.output_dir else ROOT / name
    check_folder(folder, evaluation.settings)
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise ValueError(f"output_dir {str(folder)!r}: cannot be written to; expected a folder that can; give another.")
    return Prepared(evaluation, choice, tokenizer, folder, state)


def evaluate(arguments: EvaluateArguments, prepared: "Prepared") -> None:
    """Generate, check, and show the numbers."""
    from ..evaluation.evaluate import FolderInUse
    from ..evaluation.evaluate import evaluate as run_evaluation
    from ..evaluation.tables import text_table
    from .generator import load_generator

    evaluation, choice, tokenizer, folder, state = prepared
    generator = load_generator(choice, tokenizer, evaluation.options.sampling, state.device)
    try:
        results = run_evaluation(evaluation, generator, folder, state)
    except FolderInUse as error:
        sys.exit(f"acpo-trl evaluate: error: {error}")
    if results is not None:
        print(text_table(results, groups=arguments.groups))
        print(f"Samples (samples.jsonl), numbers (results.json) and a table for the model card (results.md): {folder}")
    state.destroy_process_group()


def show_comparison(arguments: EvaluateArguments) -> None:
    """Print what changed from one evaluation to another."""
    from ..evaluation.compare import compare
    from ..evaluation.tables import comparison_table

    before, after = map(Path, arguments.compare or ())
    print(comparison_table(compare(before, after), all_flips=arguments.flips))


def run(arguments: list[str], prog: str) -> None:
    """Parse `arguments`, then evaluate or compare; a mistake in them ends the program with one line."""
    try:
        (parsed,) = parse(partial(make_parser, prog), arguments)
        if parsed.compare is not None:
            show_comparison(parsed)
            return
        prepared = prepare(parsed)
    except (ValueError, TypeError, OSError) as error:
        sys.exit(f"{prog}: error: {error}")
    evaluate(parsed, prepared)
