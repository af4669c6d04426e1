"""A forked or fresh interpreter becomes the program."""

import atexit
import contextlib
import json
import math
import os
import resource
import site
import sys
import threading
import traceback
import types
from collections.abc import Callable
from io import TextIOWrapper

STACK_BYTES = 64 * 2**20

site.setquit()  # an interpreter that starts without its site packages has no `exit` and `quit`


def set_limits(limits: dict) -> None:
    """Bound this process and its children; see `acpo_trl.sandbox.base.Limits`."""
    for name, bound in (
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_NPROC, limits["max_processes"]),
        (resource.RLIMIT_FSIZE, limits["max_file_bytes"]),
        (resource.RLIMIT_NOFILE, limits["max_open_files"]),
        (resource.RLIMIT_STACK, STACK_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(name)[1]
        bound = math.ceil(bound)
        bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(name, (bound, bound))


def read_all(descriptor: int) -> str:
    """Give the text of a file from its start."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0).decode("utf-8", "surrogatepass")


def open_streams() -> None:
    """Make the standard streams anew for what descriptors 0, 1 and 2 are now."""
    sys.stdin = sys.__stdin__ = _stream(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w")  # type: ignore[misc]


def _stream(descriptor: int, mode: str) -> TextIOWrapper:
    return TextIOWrapper(open(descriptor, f"{mode}b", closefd=False), encoding="utf-8", errors="surrogateescape")


def run(source: str) -> None:
    """Run the source as the main program and end the process as the interpreter would."""
    open_streams()
    sys.argv = ["program.py"]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    code = _outcome(lambda: exec(compile(source, "program.py", "exec"), main.__dict__))
    end_threads = threading._shutdown  # type: ignore[attr-defined]
    for last in (end_threads, atexit._run_exitfuncs, _flush):
        code = _outcome(last) or code
    os._exit(code)


def _outcome(step: Callable[[], object]) -> int:
    """Give the exit code that an interpreter would end with after the step."""
    try:
        step()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 255
        _report(end.code)
        return 1
    except BaseException as error:
        _report("".join(traceback.format_exception(error)))
        return 1
    return 0


def _report(message: object) -> None:
    with contextlib.suppress(BaseException):  # its error stream is full or closed: nobody is left to tell
        os.write(2, f"{message}\n".encode("utf-8", "replace"))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()


def main() -> None:
    """Be the program of the process sandbox: `python -c ... LIMITS DESCRIPTOR`."""
    limits, descriptor = json.loads(sys.argv[1]), int(sys.argv[2])
    source = read_all(descriptor)
    os.close(descriptor)
    set_limits(limits)
    run(source)
