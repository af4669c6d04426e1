"""Which old log-probabilities give which importance ratio."""

from torch import Tensor


def gspo_token_old_log_probs(log_probs: Tensor, old_log_probs: Tensor, action_mask: Tensor) -> Tensor:
    """Old log-probabilities under which a token-level loss computes the GSPO-token ratio.

    The ratio becomes s_{i,t} = sg[s_i] pi(y_t) / sg[pi(y_t)] with log s_i the mean log-ratio of the row's action
    tokens: the value of GSPO's sequence ratio, while each token keeps the gradient of its own advantage. Source: GSPO
    (arXiv:2507.18071) section 4.3.

    Args:
        log_probs: (B, T), current policy.
        old_log_probs: (B, T), policy that sampled.
        action_mask: (B, T), True for tokens that the policy produced.

    Returns:
        (B, T) without gradient. A row without action tokens has ratio 1.
    """
    current = log_probs.detach()
    mask = action_mask.to(current.dtype)
    log_ratio = ((current - old_log_probs) * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)
    return current - log_ratio
