"""Turn-level credit: which turn gets how much."""

from .kinds import KIND_ESTIMATORS, combine
from .outcome import outcome
from .process import local, process
from .table import TurnRewards, standardize

TURN_ESTIMATORS = {"outcome": outcome, "process": process, "local": local}

__all__ = ["KIND_ESTIMATORS", "TURN_ESTIMATORS", "TurnRewards", "combine", "local", "outcome", "process", "standardize"]
