"""What the training script is told beside the settings of the trainer and of the model."""

from dataclasses import dataclass, field
from typing import Any

from trl import ScriptArguments

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
        eval_benchmarks (`list[str]`, *optional*):
            Benchmarks to evaluate on in the course of the training: names, or mappings as `acpo-trl evaluate` takes.
        eval_every (`int`, *optional*):
            Steps from one such evaluation to the next; the last step is always evaluated.
        eval_options (`dict`, *optional*):
            Options of `acpo-trl evaluate` for it, such as `limit`, `num_samples`, `max_new_tokens` and `data`.
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
    eval_benchmarks: list[str] | None = field(
        default=None,
        metadata={
            "help": "Benchmarks to evaluate on in the course of the training, as `acpo-trl evaluate` takes them."
        },
    )
    eval_every: int | None = field(
        default=None,
        metadata={"help": "Steps from one evaluation on benchmarks to the next; the last step is always evaluated."},
    )
    eval_options: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Options of `acpo-trl evaluate` for it, here as a JSON object such as "
            '\'{"limit": 100, "max_new_tokens": 512}\'.'
        },
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
