"""The sandbox `bubblewrap`: namespaces made by the program `bwrap`, with a warm interpreter inside."""

import atexit
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from acpo_trl.sandbox.base import Exit, Limits, MemoryFile, SandboxError, run

INSIDE = Path(__file__).parent / "inside"
START_S = 30.0
GRACE_S = 10.0
UNPRIVILEGED = 65534
# The server makes namespaces and mounts, changes to the programs' user, and kills them.
CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_KILL")
DEVICES = ("null", "zero", "full", "random", "urandom")
HINT = (
    "expected the package bubblewrap and a kernel that lets this user make user namespaces. Install it with "
    "`apt-get install bubblewrap`; in a container, start it with the options `--security-opt seccomp=unconfined "
    "--security-opt apparmor=unconfined --security-opt systempaths=unconfined`; see docs/concepts/sandbox.md. "
    "If the programs are harmless, ask for the sandbox 'process' by name."
)
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

    Raises:
        SandboxError: `bwrap` is missing or cannot isolate on this machine.
    """

    def __init__(self) -> None:
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
                return Server()
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
        home_file = next((str(path) for path in Path.home().glob("*") if path.is_file()), str(Path(__file__)))
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


ENVIRONMENT = {"HOME": "/tmp", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "PWD": "/tmp", "PYTHONHASHSEED": "0"}


class Server:
    """One sandbox: `bwrap` with a warm interpreter in it. See acpo_trl/sandbox/inside/server.py."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, MemoryFile() as errors:
            try:
                self._start(theirs, errors)
                self.control.settimeout(START_S)
                if self.control.recv(16) == b"ready":
                    return
                reason = "it ended"
            except (OSError, ValueError) as error:
                reason = str(error)
            self.close()
            message = errors.read(2000).decode(errors="replace").strip()
            raise SandboxError(f"sandbox 'bubblewrap': it cannot start: {message or reason}; {HINT}")

    def _start(self, theirs: socket.socket, errors: MemoryFile) -> None:
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise OSError("there is no program 'bwrap'")
        info, their_info = os.pipe()
        their_block, block = os.pipe()
        command = server_command(theirs.fileno())
        # Not `--die-with-parent`: the kernel takes the thread for the parent. The server ends when its socket closes.
        self.process = subprocess.Popen(
            [bwrap, "--info-fd", str(their_info), "--userns-block-fd", str(their_block), *options(), "--", *command],
            pass_fds=[their_info, their_block, theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors.fd,
            start_new_session=True,  # Ctrl-C is for the caller alone
        )
        os.close(their_info)
        os.close(their_block)
        with open(info) as description, open(block, "w") as unblock:
            self.pid = json.loads(description.read())["child-pid"]
            map_users(self.pid)
            unblock.write("go")

    def send(self, limits: Limits, descriptors: list[int]) -> None:
        try:
            socket.send_fds(self.control, [json.dumps(dataclasses.asdict(limits)).encode()], descriptors)
        except OSError as error:
            self.close()
            raise SandboxError(f"sandbox 'bubblewrap': its server is gone: {error}.") from error

    def receive(self, timeout_s: float) -> dict:
        self.control.settimeout(timeout_s)
        try:
            return json.loads(self.control.recv(65536))
        except (OSError, ValueError) as error:
            self.close()
            raise SandboxError(f"sandbox 'bubblewrap': its server does not answer: {error}.") from error

    def close(self) -> None:
        """End the server and all it runs; no zombie stays."""
        self.control.close()
        process = getattr(self, "process", None)
        if process is None:
            return
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)  # the first process in it: all others end with it
            process.wait()


def options() -> list[str]:
    """Give the options of `bwrap`: which namespaces, which files."""
    unshared = [f"--unshare-{name}" for name in ("user", "pid", "net", "ipc", "uts", "cgroup")]
    prefixes = list(dict.fromkeys(("/usr", sys.base_prefix)))
    files = []
    for folder in ("/tmp", "/dev", "/sandbox", *prefixes):
        # Folders that `bwrap` makes unasked are closed to other users than its own.
        for path in (*reversed(Path(folder).parents[:-1]), folder):
            files += ["--perms", "0755", "--dir", str(path)]
    files += ["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/tmp", "/dev/shm"]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        files += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    for name in DEVICES:
        files += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for prefix in prefixes:
        # Not all of it: people keep projects in /usr/src, and a prefix may be a home folder.
        for folder in ("bin", "lib", "lib64"):
            files += ["--ro-bind-try", f"{prefix}/{folder}", f"{prefix}/{folder}"]
    for name in ("bin", "lib", "lib64"):
        link = Path("/", name)
        files += ["--symlink", os.readlink(link), str(link)] if link.is_symlink() else ["--ro-bind-try", str(link)] * 2
    files += ["--ro-bind", str(INSIDE), "/sandbox/inside", "--proc", "/proc", "--remount-ro", "/", "--chdir", "/tmp"]
    environment = [part for name, value in ENVIRONMENT.items() for part in ("--setenv", name, value)]
    rights = ["--cap-drop", "ALL"] + [part for name in CAPABILITIES for part in ("--cap-add", name)]
    return [*unshared, "--new-session", "--as-pid-1", *files, "--clearenv", *environment, *rights]


def server_command(descriptor: int) -> list[str]:
    user = UNPRIVILEGED if os.geteuid() == 0 else None
    program = f"import sys; sys.path.append('/sandbox'); from inside.server import main; main({descriptor}, {user})"
    return [interpreter(), "-S", "-B", "-c", program]


def interpreter() -> str:
    """Give the path of the Python that this one was made from, outside any virtual environment."""
    return str(Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}"))


def map_users(pid: int) -> None:
    """Give the new user namespace its users: the server and the programs are this user, under another number.

    Root's programs are a second user, because the kernel does not hold root to a number of processes.
    """
    folder = Path("/proc", str(pid))
    if os.geteuid() == 0:
        users = groups = f"0 0 1\n{UNPRIVILEGED} {UNPRIVILEGED} 1\n"
    else:
        users, groups = f"{UNPRIVILEGED} {os.geteuid()} 1\n", f"{UNPRIVILEGED} {os.getegid()} 1\n"
        (folder / "setgroups").write_text("deny")
    (folder / "uid_map").write_text(users)
    (folder / "gid_map").write_text(groups)
