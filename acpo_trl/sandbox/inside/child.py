"""A forked or fresh interpreter becomes the program."""

import atexit
import json
import os
import resource
import site
import sys
import threading
import traceback
import types

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
        bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(name, (bound, bound))


def read_all(descriptor: int) -> str:
    """Give the text of a file from its start."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0).decode("utf-8", "surrogatepass")


def open_streams() -> None:
    """Make the standard streams anew for what descriptors 0, 1 and 2 are now."""
    options = {"encoding": "utf-8", "errors": "surrogateescape", "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, **options)
    sys.stdout = sys.__stdout__ = open(1, "w", **options)
    sys.stderr = sys.__stderr__ = open(2, "w", **options)


def run(source: str) -> None:
    """Run the source as the main program and end the process as the interpreter would."""
    open_streams()
    sys.argv = ["program.py"]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    code = _outcome(lambda: exec(compile(source, "program.py", "exec"), main.__dict__))
    for last in (threading._shutdown, atexit._run_exitfuncs, _flush):
        code = _outcome(last) or code
    os._exit(code)


def _outcome(step) -> int:
    """Give the exit code that an interpreter would end with after the step."""
    try:
        step()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 255
        _report(end.code)
        return 1
    except BaseException as error:
        frames = error.__traceback__.tb_next  # without the frame of this function
        _report("".join(traceback.format_exception(type(error), error, frames and frames.tb_next)))
        return 1
    return 0


def _report(message: object) -> None:
    try:
        os.write(2, f"{message}\n".encode("utf-8", "replace"))
    except BaseException:
        pass  # its error stream is full or closed: nobody is left to tell


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def main() -> None:
    """Be the program of the process sandbox: `python -c ... LIMITS DESCRIPTOR`."""
    limits, descriptor = json.loads(sys.argv[1]), int(sys.argv[2])
    source = read_all(descriptor)
    os.close(descriptor)
    set_limits(limits)
    run(source)
