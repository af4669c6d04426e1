"""What a sandbox promises: it runs Python programs that nobody has read, within limits."""

import math
import os
from dataclasses import dataclass, fields
from typing import Protocol


class SandboxError(RuntimeError):
    """The sandbox failed, not the program in it."""


@dataclass(frozen=True)
class Limits:
    """What one program may use.

    Raises:
        TypeError: a limit is no number, or no whole one where only `wall_s` may have a fraction.
        ValueError: a limit is not above 0, or not finite.
    """

    wall_s: float = 6.0
    """Wall-clock seconds from start to end."""
    cpu_s: int = 6
    """CPU seconds of each process."""
    memory_bytes: int = 2**30
    """Address space of each process, and resident memory of all of them together."""
    max_processes: int = 64
    """Processes and threads at a time."""
    max_file_bytes: int = 16 * 2**20
    """Size of each file it writes; its output and its error messages are files too."""
    max_disk_bytes: int = 64 * 2**20
    """Size of all files in its directory together."""
    max_output_bytes: int = 4 * 2**20
    """Output it may print; more of it ends a run with the reason `output limit`."""
    max_open_files: int = 256
    """File descriptors of each process."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kind = int | float if field.name == "wall_s" else int
            if not isinstance(value, kind) or isinstance(value, bool):
                expected = "a number of seconds" if field.name == "wall_s" else "a whole number"
                raise TypeError(f"limit {field.name} {value!r}: is a {type(value).__name__}; expected {expected}.")
            if not 0 < value < math.inf:
                raise ValueError(f"limit {field.name} {value!r}: no program could run; expected a number above 0.")


@dataclass(frozen=True)
class Exit:
    """How a program ended."""

    code: int
    """Its exit code, or minus the number of the signal that ended it."""
    reason: str
    """"", or what ended it: `time limit`, `memory limit`, `output limit`, `killed`."""
    seconds: float
    """Wall-clock time it took."""


@dataclass(frozen=True)
class ExecResult:
    """How a program ended and what it printed."""

    exit: Exit
    output: bytes
    errors: bytes

    @property
    def is_ok(self) -> bool:
        return self.exit.code == 0 and not self.exit.reason


class Execution(Protocol):
    """A program that was started."""

    def wait(self) -> Exit:
        """Give the program's end, at the latest a moment after its time limit. Call it once for each start.

        When it returns, no process of the program is left.

        Raises:
            SandboxError: the sandbox failed; nothing is known about the program.
        """

    def kill(self) -> None:
        """End the program now; `wait` still has to be called."""


class Sandbox(Protocol):
    """A place where a program runs alone. Safe to use from several threads."""

    def start(self, program: str, limits: Limits, *, stdin: int, stdout: int, stderr: int) -> Execution:
        """Start a Python program in an empty working directory of its own.

        Args:
            program: source; it can import the modules of `acpo_trl.sandbox.inside` as package `inside`.
            limits: what it may use.
            stdin, stdout, stderr: descriptors of its three streams: files, or sockets to talk with it. They stay open.

        Raises:
            SandboxError: it could not be started.
        """

    def close(self) -> None:
        """End all that the sandbox holds ready; a later `start` works again."""


def run(sandbox: Sandbox, program: str, stdin: bytes = b"", limits: Limits | None = None) -> ExecResult:
    """Give the end and the output of a program that reads `stdin`."""
    limits = limits or Limits()
    with MemoryFile(stdin) as given, MemoryFile() as output, MemoryFile() as errors:
        execution = sandbox.start(program, limits, stdin=given.fd, stdout=output.fd, stderr=errors.fd)
        end = execution.wait()
        if max(output.size(), errors.size()) > limits.max_output_bytes:
            end = Exit(end.code, end.reason or "output limit", end.seconds)
        return ExecResult(end, output.read(limits.max_output_bytes), errors.read(limits.max_output_bytes))


class MemoryFile:
    """A file without a path: what a program prints needs no reader while it runs, and no clean-up after it.

    Args:
        content: what is in it; its position is at its start.
    """

    def __init__(self, content: bytes = b"") -> None:
        self.fd = os.memfd_create("acpo_trl")
        view = memoryview(content)
        while view:
            view = view[os.write(self.fd, view) :]
        os.lseek(self.fd, 0, os.SEEK_SET)

    def __enter__(self) -> "MemoryFile":
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.fd)

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def read(self, max_bytes: int) -> bytes:
        """Give its first `max_bytes` bytes."""
        return os.pread(self.fd, max_bytes, 0)
