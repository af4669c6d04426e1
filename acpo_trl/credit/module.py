"""ACPOLoss: the loss as a stand-alone module, for people with their own training loop."""

import torch
from torch import Tensor, nn

from ..resolve import resolve
from . import CREDIT_RULES
from .stats import Gate, TokenStats, surrogate

GATES = ("clip", "sapo")


class ACPOLoss(nn.Module):
    """Policy loss with asymmetric token credit, from full logits.

    Where it departs from the seed listing, and why: the ratio is taken to the policy that sampled, not to a reference
    model, which would clip away every update once the policy has moved; delta is not clamped, because a clamp cuts its
    gradient and jumps the weight of the most confident tokens from 0 to 2; `credit_rule="acpo"` is a constant, so
    nothing leaks through a clipped ratio. `credit_rule="acpo_live"` with the clip gate is the listing otherwise.

    Args:
        credit_rule: name in `CREDIT_RULES` or dotted path.
        gate: "clip" (PPO, min of both branches) or "sapo" (soft gate, arXiv:2511.20347).
        epsilon: lower clip width of the ratio.
        epsilon_high: upper clip width; `epsilon` when None.
        sapo_temperature_pos: SAPO's temperature for tokens of positive advantage.
        sapo_temperature_neg: SAPO's temperature for the others.
        temperature: sampling temperature; logits are divided by it.

    Raises:
        ValueError: unknown rule or gate, or a temperature that is not positive.
    """

    def __init__(
        self,
        credit_rule: str = "acpo",
        gate: str = "clip",
        epsilon: float = 0.2,
        epsilon_high: float | None = None,
        sapo_temperature_pos: float = 1.0,
        sapo_temperature_neg: float = 1.05,
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        if gate not in GATES:
            raise ValueError(f"gate {gate!r}: no such gate; expected one of {list(GATES)}.")
        for name, value in [
            ("temperature", temperature),
            ("sapo_temperature_pos", sapo_temperature_pos),
            ("sapo_temperature_neg", sapo_temperature_neg),
        ]:
            if value <= 0:
                raise ValueError(f"{name} {value!r}: logits or ratios are divided by it; expected a number above 0.")
        self.rule = resolve(credit_rule, CREDIT_RULES, "credit_rule")
        self.gate, self.temperature = gate, temperature
        self.epsilon, self.epsilon_high = epsilon, epsilon if epsilon_high is None else epsilon_high
        self.sapo_temperatures = Gate(sapo_temperature_pos, sapo_temperature_neg)

    def forward(
        self, policy_logits: Tensor, old: Tensor | None, action_tokens: Tensor, advantages: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Loss (scalar, mean over the action tokens of the batch) and mean delta (scalar, without gradient).

        Args:
            policy_logits: (B, T, V), current policy; position t scores `action_tokens[:, t]`.
            old: log-probabilities (B, T) or logits (B, T, V) of the policy that sampled; None if that is the current
                one (ratio 1).
            action_tokens: (B, T), sampled ids.
            advantages: (B,) or (B, T).
            mask: (B, T), 1 or True for tokens that the policy produced.

        Raises:
            ValueError: shapes that do not fit together.
        """
        self._check_shapes(policy_logits, old, action_tokens, advantages, mask)
        mask = mask.bool()
        logits = policy_logits / self.temperature
        log_all = torch.log_softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)
        log_probs = _pick(log_all, action_tokens)
        mode_log_probs = log_all.detach().amax(-1)
        if advantages.dim() == 1:
            advantages = advantages.unsqueeze(1)
        advantages = advantages.to(log_probs.dtype).expand_as(log_probs)
        stats = TokenStats(
            log_probs,
            mode_log_probs,
            log_probs.detach() == mode_log_probs,
            -(log_all.exp() * log_all).sum(-1).detach(),
            mask,
            Gate() if self.gate == "clip" else Gate(*(2 / t for t in self.sapo_temperatures)),
        )
        old_log_probs = self._old_log_probs(old, log_probs, action_tokens)
        token_loss = -self._surrogate(torch.exp(log_probs - old_log_probs), self.rule(stats, advantages) * advantages)
        count = mask.sum().clamp(min=1)
        return (token_loss * mask).sum() / count, (surrogate(mode_log_probs) * mask).sum() / count

    def _surrogate(self, ratio: Tensor, advantages: Tensor) -> Tensor:
        if self.gate == "clip":
            clipped = ratio.clamp(1 - self.epsilon, 1 + self.epsilon_high)
            return torch.minimum(ratio * advantages, clipped * advantages)
        positive, negative = (torch.full_like(ratio, t) for t in self.sapo_temperatures)
        temperature = torch.where(advantages > 0, positive, negative)
        return torch.sigmoid(temperature * (ratio - 1)) * 4 / temperature * advantages

    def _old_log_probs(self, old: Tensor | None, log_probs: Tensor, action_tokens: Tensor) -> Tensor:
        if old is None:
            return log_probs.detach()
        if old.dim() == 3:
            old = _pick(torch.log_softmax(old.to(log_probs.dtype) / self.temperature, dim=-1), action_tokens)
        return old.detach().to(log_probs.dtype)

    @staticmethod
    def _check_shapes(
        policy_logits: Tensor, old: Tensor | None, action_tokens: Tensor, advantages: Tensor, mask: Tensor
    ) -> None:
        rows = tuple(action_tokens.shape)
        expected = {
            "policy_logits": (policy_logits, [(*rows, policy_logits.size(-1))]),
            "advantages": (advantages, [rows[:1], rows]),
            "mask": (mask, [rows]),
            "old": (old, [rows, tuple(policy_logits.shape)]),
        }
        for name, (value, shapes) in expected.items():
            if value is not None and tuple(value.shape) not in shapes:
                raise ValueError(
                    f"{name} of shape {tuple(value.shape)}: does not fit action_tokens of shape {rows}; expected "
                    f"{' or '.join(map(str, shapes))}."
                )


def _pick(log_all: Tensor, tokens: Tensor) -> Tensor:
    return log_all.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
