"""A warm interpreter that forks a new one for each program, in namespaces of its own.

It is the first process of the sandbox. It never sees a program, its input or its output: it only hands their
descriptors on, so that nothing of one program is in the memory that the next one inherits.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time

from . import child, kernel

TICK_S = 0.05
FILTER = kernel.SystemCallFilter()
# What programs import most; a fork of this interpreter has them already. More of it makes every fork slower.
WARM = (
    "bisect",
    "cmath",
    "collections",
    "copy",
    "datetime",
    "decimal",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "operator",
    "random",
    "re",
    "statistics",
    "string",
    "time",
    "types",
    "typing",
    "inside.callee",
    "inside.grader",
)


def main(descriptor: int, user: int | None) -> None:
    """Run programs for the caller at the other end of the socket until it closes.

    Args:
        descriptor: the socket. A request is the limits as JSON, with the descriptors of the program and its streams.
        user: number of the user that programs run as; None for the user of this process.
    """
    for name in WARM:
        importlib.import_module(name)
    gc.freeze()  # a collection in a program would copy the pages of all that is here
    namespace = os.open("/proc/self/ns/pid", os.O_RDONLY)
    control = socket.socket(fileno=descriptor)
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 4)
        if descriptors:
            reply = answer(json.loads(message), descriptors, user, namespace, control)
            control.send(json.dumps(reply).encode())
        elif not message:
            return
        # else: a request to kill a program that had already ended


def answer(limits: dict, descriptors: list[int], user: int | None, namespace: int, control: socket.socket) -> dict:
    started, kills = time.monotonic(), memory_kills()
    ready, child_ready = os.pipe()
    kernel.unshare(kernel.CLONE_NEWPID)  # for the next fork only
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        become(limits, descriptors, user, child_ready)
    kernel.setns(namespace, kernel.CLONE_NEWPID)
    for descriptor in (*descriptors, child_ready):
        os.close(descriptor)
    failure = os.read(ready, 4096).decode()
    os.close(ready)
    reason = watch(pid, limits, started + limits["wall_s"], control)
    _, status = os.waitpid(pid, 0)
    if failure != "ready":
        return {"failure": failure or "the program's process died before it could start"}
    code = os.waitstatus_to_exitcode(status)
    if not reason and code == -signal.SIGKILL:
        # Nobody in there can kill its first process, so it was the kernel: for its memory, or for its CPU time. The
        # time that `wait4` tells does not settle it: the kernel's limit counts ticks, which on a shared machine come to
        # more than the time that a process really had.
        reason = "memory limit" if memory_kills() > kills else "time limit"
    return {"code": code, "reason": reason, "seconds": time.monotonic() - started}


def become(limits: dict, descriptors: list[int], user: int | None, ready: int) -> None:
    """Shut this process in, then run the program. Never returns."""
    try:
        source = child.read_all(descriptors[0])
        for stream, descriptor in enumerate(descriptors[1:]):
            os.dup2(descriptor, stream)
        isolate(limits, user)
        os.write(ready, b"ready")
        os.closerange(3, 2**20)
    except BaseException as error:
        os.write(ready, f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    child.run(source)


def isolate(limits: dict, user: int | None) -> None:
    """Leave this process nothing but its own processes, an own empty directory, and no rights."""
    os.setsid()
    kernel.unshare(kernel.CLONE_NEWNS)
    private = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount(b"tmpfs", b"/tmp", private, b"size=%d,nr_inodes=16384,mode=0777" % limits["max_disk_bytes"])
    kernel.mount(b"proc", b"/proc", private | kernel.MS_NOEXEC)
    os.chdir("/tmp")
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    kernel.drop_privileges()
    child.set_limits(limits)
    FILTER.install()


def watch(pid: int, limits: dict, deadline: float, control: socket.socket) -> str:
    """Wait for the end of the program and give what ended it, "" if it ended by itself.

    The program is the first process of its process namespace: with it the kernel ends all others there.
    """
    descriptor = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.register(control, select.POLLIN)
    reason = ""
    while not reason:
        ready = [file for file, _ in poll.poll(1000 * max(0.0, min(TICK_S, deadline - time.monotonic())))]
        if descriptor in ready:
            break
        if ready:
            reason = "killed"  # the request to do so, or the end of the caller, is left for the main loop
        elif time.monotonic() >= deadline:
            reason = "time limit"
        elif resident_bytes() > limits["memory_bytes"]:
            reason = "memory limit"
    os.close(descriptor)
    if reason:
        os.kill(pid, signal.SIGKILL)
    return reason


def memory_kills() -> int:
    """How many processes the kernel has killed for want of memory since the machine started."""
    with open("/proc/vmstat") as counters:
        return sum(int(line.split()[1]) for line in counters if line.startswith("oom_kill "))


def resident_bytes() -> int:
    """Give the memory of all processes in the sandbox except this one, without the files they share."""
    total = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            try:
                with open(f"/proc/{name}/status") as status:
                    fields = [line.split() for line in status if line.startswith(("RssAnon", "RssShmem"))]
            except OSError:
                continue  # it has just ended
            total += 1024 * sum(int(field[1]) for field in fields)
    return total


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
