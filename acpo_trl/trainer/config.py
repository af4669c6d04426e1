"""ACPOConfig: GRPOConfig plus the choice of credit, checked before anything is loaded."""

import dataclasses
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor
from trl import GRPOConfig

from ..advantages import TURN_ESTIMATORS
from ..credit import CREDIT_RULES, Gate
from ..resolve import resolve
from .guard import ON_REWARD_ERROR

logger = logging.getLogger(__name__)

CLIP_LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
# Linear in log pi: their gradient has no term for a credit that moves with the policy.
LOG_PROB_LOSSES = ("cispo", "vespo")
CREDIT_NORMALIZATIONS = ("none", "sign")
SAPO_TEMPERATURES = ("sapo_temperature_pos", "sapo_temperature_neg")


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
        turn_estimator (`str`, *optional*):
            Give each turn of a completion its own advantage: `"outcome"`, `"process"`, `"local"`, or the dotted path of
            a function `(turns, **options) -> advantages` (completions, turns), for rewards of the kind `outcome`; the
            other kinds have theirs (docs/concepts/turns.md). By default all tokens of a completion share TRL's.
        turn_estimator_options (`dict`, *optional*):
            Options of the turn estimator, such as `{"gamma": 0.95}`.
        on_reward_error (`str`, *optional*, defaults to `"raise"`):
            What an exception in a reward function does: `"raise"` stops the run, `"none"` leaves the completions that
            cause it unscored. Where the judge failed (`JudgeError`, `ConnectionError`, `TimeoutError`), completions are
            unscored either way.
    """

    _VALID_DICT_FIELDS = [*GRPOConfig._VALID_DICT_FIELDS, "turn_estimator_options"]  # noqa: RUF012  TRL's attribute

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
    turn_estimator: str | None = field(
        default=None,
        metadata={
            "help": "Give each turn its own advantage: 'outcome', 'process', 'local', or the dotted path of a function "
            "(turns, **options) -> advantages."
        },
    )
    turn_estimator_options: dict[str, Any] | str | None = field(
        default=None, metadata={"help": "Options of the turn estimator as a JSON object, such as '{\"gamma\": 0.95}'."}
    )
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


def turn_estimator_of(args: GRPOConfig) -> Callable[..., Tensor] | None:
    """The configured turn estimator with its options bound, or None.

    Raises:
        ValueError: an unknown name, something that is no function, or options it does not take.
    """
    options = args.turn_estimator_options or {}
    if args.turn_estimator is None:
        if options:
            raise ValueError(f"turn_estimator_options {options!r}: there is no turn_estimator to take them; set one.")
        return None
    estimator = resolve(args.turn_estimator, TURN_ESTIMATORS, "turn_estimator")
    if not callable(estimator):
        raise ValueError(f"turn_estimator {args.turn_estimator!r}: is no function; expected (turns, **options).")
    try:
        inspect.signature(estimator).bind(None, **options)
    except TypeError as error:
        raise ValueError(
            f"turn_estimator_options {options!r}: {args.turn_estimator!r} does not take them ({error}); expected "
            f"keywords of {inspect.signature(estimator)}."
        ) from error
    return partial(estimator, **options)


def gate_of(args: GRPOConfig) -> Gate:
    """Value of the configured loss's importance gate at ratio 1."""
    if args.loss_type == "sapo":
        return Gate(2 / args.sapo_temperature_pos, 2 / args.sapo_temperature_neg)
    return Gate()


def check_credit(args: GRPOConfig) -> None:
    """Refuse settings of credit that cannot work and warn about those that work against themselves.

    Raises:
        ValueError: names the option, what came, why it cannot work and what to set instead.
    """
    if not callable(resolve(args.credit_rule, CREDIT_RULES, "credit_rule")):
        raise ValueError(f"credit_rule {args.credit_rule!r}: is no function; expected (stats, advantages) -> credit.")
    losses = (*CLIP_LOSSES, *LOG_PROB_LOSSES, "sapo")
    if args.loss_type not in losses:
        raise ValueError(
            f"loss_type {args.loss_type!r}: its gate at ratio 1 is not known, so credit cannot be matched to it; "
            f"expected one of {sorted(losses)}; use one of these or TRL's GRPOTrainer."
        )
    for name in ("num_iterations", *SAPO_TEMPERATURES * (args.loss_type == "sapo")):
        if not getattr(args, name) > 0:
            raise ValueError(f"{name} {getattr(args, name)!r}: nothing would be trained, or backwards; expected > 0.")
    if not 0.0 <= args.credit_mix <= 1.0:
        raise ValueError(
            f"credit_mix {args.credit_mix!r}: credit would turn negative or exceed the rule; expected a number from 0 "
            "(uniform) to 1 (the rule)."
        )
    if args.credit_normalization not in CREDIT_NORMALIZATIONS:
        raise ValueError(
            f"credit_normalization {args.credit_normalization!r}: no such normalization; expected one of "
            f"{list(CREDIT_NORMALIZATIONS)}."
        )
    turn_estimator_of(args)
    if args.on_reward_error not in ON_REWARD_ERROR:
        raise ValueError(
            f"on_reward_error {args.on_reward_error!r}: no such choice; expected one of {list(ON_REWARD_ERROR)}."
        )
    if args.credit_rule == "acpo_live":
        _check_live(args)


def _check_live(args: GRPOConfig) -> None:
    if args.loss_type in LOG_PROB_LOSSES:
        raise ValueError(
            f"credit_rule 'acpo_live' with loss_type {args.loss_type!r}: the loss is linear in log pi, so a credit "
            "that carries gradient gives none of the intended coefficients; set credit_rule='acpo', or a loss_type "
            f"among {[*CLIP_LOSSES, 'sapo']}."
        )
    if args.loss_type in CLIP_LOSSES:
        logger.warning(
            "credit_rule 'acpo_live' with loss_type %r: the credit's gradient leaks through clipped ratios, so "
            "clipping no longer stops an update and can reverse it; credit_rule='acpo' has the same gradient at ratio "
            "1 without the leak.",
            args.loss_type,
        )
    if args.num_iterations > 1:
        logger.warning(
            "credit_rule 'acpo_live' with num_iterations=%d: away from ratio 1 the composite gradient of a token can "
            "change sign; credit_rule='acpo' cannot.",
            args.num_iterations,
        )
