"""See the credit: one offline page of the recorded completions of a run."""

from .demo import demo_run
from .load import Run, load_run
from .notebook import show
from .page import render
from .text import render_text

__all__ = ["Run", "demo_run", "load_run", "render", "render_text", "show"]
