"""Reward functions: TRL's signature, no torch and no TRL inside."""

from collections.abc import Callable

from .code import CodeReward
from .format import format_reward
from .math import MathReward

REWARDS: dict[str, Callable[..., list[float | None]]] = {
    "math": MathReward(),
    "code": CodeReward(),
    "format": format_reward,
}

__all__ = ["REWARDS", "CodeReward", "MathReward", "format_reward"]
