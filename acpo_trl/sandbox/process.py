"""The sandbox `process`: limits, but no walls."""

import contextlib
import dataclasses
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from acpo_trl.sandbox.base import Exit, Limits, MemoryFile, SandboxError
from acpo_trl.sandbox.bwrap import INSIDE, interpreter

logger = logging.getLogger(__name__)

# Without a user namespace the kernel counts all that the user runs, not only the program.
PROCESSES_OF_THE_USER = 4096
NOT_COVERED = (
    "Programs can read and write every file that you can, use the network, and signal every process of yours; "
    "processes that leave their session outlive the program. Memory and disk are bounded for each process and file, "
    "not for all together, and as root the number of processes is not bounded at all."
)


class ProcessSandbox:
    """Runs each program in a fresh interpreter with limits, an empty environment and a directory of its own.

    It says at its start what it does not cover; it is no protection against a program that wants to do harm.
    """

    def __init__(self) -> None:
        logger.warning("sandbox 'process' does not isolate. %s Prefer 'bubblewrap'.", NOT_COVERED)

    def start(self, program: str, limits: Limits, *, stdin: int, stdout: int, stderr: int) -> "ProcessExecution":
        """See `Sandbox`."""
        directory = tempfile.mkdtemp(prefix="acpo_trl_")
        bootstrap = f"import sys; sys.path.append({str(INSIDE.parent)!r}); from inside.child import main; main()"
        wide = dataclasses.replace(limits, max_processes=limits.max_processes + PROCESSES_OF_THE_USER)
        bounds = json.dumps(dataclasses.asdict(wide))
        with MemoryFile(program.encode("utf-8", "surrogatepass")) as source:
            try:
                process = subprocess.Popen(
                    [interpreter(), "-S", "-B", "-c", bootstrap, bounds, str(source.fd)],
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    pass_fds=[source.fd],
                    cwd=directory,
                    env={"HOME": directory, "LANG": "C.UTF-8", "PATH": os.defpath, "PYTHONHASHSEED": "0"},
                    start_new_session=True,
                )
            except OSError as error:
                shutil.rmtree(directory)
                raise SandboxError(f"sandbox 'process': {sys.executable!r} cannot be started: {error}.") from error
        return ProcessExecution(process, directory, limits)

    def close(self) -> None:
        """See `Sandbox`."""


class ProcessExecution:
    """A program in a process of its own."""

    def __init__(self, process: subprocess.Popen, directory: str, limits: Limits) -> None:
        self.process, self.directory, self.limits = process, directory, limits
        self.started = time.monotonic()
        self.reason = ""

    def wait(self) -> Exit:
        """See `Execution`."""
        remaining = self.started + self.limits.wall_s - time.monotonic()
        try:
            self.process.wait(max(remaining, 0.0))
        except subprocess.TimeoutExpired:
            self.reason = "time limit"
        self._kill_session()
        code = self.process.wait()
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            self.reason = self.reason or "time limit"
        shutil.rmtree(self.directory, ignore_errors=True)
        return Exit(code, self.reason, time.monotonic() - self.started)

    def kill(self) -> None:
        """See `Execution`."""
        self.reason = "killed"
        self._kill_session()

    def _kill_session(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            # The number is not given to another group before the last process of this one is gone.
            os.killpg(self.process.pid, signal.SIGKILL)
