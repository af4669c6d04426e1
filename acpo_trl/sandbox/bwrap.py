"""One sandbox made by the program `bwrap`, with a warm interpreter in it: acpo_trl/sandbox/inside/server.py."""

import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from acpo_trl.sandbox.base import Limits, MemoryFile, SandboxError

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
ENVIRONMENT = {"HOME": "/tmp", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "PWD": "/tmp", "PYTHONHASHSEED": "0"}


class Server:
    """One sandbox: `bwrap` with a warm interpreter in it. See acpo_trl/sandbox/inside/server.py."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages
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
        command = server_command(theirs.fileno(), self.packages)
        # Not `--die-with-parent`: the kernel takes the thread for the parent. The server ends when its socket closes.
        self.process = subprocess.Popen(
            [
                bwrap,
                "--info-fd",
                str(their_info),
                "--userns-block-fd",
                str(their_block),
                *options(self.packages),
                "--",
                *command,
            ],
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


def options(packages: Sequence[str]) -> list[str]:
    """Give the options of `bwrap`: which namespaces, which files."""
    unshared = [f"--unshare-{name}" for name in ("user", "pid", "net", "ipc", "uts", "cgroup")]
    prefixes = list(dict.fromkeys(("/usr", sys.base_prefix)))
    files = []
    for folder in ("/tmp", "/dev", "/sandbox", "/packages", *prefixes):
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
    for number, path in enumerate(packages):
        files += ["--ro-bind", path, f"/packages/{number}"]
    for name in ("bin", "lib", "lib64"):
        link = Path("/", name)
        files += ["--symlink", os.readlink(link), str(link)] if link.is_symlink() else ["--ro-bind-try", str(link)] * 2
    files += ["--ro-bind", str(INSIDE), "/sandbox/inside", "--proc", "/proc", "--remount-ro", "/", "--chdir", "/tmp"]
    environment = [part for name, value in ENVIRONMENT.items() for part in ("--setenv", name, value)]
    rights = ["--cap-drop", "ALL"] + [part for name in CAPABILITIES for part in ("--cap-add", name)]
    return [*unshared, "--new-session", "--as-pid-1", *files, "--clearenv", *environment, *rights]


def server_command(descriptor: int, packages: Sequence[str]) -> list[str]:
    user = UNPRIVILEGED if os.geteuid() == 0 else None
    paths = ["/sandbox", *(f"/packages/{number}" for number in range(len(packages)))]
    program = f"import sys; sys.path += {paths!r}; from inside.server import main; main({descriptor}, {user})"
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
