"""Reward functions: TRL's signature, no torch and no TRL inside."""

from collections.abc import Callable
from typing import Any

from .code import CodeReward
from .declare import JudgeError, reward
from .format import format_reward
from .math import MathReward

REWARDS: dict[str, Callable[..., Any]] = {
    "math": MathReward,
    "code": CodeReward,
    "format": format_reward,
}
"""Functions, and classes whose objects are rewards; a class takes the reward's options."""

__all__ = ["REWARDS", "CodeReward", "JudgeError", "MathReward", "format_reward", "reward"]
