"""What a configuration chooses, looked up and checked before anything is loaded."""

import logging
import math

from trl import GRPOConfig

from ..credit import CREDIT_RULES, Gate
from ..resolve import resolve
from .guard import ON_REWARD_ERROR
from .recorded_groups import CreditLogOptions
from .turn_choices import check_turn_choices, options_of, turn_credit_of
from .watch_callback import stops_of
from .watches import watch_options_of

logger = logging.getLogger(__name__)

CLIP_LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
# Linear in log pi: their gradient has no term for a credit that moves with the policy.
LOG_PROB_LOSSES = ("cispo", "vespo")
RATIOS = ("token", "gspo", "gspo_token", "gspo_token_turn", "turn")
CREDIT_NORMALIZATIONS = ("none", "sign")
SAPO_TEMPERATURES = ("sapo_temperature_pos", "sapo_temperature_neg")


def is_uniform(args: GRPOConfig) -> bool:
    """Whether all tokens of a turn get the same credit."""
    return args.credit_rule == "uniform" or args.credit_mix == 0.0


def ratio_of(args: GRPOConfig) -> str:
    """The importance ratio, one of `RATIOS`.

    Raises:
        ValueError: an unknown one, one that contradicts `importance_sampling_level`, `gspo` with advantages that
            differ within a completion, or `turn` where TRL adds log-ratios up.
    """
    has_own_advantages = not is_uniform(args) or args.turn_estimator is not None or args.kinds != "separate"
    if args.ratio is None:
        if args.importance_sampling_level != "sequence":
            return "token"
        return "gspo_token" if has_own_advantages else "gspo"
    if args.ratio not in RATIOS:
        raise ValueError(f"ratio {args.ratio!r}: no such ratio; expected one of {list(RATIOS)}.")
    if args.ratio == "token" and args.importance_sampling_level == "sequence":
        raise ValueError("ratio 'token' with importance_sampling_level 'sequence': they differ; leave one of them out.")
    if args.ratio == "gspo" and has_own_advantages:
        raise ValueError(
            f"ratio 'gspo' with credit_rule {args.credit_rule!r} and turn_estimator {args.turn_estimator!r}: the "
            "sequence ratio gives every token the mean of the advantages; set ratio='gspo_token', which has the same "
            "value, or credit_rule='uniform' without turn_estimator."
        )
    if args.ratio == "turn" and (args.loss_type == "vespo" or args.off_policy_mask_threshold is not None):
        raise ValueError(
            f"ratio 'turn' with loss_type {args.loss_type!r} and off_policy_mask_threshold "
            f"{args.off_policy_mask_threshold!r}: vespo and the mask add up or average the log-ratios of tokens, and "
            "each would count as the whole turn's; expected another loss without the mask; set "
            "ratio='gspo_token_turn', which keeps sum and mean."
        )
    return args.ratio


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
    check_turn_choices(args)
    options_of(args, "credit_log", CreditLogOptions)
    watch_options_of(args.watch_options or {})
    stops_of(args.watch_stop)
    if not all(isinstance(weight, int | float) and math.isfinite(weight) for weight in args.reward_weights or ()):
        raise ValueError(f"reward_weights {args.reward_weights!r}: rewards would be lost; expected finite numbers.")
    if ratio_of(args) == "gspo_token" and args.ratio is None:
        logger.warning(
            "importance_sampling_level='sequence' with credit_rule=%r and turn_estimator=%r: the GSPO-token form is "
            "used (same value as GSPO; each token keeps its own advantage, which a sequence ratio would average).",
            args.credit_rule,
            args.turn_estimator,
        )
    if args.on_reward_error not in ON_REWARD_ERROR:
        raise ValueError(
            f"on_reward_error {args.on_reward_error!r}: no such choice; expected one of {list(ON_REWARD_ERROR)}."
        )
    if args.credit_rule == "acpo_live":
        _check_live(args)
    _check_dynamic_sampling(args)


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


def _check_dynamic_sampling(args: GRPOConfig) -> None:
    rounds = args.dynamic_sampling
    if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 0:
        raise ValueError(f"dynamic_sampling {rounds!r}: is no number of rounds; expected 0 (off) or a whole number.")
    if rounds == 0:
        return
    credit = turn_credit_of(args)
    if credit is not None and credit.critic_need is not None:
        raise ValueError(
            f"dynamic_sampling {rounds} with turn_estimator {args.turn_estimator!r}: its critic learns from every "
            "completion, not only from those of groups with spread; set dynamic_sampling=0 or an estimator without a "
            "critic."
        )
    statistics = {"kinds": "gdpo"}
    if credit is None:
        statistics = {"scale_rewards": "batch", "multi_objective_aggregation": "normalize_then_sum"}
    for name, over_batch in statistics.items():
        if getattr(args, name) == over_batch:
            raise ValueError(
                f"dynamic_sampling {rounds} with {name} {getattr(args, name)!r}: advantages depend on all groups of a "
                "generation batch, so a group cannot move to another one; set dynamic_sampling=0 or change the other."
            )
    local = args.generation_batch_size // args.world_size
    if local % args.num_generations:
        raise ValueError(
            f"dynamic_sampling {rounds} with {local} completions of a generation batch on each process: groups of "
            f"num_generations {args.num_generations} would span processes; expected a multiple of it; change "
            "per_device_train_batch_size, steps_per_generation or gradient_accumulation_steps."
        )
