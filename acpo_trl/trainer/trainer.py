"""ACPOTrainer: TRL's GRPOTrainer, with each token's advantage scaled by its credit."""

import logging
import textwrap
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Sampler
from trl.trainer.utils import get_config_model_id

from ..credit import CREDIT_RULES, TokenStats
from ..credit.blend import check_credit, mix, normalize_by_sign
from ..mode import ModeReading, watch_mode
from ..ratio import gspo_token_old_log_probs
from ..resolve import resolve
from ..turns import turn_ids_of
from .beliefs import check_gold_column
from .card import annotate_card
from .choices import gate_of, is_uniform, ratio_of
from .completions import forget_rows, number_rows, write_used
from .config import ACPOConfig, with_credit_defaults
from .credit_log import CreditLog
from .environment import environment_rewards, with_environment
from .inputs import CreditedInputs, check_dataset, check_enough_prompts, check_model, check_reward_funcs
from .metrics import credit_metrics
from .recorded_groups import CreditLogOptions
from .resampling import Resampled
from .template_check import warn_of_template
from .turn_choices import options_of, turn_credit_of
from .turn_hint import TurnHint
from .watch_callback import WatchCallback, stops_of
from .watches import watch_options_of

logger = logging.getLogger(__name__)


class ACPOTrainer(Resampled):
    """GRPOTrainer with asymmetric token credit (ACPO, arXiv:2607.03126).

    Takes the arguments of [`~trl.GRPOTrainer`] in the same order; `args` is an [`ACPOConfig`] (a `GRPOConfig` is taken
    with ACPO's defaults). Between TRL's forward and TRL's loss, the advantage of each token is multiplied by the credit
    that `args.credit_rule` gives it; the loss itself is TRL's.

    Raises:
        ValueError: settings, model or dataset that cannot be trained, before the first step.

    Example:

    ```python
    from datasets import load_dataset
    from acpo_trl import ACPOConfig, ACPOTrainer
    from acpo_trl.rewards import MathReward

    trainer = ACPOTrainer(
        model="Qwen/Qwen2.5-0.5B",
        reward_funcs=MathReward(),
        args=ACPOConfig("qwen-acpo"),
        train_dataset=load_dataset("trl-lib/DeepMath-103K", split="train"),
    )
    trainer.train()
    ```
    """

    _tag_names = ["trl", "acpo"]  # noqa: RUF012  TRL's attribute
    _name = "ACPO"
    _paper = {  # noqa: RUF012  TRL's attribute
        "title": "ACPO: Adaptive Credit Policy Optimization via Fine-Grained Surrogate Entropy",
        "id": "2607.03126",
        # docstyle-ignore
        "citation": textwrap.dedent("""\
            @article{xie2026acpo,
                title        = {{ACPO: Adaptive Credit Policy Optimization via Fine-Grained Surrogate Entropy}},
                author       = {Xie and You and Li and Gong and Zeyu Chen and Quan Chen and Cheng and Jiang and Mu},
                year         = 2026,
                eprint       = {arXiv:2607.03126},
            }"""),
    }

    def __init__(
        self,
        model: Any,
        reward_funcs: Any = None,
        args: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        reward_processing_classes: Any = None,
        callbacks: Any = None,
        optimizers: Any = (None, None),
        quantization_config: Any = None,
        peft_config: Any = None,
        tools: Any = None,
        rollout_func: Any = None,
        environment_factory: Any = None,
    ) -> None:
        if args is None:
            name = model if isinstance(model, str) else get_config_model_id(model.config)
            args = ACPOConfig(f"{name.split('/')[-1]}-ACPO")
        args = with_credit_defaults(args)
        self.credit_rule = resolve(args.credit_rule, CREDIT_RULES, "credit_rule")
        self.turn_credit = turn_credit_of(args)
        self._gate = gate_of(args)
        self._crediting: tuple[CreditedInputs, ModeReading] | None = None
        self._num_generated = 0
        if train_dataset is not None:
            check_dataset(train_dataset, "train_dataset", needs_prompts=environment_factory is None)
        if self.turn_credit is not None and "beliefs" in self.turn_credit.needs:
            check_gold_column(args, train_dataset)
        if rollout_func is None:  # which may bring columns of its own
            check_reward_funcs(reward_funcs, train_dataset)
        use_declared_weights = args.reward_weights is None
        reward_funcs = with_environment(reward_funcs, environment_rewards(environment_factory, rollout_func), args)
        super().__init__(
            model=model,
            reward_funcs=reward_funcs,
            args=args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            reward_processing_classes=reward_processing_classes,
            callbacks=callbacks,
            optimizers=optimizers,
            quantization_config=quantization_config,
            peft_config=peft_config,
            tools=tools,
            rollout_func=rollout_func,
            environment_factory=environment_factory,
        )
        check_model(self.model, self._tokenizer)
        self._build_critic()
        if args.watches:
            self.add_callback(WatchCallback(watch_options_of(args.watch_options or {}), stops_of(args.watch_stop)))
        self.credit_log = None
        if args.credit_log is not None:
            self.credit_log = CreditLog(self, options_of(args, "credit_log", CreditLogOptions))
            self.add_callback(self.credit_log)
        self.turn_hint = TurnHint(args.turn_estimator, self.is_world_process_zero())
        self._guard_rewards(args.on_reward_error, use_declared_weights)
        warn_of_template(self)
        self.ratio = ratio_of(args)
        self.importance_sampling_level = "sequence" if self.ratio == "gspo" else "token"

    def _get_train_sampler(self, dataset: Any = None) -> Sampler:
        check_enough_prompts(self.train_dataset if dataset is None else dataset, self.args)
        return super()._get_train_sampler(dataset)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        super()._load_rng_state(checkpoint)
        forget_rows(self._buffered_inputs or [])

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """TRL's card in `output_dir/README.md`, with the credit settings and the version of acpo_trl."""
        super().create_model_card(*args, **kwargs)
        if self.is_world_process_zero():
            annotate_card(Path(self.args.output_dir) / "README.md", self.args)

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        batch = super()._generate_and_score_completions(inputs)
        if self.log_completions:
            self._num_generated = number_rows(self, batch, self._num_generated)
        if self.credit_log is not None:
            self.credit_log.stage(batch)
        return batch

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Tensor:
        """TRL's loss on credited advantages; a scalar. Raises RuntimeError if credit did not reach it."""
        batch = CreditedInputs(inputs)
        with watch_mode(batch["completion_mask"], self._action_mask(batch)) as reading:
            self._crediting = batch, reading
            try:
                loss = super().compute_loss(model, batch, return_outputs, num_items_in_batch)
            finally:
                self._crediting = None
        batch.check_used()
        return loss

    def _get_per_token_logps_and_entropies(
        self, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        log_probs, entropies, aux_loss = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        if self._crediting is not None:  # old and reference log-probabilities are not credited
            self._give_credit(*self._crediting, log_probs, entropies)
        return log_probs, entropies, aux_loss

    def _give_credit(self, batch: CreditedInputs, reading: ModeReading, log_probs: Tensor, entropies: Tensor) -> None:
        if reading.gap is None:
            raise RuntimeError(
                "TRL's output head was not called through its fused kernel: no mode probability was read."
            )
        gap = reading.gap.to(log_probs.device)
        mask = self._action_mask(batch)
        stats = TokenStats(log_probs, log_probs.detach() + gap, gap == 0, entropies, mask, self._gate)
        given = batch.uncredited_advantages()
        advantages = given if given.dim() == 2 else given.unsqueeze(1).expand_as(log_probs)
        credit = torch.ones_like(advantages) if is_uniform(self.args) else self._credit(stats, advantages)
        batch.give(given if is_uniform(self.args) else advantages * credit)
        if self.ratio not in ("token", "gspo") and "old_per_token_logps" in batch:
            whole = mask.long() - 1
            segments = whole if self.ratio == "gspo_token" else batch.get("turn_ids", turn_ids_of(mask))
            reduction = "sum" if self.ratio == "turn" else "mean"
            batch["old_per_token_logps"] = gspo_token_old_log_probs(
                log_probs, batch["old_per_token_logps"], segments.masked_fill(~mask, -1), reduction
            )
        self._log_credit(stats, credit.detach(), advantages, batch)

    def _credit(self, stats: TokenStats, advantages: Tensor) -> Tensor:
        credit = self.credit_rule(stats, advantages)
        check_credit(credit, advantages, stats.action_mask, self.args.credit_rule)
        credit = mix(credit, self.args.credit_mix)
        if self.args.credit_normalization == "sign":
            credit = normalize_by_sign(credit, advantages, stats.action_mask, self._sum_over_ranks)
        return credit

    def _log_credit(self, stats: TokenStats, credit: Tensor, advantages: Tensor, batch: CreditedInputs) -> None:
        self._log(credit_metrics(stats, credit, advantages, self._sum_over_ranks))
        if self.log_completions:
            write_used(self, {**batch, "advantages": advantages * credit}, stats.action_mask, self._num_generated)
        if self.credit_log is not None and self.credit_log.staged:
            self.credit_log.use(batch, stats, advantages, credit, self._ratio(stats, batch))

    def _ratio(self, stats: TokenStats, batch: CreditedInputs) -> Tensor:
        """(B, T), the importance ratio that the loss uses; TRL takes 1 where it has no old log-probabilities."""
        log_ratio = (stats.log_probs - batch.get("old_per_token_logps", stats.log_probs)).detach()
        if self.ratio == "gspo":
            mask = stats.action_mask
            log_ratio = ((log_ratio * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)) * mask
        return log_ratio.exp()

    def _sum_over_ranks(self, values: Tensor) -> Tensor:
        return self.accelerator.reduce(values, reduction="sum")

    @staticmethod
    def _action_mask(batch: dict[str, Any]) -> Tensor:
        """(B, T) bool, True for tokens that the policy produced; TRL pads `tool_mask` with 1, so both are needed."""
        mask = batch["completion_mask"]
        return (mask * batch["tool_mask"] if "tool_mask" in batch else mask).bool()
