"""Which old log-probabilities give which importance ratio."""

import torch
from torch import Tensor


def gspo_token_old_log_probs(log_probs: Tensor, old_log_probs: Tensor, segment_ids: Tensor) -> Tensor:
    """Old log-probabilities under which a token-level loss computes the GSPO-token ratio of a segment.

    The ratio becomes s_{i,t} = sg[s] pi(y_t) / sg[pi(y_t)], with log s the mean log-ratio of the segment's tokens. With
    one segment for each row it has the value of GSPO's sequence ratio, while each token keeps the gradient of its own
    advantage. With one segment for each turn, turns are clipped apart from each other. Source: GSPO (arXiv:2507.18071)
    section 4.3 for the first.

    Args:
        log_probs: (B, T), current policy.
        old_log_probs: (B, T), policy that sampled.
        segment_ids: (B, T), from 0; -1 for tokens that the policy did not produce, whose ratio becomes 1.

    Returns:
        (B, T) without gradient.
    """
    current = log_probs.detach()
    is_action = segment_ids >= 0
    index = segment_ids.clamp(min=0)
    width = int(index.max()) + 1 if index.numel() else 1
    zeros = torch.zeros(len(index), width, dtype=current.dtype, device=current.device)
    log_ratio = torch.where(is_action, current - old_log_probs, 0)
    sums = zeros.scatter_add(1, index, log_ratio)
    counts = zeros.scatter_add(1, index, is_action.to(current.dtype))
    return current - torch.where(is_action, (sums / counts.clamp(min=1)).gather(1, index), 0)
