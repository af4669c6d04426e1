"""Environments for multi-turn agents."""

from .base import Step, StepEnvironment, ToolEnvironment, TurnScore
from .corpus import Corpus
from .gym import GymEnvironment
from .lookup import Lookup, lookup_tasks
from .play import call_message, play
from .python_tool import PythonTool
from .search import Search
from .tagged import TaggedTools

ENVIRONMENTS: dict[str, type[ToolEnvironment]] = {"lookup": Lookup, "python_tool": PythonTool, "search": Search}
"""Tool environments; their options are the keyword arguments of the class."""

__all__ = [
    "ENVIRONMENTS",
    "Corpus",
    "GymEnvironment",
    "Lookup",
    "PythonTool",
    "Search",
    "Step",
    "StepEnvironment",
    "TaggedTools",
    "ToolEnvironment",
    "TurnScore",
    "call_message",
    "lookup_tasks",
    "play",
]
