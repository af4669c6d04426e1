"""Attack the sandbox and the tests in it, and print what succeeded and what was left behind.

    python scripts/attack_sandbox.py [word in the name of an attack]

Exits with 1 if any attack succeeds or leaves anything. Run it only with a sandbox that isolates: the attacks are real.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from acpo_trl.rewards.code_tests import CodeTests, judge
from acpo_trl.sandbox import Bubblewrap, Limits, Sandbox, run

LIMITS = Limits(wall_s=3.0, cpu_s=3, memory_bytes=2**29)
SLOW_S = LIMITS.wall_s + 2.0
MARK = "acpo_trl_attack"
SOCKET = f"{MARK}_{os.getpid()}"  # two runs on one machine must not meet

# Programs. They print BREACH if they get what they want; words in capitals such as SECRET_FILE are put in. After
# `--- next` comes a second program that runs after the first, after `--- tests of NAME` the tests that a wrong program
# wants to pass (if none follow, those of `square`), and `--- output` stands for tests of a whole program.
ATTACKS = Path(__file__).with_name("attacks.txt")
SQUARE = "assert square(3) == 9\nassert square(-4) == 16\nassert square(0) == 0\n"
OUTPUT = CodeTests(cases=({"input": "1\n", "output": "one"}, {"input": "2\n", "output": "two"}))


@dataclass
class Result:
    """What came of an attack."""

    name: str
    breaches: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class Target:
    """What the attacks try to reach on this machine."""

    sandbox: Sandbox
    folder: Path
    listeners: list[socket.socket]
    victim: subprocess.Popen

    def fill(self, program: str) -> str:
        for name, value in (
            ("SECRET_FILE", self.folder / "secret"),
            ("SECRET_FOLDER", self.folder),
            ("REPOSITORY", Path(__file__).resolve().parents[1]),
            ("PORT", self.listeners[0].getsockname()[1]),
            ("SOCKET", SOCKET),
            ("VICTIM", self.victim.pid),
            ("MARK", MARK),
        ):
            program = program.replace(name, str(value))
        return program

    def breaches(self) -> list[str]:
        """Give what no program may do to the machine, as far as it has happened."""
        found = []
        if not (self.folder / "secret").exists():
            found.append("a file is gone")
        if self.victim.poll() is not None:
            found.append("a process is gone")
        for listener in self.listeners:
            with contextlib.suppress(BlockingIOError):
                listener.accept()
                found.append("a connection came")
        return found

    def leftovers(self) -> list[str]:
        """Give the processes and files that should not be there while no program runs."""
        deadline = time.monotonic() + 1.0
        while (left := self._processes()) and time.monotonic() < deadline:
            time.sleep(0.01)  # the kernel takes a moment to forget a process
        places = [Path(place, MARK) for place in ("/", "/tmp", "/usr", "/usr/lib", "/var/tmp", "/run", "/dev/shm")]
        return left + [f"file {place}" for place in places if place.exists()]

    def _processes(self) -> list[str]:
        children: dict[int, list[tuple[int, str]]] = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                children.setdefault(int(fields[1]), []).append((int(entry.name), fields[0]))
        bwraps = [pid for pid, _ in children.get(os.getpid(), []) if pid != self.victim.pid]
        servers = [pid for bwrap in bwraps for pid, _ in children.get(bwrap, [])]
        left = [f"process {pid}" for server in servers for pid, _ in children.get(server, [])]
        return left + [f"zombie {pid}" for pid, state in children.get(os.getpid(), []) if state == "Z"]


@contextlib.contextmanager
def target(sandbox: Sandbox) -> Iterator[Target]:
    """Give the attacks something to reach: a secret file, listening sockets, a process, a secret in the environment."""
    os.environ["ATTACK_SECRET"] = "s"
    inet, unix = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
    unix.bind(f"\0{SOCKET}")
    unix.listen()
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder, inet, unix:
        Path(folder, "secret").write_text("s")
        inet.setblocking(False)
        unix.setblocking(False)
        victim = subprocess.Popen(["sleep", "100000"])
        try:
            yield Target(sandbox, Path(folder), [inet, unix], victim)
        finally:
            victim.kill()
            victim.wait()
            del os.environ["ATTACK_SECRET"]


def runs(reach: Target, *programs: str) -> list[str]:
    """Run the programs one after the other and give what they got."""
    results = [run(reach.sandbox, reach.fill(program), limits=LIMITS) for program in programs]
    return ["the program says so"] if any(b"BREACH" in result.output for result in results) else []


def judged(reach: Target, program: str, tests: CodeTests) -> list[str]:
    verdict = judge(reach.sandbox, reach.fill(program), tests, LIMITS)
    return [] if verdict.score == 0.0 else [f"score {verdict.score} ({verdict.outcome})"]


def read_attacks() -> dict[str, tuple[str, str, str]]:
    """Give program, kind of what follows it, and what follows it, for the name of each attack."""
    found = {}
    for section in ATTACKS.read_text().split("=== ")[1:]:
        name, _, body = section.partition("\n")
        program, _, rest = body.partition("--- ")
        kind, _, more = rest.partition("\n")
        found[name] = (program, kind, more.strip())
    return found


def attempt(reach: Target, name: str, program: str, kind: str, more: str) -> Result:
    """Carry out an attack and look at what it did."""
    started = time.monotonic()
    if kind.startswith("tests of "):
        tests = CodeTests(entry_point=kind.removeprefix("tests of "), code=more or SQUARE)
        breaches = judged(reach, program, tests)
    elif kind == "output":
        breaches = judged(reach, program, OUTPUT)
    else:
        breaches = runs(reach, program, *([more] if kind == "next" else []))
    result = Result(name, breaches + reach.breaches(), seconds=time.monotonic() - started)
    if result.seconds > SLOW_S:
        result.breaches.append("it took too long")
    result.leftovers = reach.leftovers()
    after = run(reach.sandbox, "print(sum([1, 2]))", limits=LIMITS)
    if after.output != b"3\n":
        result.breaches.append("the next program does not run as it should")
    return result


def main() -> int:
    results = []
    with target(Bubblewrap()) as reach:
        for name, attack in read_attacks().items():
            if len(sys.argv) > 1 and sys.argv[1] not in name:
                continue
            result = attempt(reach, name, *attack)
            results.append(result)
            state = "; ".join(result.breaches + result.leftovers) or "held"
            print(f"{name:45} {result.seconds:6.2f} s  {state}", flush=True)
        reach.sandbox.close()
    succeeded = sum(bool(result.breaches) for result in results)
    leaving = sum(bool(result.leftovers) for result in results)
    print(f"{len(results)} attacks: {succeeded} succeeded, {leaving} left something behind")
    return int(bool(succeeded or leaving))


if __name__ == "__main__":
    sys.exit(main())
