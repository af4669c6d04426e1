"""Asymmetric token-level and turn-level credit for TRL's GRPOTrainer."""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "ACPOConfig": "acpo_trl.trainer.config",
    "ACPOLoss": "acpo_trl.credit.module",
    "ACPOTrainer": "acpo_trl.trainer.trainer",
    "CREDIT_RULES": "acpo_trl.credit",
    "TokenStats": "acpo_trl.credit.stats",
}
__all__ = ["CREDIT_RULES", "ACPOConfig", "ACPOLoss", "ACPOTrainer", "TokenStats", "__version__"]


def __getattr__(name: str) -> object:
    # Imported on first use, so that worker processes and `--help` do not wait for torch and TRL.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
