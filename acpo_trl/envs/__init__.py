"""Environments for multi-turn agents."""

from .base import Step, StepEnvironment, ToolEnvironment, TurnScore

__all__ = ["Step", "StepEnvironment", "ToolEnvironment", "TurnScore"]
