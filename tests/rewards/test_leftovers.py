"""After rewards have run, nothing of them is left: no process, no zombie, no file."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from acpo_trl.sandbox import SandboxError
from acpo_trl.sandbox.bubblewrap import Bubblewrap

# Right, wrong, hanging, crashing and forking answers of both rewards, one of them from a thread.
PROGRAM = r"""
import os, threading, leftovers
from acpo_trl.rewards import CodeReward, MathReward

math, code = MathReward(limit_s=1.0), CodeReward(limits={"wall_s": 1.0})
tower = r"\boxed{\sum_{n=1}^{10^{9}} \frac{\sin(n^{3})}{n^{2}+\cos n}}"
answers = [r"\boxed{4}", r"\boxed{5}", tower, r"\boxed{" + "9" * 20000 + "}"]
programs = [
    "def f(): return 4",
    "def f(): return 5",
    "def f():\n    while True: pass",
    "import os\ndef f():\n    while True: os.fork()",
    "import subprocess\ndef f():\n    subprocess.Popen(['sleep', '6017.25'], start_new_session=True); return 4",
    "def f():\n    open('/tmp/left', 'w').write('x' * 1000); raise SystemExit",
]
blocks = [f"```python\n{program}\n```" for program in programs]

def run():
    print("math", math(answers, solution=["4"] * len(answers)))
    print("code", code(blocks, tests=[["assert f() == 4"]] * len(blocks), entry_point=["f"] * len(blocks)))

run()
thread = threading.Thread(target=run)
thread.start()
thread.join()
print("zombies", leftovers.zombies())
"""
HELPER = r"""
import os
from pathlib import Path

def zombies():
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if state == "Z" and int(parent) == os.getpid():
            found.append(name)
    return found
"""


def processes_with(mark):
    """Processes that inherited the mark in their environment, or slept in the sandbox, whose environment is empty."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if mark.encode() in (process / "environ").read_bytes() or "sleep 6017.25" in command:
                found.append(command)
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_rewards_leave_no_process_no_zombie_and_no_file(tmp_path):
    try:
        Bubblewrap().close()
    except SandboxError as error:
        pytest.skip(str(error))
    (tmp_path / "leftovers.py").write_text(HELPER)
    (tmp_path / "run.py").write_text(PROGRAM)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    mark = f"leftover-{uuid.uuid4()}"
    result = subprocess.run(
        [sys.executable, "run.py"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary), "MARK": mark},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("math [1.0, 0.0, 0.0, 0.0]")
    assert lines[1] == "code [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]"
    assert lines[2:4] == lines[:2]
    assert lines[4] == "zombies []"
    assert processes_with(mark) == []
    assert list(temporary.iterdir()) == []
