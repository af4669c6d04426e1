"""Reward functions: TRL's signature, no torch and no TRL inside."""

from collections.abc import Callable
from typing import Any

from .code import CodeReward
from .cost import OverlongCost, RepetitionCost, TokensCost, ToolCallsCost, TurnsCost
from .declare import JudgeError, reward
from .format import ThinkAnswerReward, format_reward, tool_format
from .math import MathReward
from .retrieval import ExactMatchReward, F1Reward

REWARDS: dict[str, Callable[..., Any]] = {
    "math": MathReward,
    "code": CodeReward,
    "exact_match": ExactMatchReward,
    "f1": F1Reward,
    "format": format_reward,
    "think_answer": ThinkAnswerReward,
    "tool_format": tool_format,
    "repetition": RepetitionCost,
    "overlong": OverlongCost,
    "turns": TurnsCost,
    "tokens": TokensCost,
    "tool_calls": ToolCallsCost,
}
"""Functions, and classes whose objects are rewards; a class takes the reward's options."""

__all__ = [
    "REWARDS",
    "CodeReward",
    "ExactMatchReward",
    "F1Reward",
    "JudgeError",
    "MathReward",
    "OverlongCost",
    "RepetitionCost",
    "ThinkAnswerReward",
    "TokensCost",
    "ToolCallsCost",
    "TurnsCost",
    "format_reward",
    "reward",
    "tool_format",
]
