"""The credit rules: how much of its advantage a token keeps.

Source of the four branches: seed listing of ACPO (arXiv:2607.03126). With delta = 1 - pi(v*) and A the advantage of the
token:

    sampled token is the mode:      2 + delta  if A > 0,      1 - delta   otherwise   (delta carries gradient)
    sampled token is not the mode:  3 delta    if A > 0,  3 (1 - delta)   otherwise   (delta is a constant)

Each rule takes `(stats, advantages)`, both (B, T), and returns a non-negative credit (B, T); the loss then sees
`advantages * credit`.
"""

import torch
from torch import Tensor

from .stats import TokenStats


def acpo(stats: TokenStats, advantages: Tensor) -> Tensor:
    """Coefficient of A * grad log pi(y) that the four branches have on policy, in closed form and without gradient.

    On the mode, the product rule adds the gradient of delta, which is -(1 - delta) grad log pi(y), times the gate's
    value F: 2 + delta - F (1 - delta) if A > 0, (1 + F) (1 - delta) otherwise. So 1 + 2 delta and 2 (1 - delta) under
    PPO clipping (F = 1), 3 delta and 3 (1 - delta) under SAPO at temperature 1 (F = 2). A constant keeps the gate's
    trust region and never reverses an update, whatever the ratio.
    """
    is_positive, delta = advantages > 0, stats.delta
    gate = torch.where(is_positive, torch.full_like(delta, stats.gate.positive), stats.gate.negative)
    on_mode = torch.where(is_positive, (2 + delta) - gate * (1 - delta), (1 + gate) * (1 - delta))
    return torch.where(stats.is_mode, on_mode, _off_mode(is_positive, delta)).clamp(min=0)


def acpo_live(stats: TokenStats, advantages: Tensor) -> Tensor:
    """The branches as listed: delta carries gradient where the sampled token is the mode.

    There pi(v*) = pi(y), so the live delta needs no logits beyond log pi(y). Off policy its gradient leaks through a
    clipped ratio and can change sign (docs/concepts/credit.md); for comparison with `acpo`.
    """
    is_positive = advantages > 0
    live = -torch.expm1(stats.log_probs)
    on_mode = torch.where(is_positive, 2 + live, 1 - live)
    return torch.where(stats.is_mode, on_mode, _off_mode(is_positive, stats.delta))


def acpo_as_written(stats: TokenStats, advantages: Tensor) -> Tensor:
    """The displayed gradient equation read literally: the four branches as constants. An ablation."""
    is_positive, delta = advantages > 0, stats.delta
    on_mode = torch.where(is_positive, 2 + delta, 1 - delta)
    return torch.where(stats.is_mode, on_mode, _off_mode(is_positive, delta))


def uniform(stats: TokenStats, advantages: Tensor) -> Tensor:
    """Credit 1 for every token: GRPO."""
    return torch.ones_like(advantages)


def _off_mode(is_positive: Tensor, delta: Tensor) -> Tensor:
    return 3 * torch.where(is_positive, delta, 1 - delta)
