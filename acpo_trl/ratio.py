"""Which old log-probabilities give which importance ratio."""

import torch
from torch import Tensor

LIMIT = 20.0  # of a log-ratio, as in verl: the gradient of an infinite ratio is NaN even where it is clipped


def gspo_token_old_log_probs(
    log_probs: Tensor, old_log_probs: Tensor, segment_ids: Tensor, reduction: str = "mean"
) -> Tensor:
    """Old log-probabilities under which a token-level loss computes the GSPO-token ratio of a segment.

    The ratio becomes s_{i,t} = sg[s] pi(y_t) / sg[pi(y_t)], with log s the mean log-ratio of the segment's n tokens, or
    its sum. It has the value of s, while each token keeps the gradient of its own advantage. With one segment for each
    row and the mean, s is GSPO's sequence ratio; with one for each turn, turns are clipped apart from each other; with
    the sum, s is the exact ratio of the probabilities of the whole segment, which needs a wider clip range.

    If all tokens of a segment have the same advantage A, take f = min(s A, clip(s) A). The mean of the token terms over
    the segment has the value of f. Its gradient is that of f with the mean; with the sum it is that of f divided by n,
    so there it is the token terms' sum, of value n f, that has the gradient of f. Divided by a number that is the same
    for all segments ("dapo" and "dr_grpo" of TRL, "bnpo" within a batch), each segment then weighs alike; "grpo"
    divides by the tokens of the row, and segments of long rows weigh less.

    Args:
        log_probs: (B, T), current policy.
        old_log_probs: (B, T), policy that sampled.
        segment_ids: (B, T), from 0; -1 for tokens that the policy did not produce, whose ratio becomes 1.
        reduction: of the segment's log-ratios, "mean" or "sum"; limited to +-20.

    Returns:
        (B, T) without gradient.

    Raises:
        ValueError: unknown reduction.

    Source: GSPO (arXiv:2507.18071) section 4.3 for the mean over a row; Turn-PPO (arXiv:2512.17008), as described by
    others, for the sum over a turn.
    """
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction {reduction!r}: no such choice; expected 'mean' or 'sum'.")
    current = log_probs.detach()
    is_action = segment_ids >= 0
    index = segment_ids.clamp(min=0)
    width = int(index.max()) + 1 if index.numel() else 1
    zeros = torch.zeros(len(index), width, dtype=current.dtype, device=current.device)
    log_ratios = zeros.scatter_add(1, index, torch.where(is_action, current - old_log_probs, 0))
    if reduction == "mean":
        log_ratios = log_ratios / zeros.scatter_add(1, index, is_action.to(current.dtype)).clamp(min=1)
    return current - torch.where(is_action, log_ratios.clamp(-LIMIT, LIMIT).gather(1, index), 0)
