"""The sandbox `bubblewrap`: namespaces made by the program `bwrap`, with a warm interpreter inside."""

import atexit
import contextlib
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from acpo_trl.sandbox.base import Exit, Limits, MemoryFile, SandboxError, run
from acpo_trl.sandbox.bwrap import ENVIRONMENT, GRACE_S, HINT, Server

PROBE = """
import json, os, pathlib, socket
open(os.devnull).close()
facts = {"environment": sorted(os.environ), "processes": [p for p in os.listdir("/proc") if p.isdigit()]}
facts["interfaces"] = [name for _, name in socket.if_nameindex()]
facts["is_root_writable"], facts["is_home_visible"] = os.access("/", os.W_OK), os.path.exists(HOME_FILE)
facts["capabilities"] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")]
print(json.dumps(facts))
"""


class Bubblewrap:
    """Runs programs in namespaces of their own: no network, no files but the interpreter's, no other processes.

    Args:
        packages: folders that programs can import from, beside the standard library; they can read all that is in them.

    Raises:
        SandboxError: `bwrap` is missing or cannot isolate on this machine.
    """

    def __init__(self, packages: Sequence[str] = ()) -> None:
        self.packages = packages
        self._idle: list[Server] = []
        self._lock = threading.Lock()
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)
        self._probe()

    def start(self, program: str, limits: Limits, *, stdin: int, stdout: int, stderr: int) -> "ServedExecution":
        """See `Sandbox`."""
        server = self._take()
        with MemoryFile(program.encode("utf-8", "surrogatepass")) as source:
            server.send(limits, [source.fd, stdin, stdout, stderr])
        return ServedExecution(self, server, limits)

    def close(self) -> None:
        """See `Sandbox`."""
        with self._lock:
            idle, self._idle = self._idle, []
        for server in idle:
            server.close()

    def _take(self) -> "Server":
        while True:
            with self._lock:
                server = self._idle.pop() if self._idle else None
            if server is None:
                return Server(self.packages)
            if server.process.poll() is None:
                return server
            server.close()  # somebody has killed it, such as the kernel when the memory of the machine ran out

    def take_back(self, server: "Server") -> None:
        """Keep a server whose program has ended for the next one."""
        with self._lock:
            self._idle.append(server)

    def _forget(self) -> None:
        # After a fork the servers belong to the parent; they end only when nobody else holds their sockets.
        self._lock = threading.Lock()
        while self._idle:
            self._idle.pop().control.close()

    def _probe(self) -> None:
        home_file = next((str(path) for path in Path.home().glob("*") if path.is_file()), "/etc/passwd")
        result = run(self, PROBE.replace("HOME_FILE", repr(home_file)))
        expected = {
            "environment": sorted(ENVIRONMENT),
            "processes": ["1"],
            "interfaces": ["lo"],
            "is_root_writable": False,
            "is_home_visible": False,
            "capabilities": ["0" * 16],
        }
        facts = json.loads(result.output) if result.is_ok else result.errors.decode(errors="replace")
        if facts != expected:
            self.close()
            raise SandboxError(f"sandbox 'bubblewrap': it does not isolate here: it gave {facts!r}; {HINT}")


class ServedExecution:
    """A program that a server runs."""

    def __init__(self, sandbox: Bubblewrap, server: "Server", limits: Limits) -> None:
        self.sandbox, self.server, self.limits = sandbox, server, limits

    def wait(self) -> Exit:
        """See `Execution`."""
        reply = self.server.receive(self.limits.wall_s + GRACE_S)
        if "failure" in reply:
            self.server.close()
            raise SandboxError(f"sandbox 'bubblewrap': a program could not be started: {reply['failure']}.")
        self.sandbox.take_back(self.server)
        return Exit(**reply)

    def kill(self) -> None:
        """See `Execution`."""
        with contextlib.suppress(OSError):  # the server is gone; `wait` tells
            self.server.control.send(b"kill")
