"""The surrogate's relation to Shannon entropy."""

import torch
from torch import Tensor


def entropy_bounds(delta: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
    """Smallest and largest entropy that a distribution with mode probability 1 - delta can have.

    -log(1 - delta) <= H <= -(1 - delta) log(1 - delta) - delta log(delta / (V - 1)). Source: ACPO seed; both bounds
    meet at delta = 0 and at the uniform distribution.

    Args:
        delta: any shape, in [0, 1 - 1 / vocab_size].
        vocab_size: number of tokens V, at least 2.

    Returns:
        Lower and upper bound in nats, shaped like `delta`.

    Raises:
        ValueError: `vocab_size` is below 2.
    """
    if vocab_size < 2:
        raise ValueError(f"vocab_size {vocab_size!r}: a bound needs a choice; expected at least 2 tokens.")
    keep = torch.log1p(-delta)
    spread = torch.special.xlogy(delta, delta / (vocab_size - 1))
    return -keep, -(1 - delta) * keep - spread
