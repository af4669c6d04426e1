"""log pi(v*) of a batch, read while TRL's output head runs.

TRL computes log-probabilities in tiles of the vocabulary and keeps no maximum. Its head kernel is called with all that
the maximum needs (hidden states, gathered head weight, scale and soft-cap of the logits), so the reading is taken
there: no second backbone forward, no second gather of a sharded head, no knowledge of the model's architecture.
"""

import inspect
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import trl.trainer.utils as trl_utils
from torch import Tensor
from trl.kernels.chunked_logprob import _torch_transform

# A token with more than half of the probability is the mode without looking at any other. The margin is far above the
# rounding of TRL's log-probabilities.
_SURELY_MODE = math.log(0.5) + 1e-3
_TOKEN_CHUNK, _VOCAB_CHUNK = 4096, 32768


@dataclass
class ModeReading:
    """What `watch_mode` has read."""

    gap: Tensor | None = None
    """(B, T) in float32, log pi(v*) - log pi(y) >= 0, exactly 0 where the sampled token is the mode and where it is no
    action token. None before the head has run."""


@contextmanager
def watch_mode(completion_mask: Tensor, action_mask: Tensor) -> Iterator[ModeReading]:
    """Read the distance to the mode from the one pass through TRL's head inside the `with` block.

    Args:
        completion_mask: (B, T), 1 for the tokens that the head scores.
        action_mask: (B, T) bool, True for the tokens to read.
    """
    kernel = trl_utils._ChunkedLogProbFunction
    reading = ModeReading()
    trl_utils._ChunkedLogProbFunction = _ListeningKernel(kernel, reading, completion_mask.bool(), action_mask)
    try:
        yield reading
    finally:
        trl_utils._ChunkedLogProbFunction = kernel


@dataclass
class _ListeningKernel:
    """Stands in for TRL's head kernel: same call, same result, and the reading as a by-product."""

    kernel: Any
    reading: ModeReading
    completion_mask: Tensor
    action_mask: Tensor

    def apply(self, *args: Any) -> Any:
        outputs = self.kernel.apply(*args)
        if self.reading.gap is not None:
            raise RuntimeError("TRL's head ran twice in one loss; acpo_trl expects one pass, pin a tested TRL version.")
        call = inspect.signature(self.kernel.forward).bind(None, *args).arguments
        self.reading.gap = self._gap(call, log_probs=outputs[0].detach())
        return outputs

    @torch.no_grad()
    def _gap(self, call: dict[str, Any], log_probs: Tensor) -> Tensor:
        where = self.action_mask.to(log_probs.device)
        rows = _flat_positions(self.completion_mask.to(log_probs.device), log_probs.numel())[where]
        unsure = log_probs[rows] <= _SURELY_MODE
        gap = log_probs.new_zeros(rows.shape, dtype=torch.float32)
        gap[unsure] = mode_logit_gap(
            call["hidden"][rows[unsure]],
            call["weight"],
            call["bias"],
            call["targets"][rows[unsure]],
            logit_scale=call["logit_scale"],
            softcap=call["final_logit_softcapping"],
        )
        return gap.new_zeros(where.shape).masked_scatter(where, gap / call["temperature"])


def _flat_positions(completion_mask: Tensor, num_scored: int) -> Tensor:
    """(B, T) index of each completion token among the head's `num_scored` flat rows.

    TRL scores either the completion tokens alone or, where dynamic shapes are expensive, every position of the padded
    rows, of which the completion is the tail.
    """
    batch, length = completion_mask.shape
    if num_scored == int(completion_mask.sum()):
        return (completion_mask.flatten().cumsum(0) - 1).clamp(min=0).view(batch, length)
    row = num_scored // batch
    if num_scored % batch or row < length:
        raise RuntimeError(
            f"TRL's head scored {num_scored} positions of {batch} rows with {length} completion tokens each; acpo_trl "
            "cannot tell which is which, pin a tested TRL version."
        )
    start = torch.arange(batch, device=completion_mask.device).unsqueeze(1) * row + (row - length)
    return start + torch.arange(length, device=completion_mask.device)


@torch.no_grad()
def mode_logit_gap(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    logit_scale: float = 1.0,
    softcap: float | None = None,
) -> Tensor:
    """How far the largest logit lies above the target's, without materializing (N, V) logits.

    Args:
        hidden: (N, H), last hidden states.
        weight: (V, H), output head.
        bias: (V,) or None.
        targets: (N,), token ids.
        logit_scale: factor on the logits.
        softcap: bound of the logits' tanh soft-cap, applied after the scale; None for none.

    Returns:
        (N,) float32, at least 0, exactly 0 where the target attains the maximum (any token of a tie does).
    """
    device = hidden.device
    autocast = torch.is_autocast_enabled(device.type)
    dtype = torch.get_autocast_dtype(device.type) if autocast else hidden.dtype
    gaps = [hidden.new_zeros(0, dtype=torch.float32)]
    for h, y in zip(hidden.split(_TOKEN_CHUNK), targets.split(_TOKEN_CHUNK), strict=True):
        largest = torch.full((len(h),), -torch.inf, device=device, dtype=dtype)
        own = torch.zeros_like(largest)
        for start in range(0, len(weight), _VOCAB_CHUNK):
            logits = h.to(dtype) @ weight[start : start + _VOCAB_CHUNK].to(dtype).t()
            if bias is not None:
                logits += bias[start : start + _VOCAB_CHUNK].to(dtype)
            largest = torch.maximum(largest, logits.amax(-1))
            local = y - start
            inside = (local >= 0) & (local < logits.size(1))
            own = torch.where(inside, logits.gather(1, local.clamp(0, logits.size(1) - 1)[:, None])[:, 0], own)
        # Scale and soft-cap are monotone, so they may follow the maximum.
        scaled = [
            _torch_transform(z.float(), logit_scale, softcap or 1.0, 1.0, softcap is not None) for z in (largest, own)
        ]
        gaps.append((scaled[0] - scaled[1]).clamp(min=0))
    return torch.cat(gaps)
