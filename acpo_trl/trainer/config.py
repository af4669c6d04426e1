"""ACPOConfig: GRPOConfig plus the choice of credit, checked before anything is loaded."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from trl import GRPOConfig

from ..advantages import TURN_ESTIMATORS
from .choices import CREDIT_NORMALIZATIONS, RATIOS, check_credit
from .guard import ON_REWARD_ERROR
from .turn_choices import KIND_TREATMENTS

OWN_DICT_FIELDS = (
    "turn_estimator_options",
    "kind_estimators",
    "critic_options",
    "belief_options",
    "credit_log",
    "watch_options",
)


@dataclass
class ACPOConfig(GRPOConfig):
    r"""
    Configuration class for the [`ACPOTrainer`].

    Inherits every parameter of [`~trl.GRPOConfig`] with its default and adds the ones below. `credit_rule="uniform"`
    is GRPO, bit for bit.

    Parameters:
        credit_rule (`str`, *optional*, defaults to `"acpo"`):
            How a token's advantage is scaled: `"acpo"`, `"acpo_live"`, `"acpo_as_written"`, `"uniform"`, or the dotted
            path of a function `(stats, advantages) -> credit`, all (batch, completion tokens).
        credit_mix (`float`, *optional*, defaults to `1.0`):
            Between 0 (uniform credit) and 1 (the rule).
        credit_normalization (`str`, *optional*, defaults to `"none"`):
            `"none"`, or `"sign"` to divide the credit by its mean over the tokens of each advantage sign, taken over
            the micro-batch of all processes.
        ratio (`str`, *optional*):
            Importance ratio: `"token"`, `"gspo"`, `"gspo_token"` (value of GSPO's sequence ratio, advantages of
            tokens kept), `"gspo_token_turn"` (the same for each turn), or `"turn"` (the ratio of the probabilities of
            the whole turn). By default what `importance_sampling_level` says, and GSPO-token where its sequence ratio
            would average advantages away.
        turn_estimator (`str`, *optional*):
            Give each turn of a completion its own advantage: a name of `acpo_trl.advantages.TURN_ESTIMATORS`, such as
            `"outcome"` or `"gigpo"`, or the dotted path of a function `(turns, **options) -> advantages` (completions,
            turns), for rewards of the kind `outcome`; the other kinds have theirs (docs/concepts/turns.md). By default
            all tokens of a completion share TRL's.
        turn_estimator_options (`dict`, *optional*):
            Options of the turn estimator, such as `{"gamma": 0.95}`.
        kinds (`str`, *optional*, defaults to `"separate"`):
            What becomes of rewards by kind: `"separate"` (each kind its own estimator, summed last), `"mixed"` (summed
            first, for comparison) or `"gdpo"` (each standardized in its group, summed, standardized over the batch).
        kind_estimators (`dict`, *optional*):
            Turn estimators of the kinds `process`, `cost` and `format`: a name, or a mapping with `name` and options.
        critic_options (`dict`, *optional*):
            Of the critic that some turn estimators learn from: `learning_rate`, `model` (name or folder of a model of
            its own, by default a head on the policy's hidden states), `detach`, `coefficient`, `clip`,
            `max_grad_norm` (docs/concepts/critics.md).
        belief_options (`dict`, *optional*):
            Of the belief in the gold answer that the turn estimator `igpo` asks for: `column` of the dataset (by
            default `answer`), and `prefix`, what stands before the answer.
        dynamic_sampling (`int`, *optional*, defaults to `0`):
            At most so many extra rounds of generation, each as large as the first, to replace groups whose advantages
            are all 0 by groups of other prompts (docs/concepts/dynamic_sampling.md). 0: none.
        credit_log (`dict`, *optional*):
            Record sampled completions with the credit of each token and turn in `output_dir/credit_log`: `every` (10
            steps), `groups` (1), `choose` (`random`, `best`, `worst`, `zero_spread`), `file_format` (`parquet`,
            `jsonl`), `max_megabytes` (200). None records nothing (docs/reference/records.md).
        watches (`bool`, *optional*, defaults to `True`):
            Warn when the log shows trouble, such as entropy that collapses or groups without spread
            (docs/reference/watches.md).
        watch_options (`dict`, *optional*):
            `window` (5 logs), and for a watch `false` or thresholds of its own.
        watch_stop (`list[str]`, *optional*):
            Watches that end the training.
        on_reward_error (`str`, *optional*, defaults to `"raise"`):
            What an exception in a reward function does: `"raise"` stops the run, `"none"` leaves the completions that
            cause it unscored. Where the judge failed (`JudgeError`, `ConnectionError`, `TimeoutError`), completions are
            unscored either way.
    """

    _VALID_DICT_FIELDS = [*GRPOConfig._VALID_DICT_FIELDS, *OWN_DICT_FIELDS]  # noqa: RUF012  TRL's attribute

    credit_rule: str = field(
        default="acpo",
        metadata={
            "help": "How a token's advantage is scaled: 'acpo', 'acpo_live', 'acpo_as_written', 'uniform' (GRPO), or "
            "the dotted path of a function (stats, advantages) -> credit."
        },
    )
    credit_mix: float = field(
        default=1.0, metadata={"help": "Between 0 (uniform credit) and 1 (the rule): credit = 1 + mix * (rule - 1)."}
    )
    credit_normalization: str = field(
        default="none",
        metadata={
            "help": "'none', or 'sign' to make the mean credit over the tokens of each advantage sign 1, over all "
            "processes.",
            "choices": list(CREDIT_NORMALIZATIONS),
        },
    )
    ratio: str | None = field(
        default=None,
        metadata={
            "help": "Importance ratio: 'token', 'gspo', 'gspo_token', 'gspo_token_turn' or 'turn'; by default what "
            "importance_sampling_level says.",
            "choices": list(RATIOS),
        },
    )
    turn_estimator: str | None = field(
        default=None,
        metadata={
            "help": f"Give each turn its own advantage: one of {', '.join(TURN_ESTIMATORS)}, or the dotted path of a "
            "function (turns, **options) -> advantages."
        },
    )
    turn_estimator_options: dict[str, Any] | str | None = field(
        default=None, metadata={"help": "Options of the turn estimator as a JSON object, such as '{\"gamma\": 0.95}'."}
    )
    kinds: str = field(
        default="separate",
        metadata={
            "help": "Rewards by kind are kept 'separate' until their advantages are summed, are 'mixed' before, or go "
            "through 'gdpo'.",
            "choices": list(KIND_TREATMENTS),
        },
    )
    kind_estimators: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Turn estimators of process, cost and format as a JSON object: a name or a mapping for each."
        },
    )
    critic_options: dict[str, Any] | str | None = field(
        default=None,
        metadata={"help": "Of the critic that some turn estimators learn from, as a JSON object."},
    )
    belief_options: dict[str, Any] | str | None = field(
        default=None,
        metadata={"help": "Of the belief in the gold answer that the turn estimator igpo asks for, as a JSON object."},
    )
    dynamic_sampling: int = field(
        default=0,
        metadata={
            "help": "At most so many extra rounds of generation to replace groups whose advantages are all 0 by groups "
            "of other prompts."
        },
    )
    credit_log: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Record sampled completions with their credit, as a JSON object with options; {} for defaults."
        },
    )
    watches: bool = field(default=True, metadata={"help": "Warn when the log shows trouble."})
    watch_options: dict[str, Any] | str | None = field(
        default=None,
        metadata={"help": "`window` in logs, and for a watch false or thresholds, as a JSON object."},
    )
    watch_stop: list[str] | None = field(default=None, metadata={"help": "Names of watches that end the training."})
    on_reward_error: str = field(
        default="raise",
        metadata={
            "help": "What an exception in a reward function does: 'raise' stops the run, 'none' leaves the completions "
            "that cause it unscored.",
            "choices": list(ON_REWARD_ERROR),
        },
    )

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except ValueError as error:
            if "divisible by num_generations" not in str(error):
                raise
            raise ValueError(
                f"{error} A generation batch is per_device_train_batch_size x processes x steps_per_generation (by "
                "default gradient_accumulation_steps) completions: change one of these, or set num_generations to a "
                "divisor."
            ) from error
        check_credit(self)


def with_credit_defaults(args: GRPOConfig) -> GRPOConfig:
    """`args`, with ACPO's own fields at their defaults and checked when it is a plain `GRPOConfig`."""
    if not isinstance(args, ACPOConfig):
        own = {f.name for f in dataclasses.fields(ACPOConfig)} - {f.name for f in dataclasses.fields(GRPOConfig)}
        for name in own:
            setattr(args, name, getattr(args, name, getattr(ACPOConfig, name)))
        check_credit(args)
    return args
