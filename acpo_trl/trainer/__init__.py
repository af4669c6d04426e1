"""ACPOTrainer: TRL's GRPOTrainer with credit per token."""

from .config import ACPOConfig
from .trainer import ACPOTrainer

__all__ = ["ACPOConfig", "ACPOTrainer"]
