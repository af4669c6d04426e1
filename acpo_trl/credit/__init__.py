"""Token-level credit: which tokens of a completion get how much of its advantage.

A new rule is one function in a file here, one line in `CREDIT_RULES`, a naive loop in `tests/reference`.
"""

from collections.abc import Callable

from torch import Tensor

from .acpo import acpo, acpo_as_written, acpo_live, uniform
from .stats import Gate, TokenStats

CreditRule = Callable[[TokenStats, Tensor], Tensor]

CREDIT_RULES: dict[str, CreditRule] = {
    "acpo": acpo,
    "acpo_live": acpo_live,
    "acpo_as_written": acpo_as_written,
    "uniform": uniform,
}

__all__ = ["CREDIT_RULES", "CreditRule", "Gate", "TokenStats"]
