"""The embedded default: a model, a tokenizer and problems small enough to learn on a CPU within minutes."""

from .model import build_model, build_tokenizer
from .start import build_start
from .tasks import problems, worked_solution
from .warm_start import warm_start

__all__ = ["build_model", "build_start", "build_tokenizer", "problems", "warm_start", "worked_solution"]
