"""All that a credit rule may look at."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class Gate(NamedTuple):
    """Value of the loss's importance gate at ratio 1, for tokens of positive and of other advantage.

    1 for losses that are linear in the ratio (PPO clip, CISPO, VESPO); 2 / temperature for SAPO.
    """

    positive: float = 1.0
    negative: float = 1.0


CLIP_GATE = Gate()


@dataclass(frozen=True)
class TokenStats:
    """Per-token facts about the current policy, each (B, T) over the completion, natural logarithms.

    Values at positions where `action_mask` is False carry no meaning; the loss never uses them.
    """

    log_probs: Tensor
    """log pi(y) of the sampled token, with gradient."""
    mode_log_probs: Tensor
    """log pi(v*) of the most likely token v*, without gradient."""
    is_mode: Tensor
    """True where the sampled token is the most likely one; every token of a tie counts."""
    entropies: Tensor
    """Entropy of the next-token distribution in nats."""
    action_mask: Tensor
    """True for tokens that the policy produced, False for padding and environment tokens."""
    gate: Gate = CLIP_GATE
    """Gate of the configured loss."""

    @property
    def delta(self) -> Tensor:
        """Mode-local surrogate 1 - pi(v*), without gradient."""
        return surrogate(self.mode_log_probs)


def surrogate(mode_log_probs: Tensor) -> Tensor:
    """Mode-local surrogate delta = 1 - pi(v*) from log pi(v*), any shape, in [0, 1).

    `-expm1` keeps the digits that `1 - exp` loses on confident tokens; float32 at least, because bfloat16 rounds every
    delta below about 0.002 to zero.
    """
    log_probs = mode_log_probs if mode_log_probs.dtype == torch.float64 else mode_log_probs.float()
    return -torch.expm1(log_probs.clamp(max=0.0))
