"""The report within a notebook."""

import html
import os
from typing import Any

from .load import Run, load_run
from .page import render


class Shown:
    """What a notebook shows as a frame, so that the page keeps its styles and scripts to itself."""

    def __init__(self, run: Run, height: int) -> None:
        self.run, self.height = run, height

    def _repr_html_(self) -> str:
        page = html.escape(render(self.run), quote=True)
        style = f"width:100%;height:{self.height}px;border:0"
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="{style}"></iframe>'


def show(run: str | os.PathLike[str] | Run, height: int = 800) -> Any:
    """The report of a run, as the last value of a notebook's cell.

    Args:
        run: output folder of a run, or what `load_run` gave.
        height: in pixels.
    """
    return Shown(run if isinstance(run, Run) else load_run(run), height)
