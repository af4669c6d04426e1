"""The critic beside the policy: asked about every batch, taught with it, saved and resumed."""

import os
from typing import Any, NamedTuple

import torch
from torch import Tensor
from trl.models.utils import disable_gradient_checkpointing

from ..critic import Critic, explained_variance, sum_loss, value_loss, watch_states
from .recording import RecordedRollouts
from .turn_choices import CriticOptions, TurnCredit, options_of

TARGETS, VALUES = "critic_targets", "critic_values"


class SecondLook(NamedTuple):
    """What a pass through the policy said about the tokens of a batch."""

    entropies: Tensor
    """(B, T) in nats."""
    values: Tensor | None
    """(B, T + 1), the critic's number for the state before each token and behind the last; None without a critic."""


class LearnedCritic(RecordedRollouts):
    """GRPOTrainer with a critic that has its own optimizer; every process holds all of it."""

    turn_credit: TurnCredit | None = None
    """How rewards by kind become advantages; None: TRL's advantages of whole completions."""
    critic: Critic | None = None
    initial_entropy: float | None = None
    """Mean entropy over the tokens of the first generation batch; None before."""

    def _build_critic(self) -> None:
        if self.turn_credit is None or self.turn_credit.critic_need is None:
            return
        options = self.critic_options = options_of(self.args, "critic_options", CriticOptions)
        if self.args.fp16 and not options.detach:
            raise ValueError(
                "critic_options detach false with fp16: the loss is scaled for the policy's gradient, which the "
                "critic's optimizer would not undo; set bf16, or detach true."
            )
        with torch.random.fork_rng(devices=[]):  # what is sampled must not depend on there being a critic
            critic = Critic(self._causal_lm, options.model, options.detach).to(self.accelerator.device)
        rate = options.learning_rate or (1e-3 if options.model is None else 1e-5)
        self.critic, self.critic_optimizer = critic, torch.optim.AdamW(critic.parameters(), lr=rate, weight_decay=0.0)

    @property
    def _causal_lm(self) -> Any:
        model = self.accelerator.unwrap_model(self.model)
        return model.get_base_model() if hasattr(model, "get_base_model") else model

    @torch.no_grad()
    def _look_again(self, batch: dict[str, Any]) -> SecondLook:
        """One more pass over a generation batch, without gradient."""
        ids, mask = _whole(batch)
        length = batch["completion_ids"].size(1)
        size = self.args.per_device_train_batch_size
        on_policy = self.critic is not None and self.critic.backbone is None
        with (
            disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs),
            watch_states(
                self._causal_lm, lambda states: self._read(states, length) if on_policy else states[:0]
            ) as read,
        ):
            _, entropies, _ = self._get_per_token_logps_and_entropies(
                self.model, ids, mask, length, batch_size=size, compute_entropy=True
            )
            if self.critic is None:
                return SecondLook(entropies, None)
            values = torch.cat(read) if on_policy else self.critic.read(ids, mask, size)[:, -(length + 1) :]
        return SecondLook(entropies, values)

    def _read(self, states: Tensor, length: int) -> Tensor:
        assert self.critic is not None
        return self.critic(states[:, -(length + 1) :])

    def _teach(self, batch: dict[str, Any], values: Tensor, targets: Tensor) -> None:
        """Lay the (B, T + 1) targets of the critic into the batch, NaN where there is nothing to learn."""
        is_masked = batch["completion_mask"].sum(dim=1, keepdim=True) == 0
        batch[VALUES], batch[TARGETS] = values, targets.masked_fill(is_masked, torch.nan)

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Tensor:
        """TRL's loss; the critic's is added to it, or backpropagated on its own if detached."""
        if self.critic is None or not self.model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        length = inputs["completion_ids"].size(1)
        if self.critic.backbone is None:
            with watch_states(self._causal_lm, lambda states: self._read(states, length)) as read:
                loss = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
            (values,) = read[-1:]
        else:
            loss = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
            values = self.critic.read(*_whole(inputs), len(inputs["completion_ids"]))[:, -(length + 1) :]
        critic_loss = self._critic_loss(values, inputs)
        self._metrics["train"]["critic/loss"].append(self.accelerator.gather(critic_loss.detach()).mean().item())
        critic_loss = critic_loss / self.current_gradient_accumulation_steps
        if not self.critic.detach:
            return loss + self.critic_options.coefficient * critic_loss
        critic_loss.backward()
        return loss

    def _critic_loss(self, values: Tensor, batch: dict[str, Any]) -> Tensor:
        assert self.turn_credit is not None
        if self.turn_credit.critic_need == "contributions":
            return sum_loss(values, batch[TARGETS])
        return value_loss(values, batch[VALUES], batch[TARGETS], self.critic_options.clip)

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """Transformers' step, and the critic's with the last of the accumulated ones."""
        loss = super().training_step(*args, **kwargs)
        if self.critic is not None and self.accelerator.sync_gradients:
            parameters = list(self.critic.parameters())
            for parameter in parameters:
                gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad = self.accelerator.reduce(gradient, reduction="mean")
            torch.nn.utils.clip_grad_norm_(parameters, self.critic_options.max_grad_norm)
            self.critic_optimizer.step()
            self.critic_optimizer.zero_grad()
        return loss

    def _log_critic(self, values: Tensor, targets: Tensor) -> None:
        """Log how well the critic foretold the targets, (N, ...) over all processes."""
        if targets.dim() < values.dim():  # of a sum
            values = values.nan_to_num(nan=0.0).sum(dim=1)
        mode = "train" if self.model.training else "eval"
        explained = explained_variance(values, targets)
        self._metrics[mode]["critic/explained_variance"].append(explained)
        self._metrics[mode]["critic/values"].append(values[~targets.isnan()].mean().item())

    def _learned_path(self, checkpoint: str) -> str:
        return os.path.join(checkpoint, "turn_credit.pt")

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        if self.is_world_process_zero() and (self.critic is not None or self.initial_entropy is not None):
            learned: dict[str, Any] = {"initial_entropy": self.initial_entropy}
            if self.critic is not None:
                learned |= {"critic": self.critic.state_dict(), "optimizer": self.critic_optimizer.state_dict()}
            torch.save(learned, self._learned_path(output_dir))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        super()._load_rng_state(checkpoint)
        path = None if checkpoint is None else self._learned_path(checkpoint)
        if path is None or not os.path.isfile(path):
            if path is not None and self.critic is not None:
                raise ValueError(
                    f"{checkpoint} holds no critic, but turn_estimator {self.args.turn_estimator!r} needs one: what it "
                    "had learned is lost; expected turn_credit.pt in it; resume with the estimator of the run that "
                    "wrote it, or start a new run from its model."
                )
            return
        learned = self._load_saved(path)
        self.initial_entropy = learned["initial_entropy"]
        if self.critic is not None:
            self.critic.load_state_dict(learned["critic"])
            self.critic_optimizer.load_state_dict(learned["optimizer"])


def _whole(batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Ids and attention mask, (B, P + T), of prompts and completions."""
    parts = [(batch[f"{side}_ids"], batch[f"{side}_mask"]) for side in ("prompt", "completion")]
    return torch.cat([ids for ids, _ in parts], dim=1), torch.cat([mask for _, mask in parts], dim=1)
