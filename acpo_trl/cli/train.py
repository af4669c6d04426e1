"""Fine-tune a causal language model with token-level credit: `acpo-trl train --config FILE.yaml [--key value ...]`."""

import argparse
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trl import ScriptArguments

from .parse import parse

if TYPE_CHECKING:
    from trl import DatasetMixtureConfig, ModelConfig, TrlParser

    from ..trainer import ACPOConfig, ACPOTrainer

PROMPT_FORMATS = ("chat", "text")
TEXTS = ("reward_model_name_or_path", "prompt_column", "answer_column", "system_prompt", "prompt_template")


@dataclass
class ACPOScriptArguments(ScriptArguments):
    r"""
    Arguments of the training script, beside those of [`~trl.ScriptArguments`].

    Args:
        reward_funcs (`list[str]`, *optional*):
            Rewards: names of `acpo_trl.rewards.REWARDS`, dotted paths of functions or classes, or mappings with `name`
            and, if wanted, `weight` and `options`.
        reward_model_name_or_path (`str`, *optional*):
            A reward model, added before `reward_funcs`.
        environment (`str` or `dict`, *optional*):
            Environment that the policy acts in: a name of `acpo_trl.envs.ENVIRONMENTS`, the dotted path of a class, or
            a mapping with `name` and `options`. By TRL's tool loop, unless `rollout` is set.
        rollout (`dict`, *optional*):
            Options of `acpo_trl.rollouts.MultiTurnRollout`, which then drives the environment with text: `max_turns`
            at least. An environment with tools is called with tags.
        prompt_column (`str`, *optional*):
            Column with the prompts. Defaults to the first of `prompt`, `problem`, `question`.
        answer_column (`str`, *optional*):
            Column with the gold answers; rewards get it as `solution`. Defaults to the first of `solution`, `answer`.
        prompt_format (`str`, *optional*):
            `"chat"` or `"text"`. Defaults to `"chat"` when the tokenizer has a chat template.
        system_prompt (`str`, *optional*):
            System message of chat prompts that have none.
        prompt_template (`str`, *optional*):
            Text around a prompt, with `{prompt}` in its place and other braces doubled.
        max_train_samples (`int`, *optional*):
            Use only the first rows of the training split.
    """

    reward_funcs: list[str] | None = field(
        default=None,
        metadata={
            "help": "Rewards: names of `acpo_trl.rewards.REWARDS`, dotted paths of functions or classes, or mappings "
            "(here JSON objects) with `name` and, if wanted, `weight` and `options`."
        },
    )
    reward_model_name_or_path: str | None = field(
        default=None,
        metadata={"help": "A reward model (Hub name or folder), added before `reward_funcs`."},
    )
    environment: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Environment that the policy acts in: a name of `acpo_trl.envs.ENVIRONMENTS`, the dotted path of a "
            "class, or a mapping (here a JSON object) with `name` and `options`."
        },
    )
    rollout: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Options of `acpo_trl.rollouts.MultiTurnRollout`, here as a JSON object such as "
            "'{\"max_turns\": 8}': text and tags instead of TRL's tool loop."
        },
    )
    prompt_column: str | None = field(
        default=None,
        metadata={"help": "Column with the prompts; by default the first of prompt, problem, question."},
    )
    answer_column: str | None = field(
        default=None,
        metadata={
            "help": "Column with the gold answers, which rewards get as `solution`; by default the first of solution, "
            "answer."
        },
    )
    prompt_format: str | None = field(
        default=None,
        metadata={
            "help": "chat or text; by default chat when the tokenizer has a chat template.",
            "choices": list(PROMPT_FORMATS),
        },
    )
    system_prompt: str | None = field(default=None, metadata={"help": "System message of chat prompts that have none."})
    prompt_template: str | None = field(
        default=None,
        metadata={"help": "Text around a prompt, with {prompt} in its place and other braces doubled."},
    )
    max_train_samples: int | None = field(
        default=None, metadata={"help": "Use only the first rows of the training split."}
    )

    def __post_init__(self) -> None:
        if self.reward_funcs is not None and not isinstance(self.reward_funcs, list):  # one name or mapping in YAML
            self.reward_funcs = [self.reward_funcs]
        if self.prompt_format not in (None, *PROMPT_FORMATS):  # argparse does not check what YAML says
            raise ValueError(f"prompt_format {self.prompt_format!r}: expected one of {list(PROMPT_FORMATS)}.")
        for name in TEXTS:
            value = getattr(self, name)
            if not isinstance(value, str | None):
                raise ValueError(f"{name} {value!r}: is a {type(value).__name__}; expected text; put it in quotes.")
        limit = self.max_train_samples
        if limit is not None and (type(limit) is not int or limit < 1):
            raise ValueError(f"max_train_samples {limit!r}: nothing to train on; expected a whole number, 1 or more.")
        if self.prompt_template is not None:
            check_template(self.prompt_template)


def check_template(template: str) -> None:
    """Raise ValueError for a prompt template that loses the prompt or cannot be filled."""
    mark = "<<prompt>>"
    try:
        filled = template.format(prompt=mark)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"prompt_template {template!r}: cannot be filled ({error!r}); expected {{prompt}} once and every other "
            "brace doubled, as in \\boxed{{}}."
        ) from error
    if mark not in filled:
        raise ValueError(f"prompt_template {template!r}: the prompt would be lost; put {{prompt}} where it belongs.")


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

    from ..trainer import ACPOTrainer
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
    processor = load_processor(model_args, training_args)
    check_tokenizer(environment, processor, training_args.chat_template_kwargs or {})
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
