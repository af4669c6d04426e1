"""What the trainer logs about credit, as means over the action tokens of all processes."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..credit import TokenStats


def credit_metrics(
    stats: TokenStats, credit: Tensor, advantages: Tensor, sum_over_ranks: Callable[[Tensor], Tensor]
) -> dict[str, float]:
    """Means of delta, mode rate and credit; NaN where no token qualifies (TRL leaves NaN out of its averages).

    Args:
        stats: facts about the tokens.
        credit: (B, T), as used by the loss.
        advantages: (B, T), before credit.
        sum_over_ranks: adds a tensor up over all processes.
    """
    everywhere = stats.action_mask
    means = {
        "acpo/delta": (stats.delta, everywhere),
        "acpo/mode_rate": (stats.is_mode, everywhere),
        "acpo/credit": (credit, everywhere),
        "acpo/credit_positive": (credit, everywhere & (advantages > 0)),
        "acpo/credit_negative": (credit, everywhere & (advantages < 0)),
    }
    sums = torch.stack([torch.stack([(value * where).sum().float(), where.sum()]) for value, where in means.values()])
    totals = sum_over_ranks(sums)
    return dict(zip(means, (totals[:, 0] / totals[:, 1]).tolist(), strict=True))
