"""From a rule's credit to the credit that a run uses: checked, mixed with uniform credit, normalized by sign."""

from collections.abc import Callable

import torch
from torch import Tensor


def check_credit(credit: Tensor, advantages: Tensor, action_mask: Tensor, rule: str) -> None:
    """Raise ValueError if a rule returned another shape, or a negative, infinite or NaN credit for an action token."""
    if credit.shape != advantages.shape:
        raise ValueError(
            f"credit_rule {rule!r} returned shape {tuple(credit.shape)}; expected that of the advantages, "
            f"{tuple(advantages.shape)}: one credit per token."
        )
    bad = action_mask & ~((credit.detach() >= 0) & credit.detach().isfinite())
    if bad.any():
        row, token = bad.nonzero()[0].tolist()
        raise ValueError(
            f"credit_rule {rule!r} gave credit {credit[row, token].item()} to token {token} of row {row}: a negative "
            "credit would reverse the update, NaN or infinity would destroy the model; expected finite numbers >= 0."
        )


def mix(credit: Tensor, share: float) -> Tensor:
    """Credit between uniform (share 0) and the rule (share 1)."""
    return credit if share == 1.0 else 1 + share * (credit - 1)


def normalize_by_sign(
    credit: Tensor, advantages: Tensor, action_mask: Tensor, sum_over_ranks: Callable[[Tensor], Tensor]
) -> Tensor:
    """Credit divided by its mean over the tokens of the same advantage sign, so that each sign's mean is 1.

    Keeps the ranking of tokens within a sign and removes the tilt between signs: a confident policy has delta near 0,
    so an asymmetric rule alone would weigh failures far above successes.

    Args:
        credit: (B, T), at least 0.
        advantages: (B, T).
        action_mask: (B, T), True for tokens that the policy produced.
        sum_over_ranks: adds a tensor up over all processes.

    Returns:
        (B, T). The divisor carries no gradient. A sign whose mean is 0 and tokens of advantage 0 are left as they are.
    """
    signs = [(advantages > 0) & action_mask, (advantages < 0) & action_mask]
    sums = torch.stack([torch.stack([(credit.detach() * sign).sum(), sign.sum().float()]) for sign in signs])
    totals = sum_over_ranks(sums)
    for sign, (total, count) in zip(signs, totals, strict=True):
        mean = torch.where(total > 0, total / count.clamp(min=1), 1.0)
        credit = torch.where(sign, credit / mean, credit)
    return credit
