"""Sandboxes: places where programs that nobody has read run alone and within limits. Standard library only."""

from collections.abc import Callable

from acpo_trl.sandbox.base import ExecResult, Execution, Exit, Limits, Sandbox, SandboxError, run
from acpo_trl.sandbox.bubblewrap import Bubblewrap
from acpo_trl.sandbox.process import ProcessSandbox

SANDBOXES: dict[str, Callable[[], Sandbox]] = {"bubblewrap": Bubblewrap, "process": ProcessSandbox}

__all__ = [
    "SANDBOXES",
    "Bubblewrap",
    "ExecResult",
    "Execution",
    "Exit",
    "Limits",
    "ProcessSandbox",
    "Sandbox",
    "SandboxError",
    "run",
]
