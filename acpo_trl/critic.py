"""Critic: a number for each state of a completion, from the policy's hidden states or from a model of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedModel


class Critic(nn.Module):
    """One number for each hidden state; 0 for all of them before it has learned.

    Args:
        policy: its hidden states are read, unless there is a `model`.
        model: name or folder of a model whose backbone learns together with the head; None for a head alone.
        detach: keep the head's gradient out of the policy.
    """

    def __init__(self, policy: PreTrainedModel, model: str | None = None, detach: bool = True) -> None:
        super().__init__()
        self.backbone = None if model is None else AutoModel.from_pretrained(model, dtype=torch.float32)
        self.detach = detach or model is not None
        size = (policy if self.backbone is None else self.backbone).config.get_text_config().hidden_size
        # Backbones differ in the scale of their states; without it, one learning rate would not fit all.
        self.norm = nn.LayerNorm(size, elementwise_affine=False)
        self.head = nn.Linear(size, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """(...) in float32 from hidden states (..., H) of the policy."""
        if self.detach and self.backbone is None:
            hidden = hidden.detach()
        with torch.autocast(hidden.device.type, enabled=False):
            return self.head(self.norm(hidden.to(self.head.weight.dtype))).squeeze(-1)

    def read(self, ids: Tensor, mask: Tensor, batch_size: int) -> Tensor:
        """(B, L) from the critic's own model, for states behind each of the tokens (B, L)."""
        assert self.backbone is not None
        parts = zip(ids.split(batch_size), mask.split(batch_size), strict=True)
        return torch.cat([self(self.backbone(i, attention_mask=m).last_hidden_state) for i, m in parts])


@contextmanager
def watch_states(model: PreTrainedModel, read: Callable[[Tensor], Tensor]) -> Iterator[list[Tensor]]:
    """Read the last hidden states (b, L, H) of each forward through a model's backbone inside the `with` block.

    Args:
        model: causal language model, without wrappers.
        read: what is kept of them.
    """
    readings: list[Tensor] = []

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        readings.append(read(output.last_hidden_state))

    handle = model.base_model.register_forward_hook(keep)
    try:
        yield readings
    finally:
        handle.remove()


def value_loss(values: Tensor, old: Tensor, targets: Tensor, clip: float | None) -> Tensor:
    """Half of the squared error, of the worse of the value and the one clipped to `old` +- `clip`; mean over targets.

    Args:
        values: (B, T).
        old: (B, T), at the time of sampling.
        targets: (B, T), NaN where there is nothing to learn.
        clip: None for no clipping.

    Source: PPO2's value loss, as in verl's `compute_value_loss`.
    """
    has_target = ~targets.isnan()
    error = (values - targets)[has_target].square()
    if clip is not None:
        clipped = old + (values - old).clamp(-clip, clip)
        error = torch.maximum(error, (clipped - targets)[has_target].square())
    return 0.5 * error.sum() / has_target.sum().clamp(min=1)


def sum_loss(values: Tensor, targets: Tensor) -> Tensor:
    """Squared error of the sum of a row's values against its target; mean over rows with one.

    Args:
        values: (B, T).
        targets: (B, T), the row's target at each place to add up, NaN elsewhere.

    Source: SPA-RL (arXiv:2505.20732), the progress estimator.
    """
    is_part = ~targets.isnan()
    has_target = is_part.any(dim=1)
    total = targets.nan_to_num(nan=0.0).sum(dim=1) / is_part.sum(dim=1).clamp(min=1)
    error = (torch.where(is_part, values, 0).sum(dim=1) - total)[has_target].square()
    return error.sum() / has_target.sum().clamp(min=1)


def explained_variance(values: Tensor, targets: Tensor) -> float:
    """1 - Var(target - value) / Var(target) over the entries with a target; NaN where targets do not vary.

    1 is a perfect critic, 0 one that says the same of every state; below 0 it is worse than that.
    """
    has_target = ~targets.isnan()
    values, targets = values[has_target].cpu().double(), targets[has_target].cpu().double()  # MPS has no float64
    if len(targets) < 2 or targets.min() == targets.max():
        return torch.nan
    return (1 - (targets - values).var() / targets.var()).item()
