import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from acpo_trl.sandbox import Bubblewrap, Limits, SandboxError, bwrap, run
from acpo_trl.sandbox.inside import kernel

TREE = Limits(wall_s=5.0, memory_bytes=2**28)


def has_ended(pid, within_s=3.0):
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True  # of a parent that is none of ours, and has not looked yet
        time.sleep(0.02)
    return False


def test_without_bwrap_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match=r"no program 'bwrap'.*apt-get install bubblewrap"):
        Bubblewrap()


def test_a_bwrap_that_fails_is_an_error_with_its_message(bubblewrap, monkeypatch):
    monkeypatch.setattr(bwrap, "options", lambda packages: ["--no-such-option"])
    with pytest.raises(SandboxError, match="no-such-option"):
        Bubblewrap()


def test_a_bwrap_that_does_not_isolate_is_refused(bubblewrap, monkeypatch):
    options = [option for option in bwrap.options([]) if option != "--unshare-net"]
    monkeypatch.setattr(bwrap, "options", lambda packages: options)
    with pytest.raises(SandboxError, match="does not isolate here"):
        Bubblewrap()


def test_the_program_is_alone_without_rights(bubblewrap):
    program = (
        "import os\nprint([p for p in os.listdir('/proc') if p.isdigit()], os.getuid(), os.listdir('/'))\n"
        "rights = ('Cap', 'NoNew', 'Seccomp:')\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(rights)])"
    )
    first, second = run(bubblewrap, program).output.decode().splitlines()
    assert first.startswith("['1'] 65534 ")
    assert "'home'" not in first and "'etc'" not in first
    none = "0" * 16
    assert second.startswith(f"['{none}', '{none}', '{none}', '")
    assert second.endswith(f"'{none}', '1', '2']")


def test_a_process_that_leaves_its_session_ends_too(bubblewrap):
    program = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n"
        "    os._exit(0)\ntime.sleep(0.1)"
    )
    run(bubblewrap, program)
    assert not children_of_servers()


def children_of_servers():
    """Give the processes below those of the sandboxes of this process."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    bwraps = [pid for pid, parent in parents.items() if parent == os.getpid()]
    servers = [pid for pid, parent in parents.items() if parent in bwraps]
    return [pid for pid, parent in parents.items() if parent in servers]


def test_packages_can_be_lent(bubblewrap, tmp_path):
    (tmp_path / "lent_module.py").write_text("x = 42")
    tmp_path.chmod(0o755)  # root's programs run as another user
    sandbox = Bubblewrap([str(tmp_path)])
    assert run(sandbox, "import lent_module; print(lent_module.x)").output == b"42\n"
    assert run(sandbox, f"open({str(tmp_path / 'new')!r}, 'w')").exit.code == 1
    sandbox.close()


def test_standard_input_can_be_opened_by_path(bubblewrap):
    assert run(bubblewrap, "print(open('/dev/stdin').read())", b"ab").output == b"ab\n"


def test_memory_is_bounded_for_all_processes_together(bubblewrap):
    program = (
        "import os, time\nfor i in range(8):\n    if os.fork() == 0:\n        x = b'x' * (100 * 2**20)\n"
        "        time.sleep(60)\ntime.sleep(60)"
    )
    assert run(bubblewrap, program, limits=TREE).exit.reason == "memory limit"


def test_processes_are_bounded(bubblewrap):
    program = (
        "import os, time\nn = 0\ntry:\n    while True:\n        if os.fork() == 0: time.sleep(60)\n        n += 1\n"
        "except OSError: print(n)"
    )
    assert run(bubblewrap, program, limits=Limits(max_processes=10)).output == b"9\n"


def test_disk_is_bounded(bubblewrap):
    program = (
        "n = 0\ntry:\n    while n < 99: open(f'f{n}', 'wb').write(b'x' * 2**20); n += 1\nexcept OSError: print(n <= 8)"
    )
    assert run(bubblewrap, program, limits=Limits(max_disk_bytes=8 * 2**20)).output == b"True\n"


def test_a_server_outlives_the_thread_that_started_it():
    sandbox = Bubblewrap()
    sandbox.close()
    thread = threading.Thread(target=run, args=(sandbox, "print(1)"))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert sandbox._idle[0].process.poll() is None
    assert run(sandbox, "print(2)").output == b"2\n"
    sandbox.close()


def test_a_lost_server_is_replaced():
    sandbox = Bubblewrap()
    lost = sandbox._idle[0]
    os.kill(lost.pid, signal.SIGKILL)
    lost.process.wait(5.0)
    assert run(sandbox, "print(1)").output == b"1\n"
    sandbox.close()


@pytest.mark.slow
def test_a_server_lost_while_a_program_runs_is_an_error_of_the_sandbox():
    sandbox = Bubblewrap()
    pid = sandbox._idle[0].pid
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(SandboxError, match="does not answer"):
        run(sandbox, "import time; time.sleep(30)")
    assert run(sandbox, "print(1)").output == b"1\n"
    sandbox.close()


def test_close_leaves_no_process_and_no_zombie():
    sandbox = Bubblewrap()
    run(sandbox, "print(1)")
    server = sandbox._idle[0]
    sandbox.close()
    assert server.process.returncode == 0
    assert has_ended(server.pid)
    assert run(sandbox, "print(1)").output == b"1\n"  # and it works again
    sandbox.close()


def test_a_killed_caller_leaves_no_process():
    program = (
        "import time\nfrom acpo_trl.sandbox import Bubblewrap, run\ns = Bubblewrap()\n"
        "print(s._idle[0].pid, flush=True)\nrun(s, 'import time; time.sleep(60)')"
    )
    caller = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    line = caller.stdout.readline()
    if not line:
        pytest.skip("bubblewrap does not work here")
    time.sleep(0.2)
    caller.kill()
    caller.wait()
    caller.stdout.close()
    assert has_ended(int(line))


def test_a_forked_caller_has_servers_of_its_own(bubblewrap):
    run(bubblewrap, "print(1)")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = int(run(bubblewrap, "print(2)").output != b"2\n")
            bubblewrap.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert run(bubblewrap, "print(3)").output == b"3\n"


def test_an_unknown_processor_is_refused():
    with pytest.raises(OSError, match="'riscv64': its system call numbers are unknown"):
        kernel.filter_program("riscv64")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_what_it_lists_and_nothing_else(machine):
    column = ("x86_64", "aarch64").index(machine)
    architecture = (0xC000003E, 0xC00000B7)[column]
    program = kernel.filter_program(machine)
    refused = {number for number in range(500) if verdict_of(program, architecture, number) != 0x7FFF0000}
    assert refused == {numbers[column] for numbers in kernel.DENIED.values()} | {435}
    clone = (56, 220)[column]
    assert verdict_of(program, architecture, clone, 0x10000011) == 0x00050001  # CLONE_NEWUSER
    assert verdict_of(program, architecture, clone, 0x003D0F00) == 0x7FFF0000  # what a thread asks for
    assert verdict_of(program, 0x40000003, 1) == 0x00050001  # a 32-bit call


def verdict_of(program, architecture, number, argument=0):
    """Run the filter as the kernel does."""
    data = struct.pack("=IIQ", number, architecture, 0) + struct.pack("=Q", argument)
    steps = list(struct.iter_unpack("HBBI", program))
    place, register = 0, 0
    while True:
        code, yes, no, value = steps[place]
        place += 1
        if code == 0x06:
            return value
        if code == 0x20:
            register = struct.unpack_from("=I", data, value)[0]
        else:
            held = {0x15: register == value, 0x35: register >= value, 0x45: bool(register & value)}[code]
            place += yes if held else no
