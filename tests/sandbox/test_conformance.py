"""What any sandbox has to do. A new one becomes a parameter of the fixture `sandbox`."""

import os
import socket
import threading
import time

import pytest

from acpo_trl.sandbox import Limits, run
from acpo_trl.sandbox.base import MemoryFile

SHORT = Limits(wall_s=1.0)


def test_gives_output_errors_and_exit_code(sandbox):
    result = run(sandbox, "import sys; print(input()); print('bad', file=sys.stderr); sys.exit(3)", b"line\nmore\n")
    assert (result.output, result.errors) == (b"line\n", b"bad\n")
    assert (result.exit.code, result.exit.reason) == (3, "")
    assert not result.is_ok


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("print(1)", 0),
        ("raise ValueError('x')", 1),
        ("this is no Python", 1),
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit('message')", 1),
        ("exit(7)", 7),
        ("import os; os._exit(5)", 5),
        ("import sys; sys.stdout.close()", 0),
    ],
)
def test_ends_like_an_ordinary_interpreter(sandbox, program, code):
    assert run(sandbox, program).exit.code == code


def test_an_uncaught_error_is_told(sandbox):
    assert b"ZeroDivisionError: division by zero" in run(sandbox, "1 / 0").errors


def test_the_program_is_the_main_module(sandbox):
    program = "import sys\nif __name__ == '__main__': print(sys.modules['__main__'].__dict__ is globals())"
    assert run(sandbox, program).output == b"True\n"


def test_output_is_utf_8_whatever_the_locale(sandbox):
    assert run(sandbox, "print('süß 漢字 🎉')").output.decode() == "süß 漢字 🎉\n"


def test_any_bytes_can_be_read_and_written(sandbox):
    given = bytes(range(256)) * 300
    assert run(sandbox, "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())", given).output == given


def test_input_ends(sandbox):
    assert run(sandbox, "print(list(open(0)))", b"a\nb\n").output == b"['a\\n', 'b\\n']\n"


def test_threads_and_exit_functions_finish(sandbox):
    program = (
        "import atexit, threading, time\natexit.register(print, 'last')\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start()\nprint('main')"
    )
    assert run(sandbox, program).output == b"main\nthread\nlast\n"


def test_a_program_can_start_processes(sandbox):
    program = (
        "import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout)"
    )
    assert run(sandbox, program).output.split() == [b"42"]


def test_deep_recursion_is_possible(sandbox):
    program = "import sys; sys.setrecursionlimit(30000)\nf = lambda n: n and 1 + f(n - 1)\nprint(f(20000))"
    assert run(sandbox, program).output == b"20000\n"


def test_starts_in_an_empty_writable_directory_each_time(sandbox):
    program = "import os; print(os.listdir()); open('left', 'w').write('x'); os.mkdir('folder')"
    assert [run(sandbox, program).output for _ in range(2)] == [b"[]\n", b"[]\n"]


def test_the_environment_of_the_caller_is_not_visible(sandbox, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert b"secret" not in run(sandbox, "import os; print(dict(os.environ))").output


def test_hashes_are_the_same_in_every_run(sandbox):
    assert run(sandbox, "print(hash('x'))").output == run(sandbox, "print(hash('x'))").output


def test_random_numbers_are_not(sandbox):
    program = "import random; print(random.random())"
    assert run(sandbox, program).output != run(sandbox, program).output


@pytest.mark.slow
def test_a_sleeping_program_is_ended_at_the_wall_limit(sandbox):
    started = time.monotonic()
    result = run(sandbox, "print('before', flush=True)\nimport time; time.sleep(99)", limits=SHORT)
    assert (result.exit.reason, result.output) == ("time limit", b"before\n")
    assert 0.9 < time.monotonic() - started < 4.0


@pytest.mark.slow
def test_a_program_is_ended_at_the_cpu_limit(sandbox):
    result = run(sandbox, "while True: pass", limits=Limits(cpu_s=1, wall_s=20.0))
    assert result.exit.reason == "time limit"
    assert result.exit.seconds < 15.0


def test_too_much_memory_is_an_error_of_the_program(sandbox):
    result = run(sandbox, "x = bytearray(2**31)", limits=Limits(memory_bytes=2**28))
    assert result.exit.code == 1
    assert b"MemoryError" in result.errors


def test_files_and_output_are_bounded(sandbox):
    limits = Limits(max_file_bytes=10**6, max_output_bytes=10**5)
    assert b"File too large" in run(sandbox, "open('f', 'wb').write(b'x' * 10**7)", limits=limits).errors
    flood = run(sandbox, "import os\nwhile True: os.write(1, b'x' * 10**5)", limits=limits)
    assert flood.exit.reason == "output limit"
    assert len(flood.output) == 10**5


def test_a_child_process_ends_with_the_program(sandbox):
    program = "import os, time\npid = os.fork()\nif pid == 0: time.sleep(60); os._exit(0)\nprint('parent')"
    started = time.monotonic()
    assert run(sandbox, program).output == b"parent\n"
    assert time.monotonic() - started < 5.0


def test_a_program_can_be_killed(sandbox):
    with MemoryFile() as output:
        streams = {"stdin": output.fd, "stdout": output.fd, "stderr": output.fd}
        execution = sandbox.start("import time; time.sleep(60)", Limits(wall_s=30.0), **streams)
        execution.kill()
        end = execution.wait()
    assert end.reason == "killed"
    assert end.seconds < 5.0


def test_streams_can_be_a_conversation(sandbox):
    ours, theirs = socket.socketpair()
    ours.settimeout(10.0)
    with ours, MemoryFile() as errors:
        with theirs:
            streams = {"stdin": theirs.fileno(), "stdout": theirs.fileno(), "stderr": errors.fd}
            execution = sandbox.start("while True: print(int(input()) + 1, flush=True)", Limits(), **streams)
        for number in (1, 41):
            ours.sendall(b"%d\n" % number)
            assert ours.recv(100) == b"%d\n" % (number + 1)
        ours.shutdown(socket.SHUT_WR)
        assert execution.wait().code == 1


def test_modules_for_tests_can_be_imported(sandbox):
    assert run(sandbox, "from inside.callee import serve; print(serve.__name__)").output == b"serve\n"


def test_several_threads_get_each_their_own_result(sandbox):
    results = {}

    def work(number):
        results[number] = run(sandbox, f"import time; time.sleep(0.05); print({number})").output

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: b"%d\n" % number for number in range(4)}


def test_nothing_is_left_open(sandbox):
    run(sandbox, "print(1)")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        run(sandbox, "import nothing_of_that_name")
    assert len(os.listdir("/proc/self/fd")) == before
