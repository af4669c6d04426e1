"""Fine-tune a causal language model with token-level credit: `acpo-trl train --config FILE.yaml [--key value ...]`."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import ACPOScriptArguments
from .parse import parse

if TYPE_CHECKING:
    from trl import DatasetMixtureConfig, ModelConfig, TrlParser

    from ..trainer import ACPOConfig, ACPOTrainer


def make_parser(subparsers: "argparse._SubParsersAction | None" = None, prog: str | None = None) -> "TrlParser":
    """The parser of this script, as a sub-command of `subparsers` when given."""
    from trl import DatasetMixtureConfig, ModelConfig, TrlParser

    from ..trainer import ACPOConfig

    options: dict[str, Any] = {
        "dataclass_types": (ACPOScriptArguments, ACPOConfig, ModelConfig, DatasetMixtureConfig),
        "usage": "%(prog)s --config FILE.yaml [--config MORE.yaml ...] [--key value ...]",
        "allow_abbrev": False,  # a mistyped option must not pass as the beginning of another
    }
    if subparsers is not None:
        return subparsers.add_parser("train", help="fine-tune a language model with token-level credit", **options)
    return TrlParser(prog=prog, **options)


def main(
    script_args: ACPOScriptArguments,
    training_args: "ACPOConfig",
    model_args: "ModelConfig",
    dataset_args: "DatasetMixtureConfig",
) -> None:
    """Train, then save model, tokenizer, state and model card in `output_dir`, and push them if asked to.

    Raises:
        ValueError, OSError: before the model is loaded, for settings and data that cannot be trained on.
    """
    train(*prepare(script_args, training_args, model_args, dataset_args), script_args.dataset_name)


def train(trainer: "ACPOTrainer", checkpoint: str | None, dataset_name: str | None) -> None:
    """Train from `checkpoint`, or from the start, and save."""
    trainer.train(resume_from_checkpoint=checkpoint)
    save(trainer, dataset_name)


def prepare(
    script_args: ACPOScriptArguments,
    training_args: "ACPOConfig",
    model_args: "ModelConfig",
    dataset_args: "DatasetMixtureConfig",
) -> "tuple[ACPOTrainer, str | None]":
    """The trainer, with everything loaded and checked, and the checkpoint to resume from."""
    from trl import get_peft_config, get_quantization_config

    from ..evaluation.callback import BenchmarkCallback
    from ..trainer import ACPOTrainer
    from .benchmarks import prepare_for_training
    from .checkpoint import find_checkpoint
    from .data import load_prompts
    from .environment import check_rows, check_tokenizer, load_environment
    from .model import load_processor, model_init_kwargs
    from .rewards import check_arguments, load_rewards

    environment = load_environment(script_args.environment, script_args.rollout)
    rewards, training_args.reward_weights = load_rewards(
        script_args.reward_funcs, script_args.reward_model_name_or_path, training_args.reward_weights, environment
    )
    checkpoint = find_checkpoint(training_args.output_dir, training_args.resume_from_checkpoint)
    processor = load_processor(
        model_args.model_name_or_path, model_args.model_revision, training_args.trust_remote_code
    )
    check_tokenizer(environment, processor, training_args.chat_template_kwargs or {})
    evaluation = prepare_for_training(
        script_args.eval_benchmarks,
        script_args.eval_every,
        script_args.eval_options,
        getattr(processor, "tokenizer", processor),
        str(model_args.model_name_or_path),
    )
    splits = load_prompts(script_args, dataset_args, training_args, bool(processor.chat_template))
    for rows in splits:
        check_rows(environment, next(iter(rows)))
    check_arguments(rewards, next(iter(splits[0])), environment)

    training_args.model_init_kwargs = model_init_kwargs(model_args, training_args)
    trainer = ACPOTrainer(
        model=model_args.model_name_or_path,
        reward_funcs=rewards,
        args=training_args,
        train_dataset=splits[0],
        eval_dataset=splits[1] if len(splits) > 1 else None,
        processing_class=processor,
        quantization_config=get_quantization_config(model_args),
        peft_config=get_peft_config(model_args),
        **environment.arguments,
    )
    if evaluation is not None and script_args.eval_every is not None:
        trainer.add_callback(BenchmarkCallback(trainer, evaluation, script_args.eval_every))
    return trainer, checkpoint


def save(trainer: "ACPOTrainer", dataset_name: str | None) -> None:
    """Write what the run produced to `output_dir` and, with `push_to_hub`, to the Hub; then close the trackers."""
    # A local path means nothing to readers of the card.
    dataset = None if dataset_name is None or Path(dataset_name).exists() else dataset_name
    output_dir = trainer.args.output_dir
    trainer.save_model(output_dir)
    trainer.save_state()
    trainer.create_model_card(model_name=Path(output_dir).name, dataset_name=dataset)
    trainer.accelerator.print(f"Model, tokenizer, state and model card saved to {output_dir}.")
    if trainer.args.push_to_hub:
        trainer.push_to_hub(dataset_name=dataset)
        trainer.accelerator.print(f"Pushed to https://huggingface.co/{trainer.hub_model_id}.")
    if hasattr(trainer, "end"):  # transformers 5.18 and later
        # A DDP module that outlives its process group waits, on being freed, for Gloo threads that wait for the GIL.
        trainer.model_wrapped = trainer.model
        trainer.accelerator.free_memory()
        trainer.end()


def run(arguments: list[str], prog: str) -> None:
    """Parse `arguments` and train; a mistake in them ends the program with one line instead of a traceback."""
    try:
        parsed = parse(partial(make_parser, prog=prog), arguments)
        prepared = prepare(*parsed)
    except (ValueError, TypeError, OSError) as error:
        sys.exit(f"{prog}: error: {error}")
    train(*prepared, parsed[0].dataset_name)


if __name__ == "__main__":
    run(sys.argv[1:], "acpo_trl.cli.train")
