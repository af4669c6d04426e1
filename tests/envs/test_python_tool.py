"""The environment `python_tool`, by itself and in TRL's tool loop."""

import functools
import json
import pickle
import time

import pytest

from acpo_trl.envs import PythonTool, call_message, play
from acpo_trl.rollouts import view_turns
from acpo_trl.sandbox import Bubblewrap, SandboxError

ROW = {"prompt": [{"role": "user", "content": "Add the numbers from 1 to 100."}], "solution": "5050"}
SUM = call_message("python", code="print(sum(range(101)))")


@pytest.fixture(scope="module")
def sandbox():
    try:
        sandbox = Bubblewrap()
    except SandboxError as error:
        pytest.skip(str(error))
    yield sandbox
    sandbox.close()


@pytest.fixture
def tool(sandbox):
    environment = PythonTool(sandbox, {"wall_s": 10.0, "memory_bytes": 2**28}, max_characters=200)
    environment.reset(**ROW)
    return environment


def say(text):
    return {"role": "assistant", "content": text}


def judge(environment, *messages, row=ROW):
    return environment._score(view_turns(play(environment, row, messages), [], len(messages)))


def test_computing_and_answering_solves_the_task(tool):
    first, last = judge(tool, SUM, say(r"\boxed{5050}"))
    assert first == ({"outcome": None, "format": 0.0, "cost": -0.1, "process": None}, "0")
    assert last == ({"outcome": 1.0, "format": 0.0, "cost": 0.0, "process": None}, "1")


def test_what_the_tool_printed_is_not_the_answer(tool):
    assert [score.rewards["outcome"] for score in judge(tool, SUM, say("Done."))] == [None, 0.0]
    assert [score.rewards["outcome"] for score in judge(tool, SUM)] == [0.0]


def test_a_gold_answer_that_nobody_can_read_scores_nobody(tool):
    assert judge(tool, say(r"\boxed{5}"), row={"solution": ""})[0].rewards["outcome"] is None


def test_another_reward_may_judge_the_answer(sandbox):
    tool = PythonTool(sandbox, outcome="exact_match")
    assert (
        judge(tool, say("<answer>Old Town</answer>"), row={"golden_answers": ["old town"]})[0].rewards["outcome"] == 1
    )


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("print(1)\nprint(2)", "1\n2"),
        ("x = 1", "[no output]"),
        ("print(1)\n1 / 0", '1\n  File "program.py", line 2, in <module>\nZeroDivisionError: division by zero'),
        ("import os; os._exit(3)", "[no output]"),
        ("x = bytearray(2**29)", '  File "program.py", line 1, in <module>\nMemoryError'),
    ],
    ids=["output", "silence", "exception", "exit", "memory"],
)
def test_a_program_is_reported(tool, code, result):
    assert tool.python(code) == result


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("open('/usr/new', 'w')", "OSError: [Errno 30] Read-only file system: '/usr/new'"),
        ("open('/etc/passwd')", "FileNotFoundError: [Errno 2] No such file or directory: '/etc/passwd'"),
        ("import socket; socket.create_connection(('1.1.1.1', 53))", "Network is unreachable"),
        ("\ud800", "UnicodeEncodeError"),
    ],
    ids=["write", "read", "network", "surrogate"],
)
def test_an_attack_ends_in_an_error(tool, code, error):
    assert error in tool.python(code)


def test_a_program_that_forks_without_end_meets_a_limit(tool):
    result = tool.python("import os, time\nwhile os.fork(): pass\ntime.sleep(60)")
    assert "Resource temporarily unavailable" in result or result == "[memory limit]"


@pytest.mark.slow
def test_a_program_that_does_not_end_is_stopped(sandbox):
    tool = PythonTool(sandbox, {"wall_s": 1.0})
    tool.reset(**ROW)
    start = time.monotonic()
    assert tool.python("print('before', flush=True)\nwhile True: pass") == "before\n[time limit]"
    assert time.monotonic() - start < 5


def test_output_and_errors_are_shortened(tool):
    assert tool.python("print('x' * 10**5)") == f"{'x' * 200}\n[99801 characters more]"
    report = tool.python("def f(n):\n    f(n + 1)\nf(0)")
    assert report.startswith("[...]")
    assert report.endswith("RecursionError: maximum recursion depth exceeded")
    assert len(report) == 205


def test_each_call_starts_afresh(tool):
    assert tool.python("open('note', 'w').write('hi'); x = 1") == "[no output]"
    assert "NameError" in tool.python("print(x)")
    assert tool.python("import os; print(os.listdir())") == "[]"


def test_without_a_sandbox_that_isolates_there_is_no_environment(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SandboxError, match="there is no program 'bwrap'"):
        PythonTool("acpo_trl.sandbox.Bubblewrap")


class Broken:
    def start(self, *args, **kwargs):
        raise SandboxError("out of order")


def test_an_episode_in_which_the_sandbox_failed_is_not_judged_and_the_next_one_is():
    tool = PythonTool(Broken())
    with pytest.raises(SandboxError, match="out of order"):
        judge(tool, SUM, say(r"\boxed{5050}"))
    assert judge(tool, say(r"\boxed{5050}"))[0].rewards["outcome"] == 1.0


def test_reset_leaves_nothing_of_the_episode_before(sandbox):
    used, fresh = PythonTool(sandbox), PythonTool(sandbox)
    messages = [SUM, say(r"\boxed{5050}")]
    judge(used, SUM, SUM, say("x"), row={"solution": "1", "extra": 2})
    assert judge(used, *messages) == judge(fresh, *messages)
    assert {**vars(used), "_outcome": 0} == {**vars(fresh), "_outcome": 0}


def test_a_factory_with_options_can_be_pickled(sandbox):
    factory = pickle.loads(pickle.dumps(functools.partial(PythonTool, sandbox="bubblewrap", call_cost=0.5)))
    assert judge(factory(), SUM)[0].rewards["cost"] == -0.5


def text_of(*codes, name="python", key="code"):
    calls = [json.dumps({"name": name, "arguments": {key: code}}) for code in codes]
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)


@pytest.fixture(scope="module")
def played(play_scripts, sandbox):
    scripts = {
        "expert": [text_of("print(sum(range(101)))"), r"\boxed{5050}"],
        "parallel": [text_of("print(1)", "1 / 0", "print(3)"), r"\boxed{6}"],
        "wrong_name": [text_of("1", name="bash"), r"\boxed{5050}"],
        "wrong_argument": [text_of("1", key="program"), r"\boxed{5050}"],
        "not_text": [text_of(5), r"\boxed{5050}"],
        "broken_json": [text_of("1").replace('"}', '"'), "unused"],
        "no_call": [r"\boxed{5050}"],
    }
    factory = functools.partial(PythonTool, sandbox=sandbox)
    return play_scripts(factory, {name: (ROW, texts) for name, texts in scripts.items()})


def results(episode):
    return [message["content"] for message in episode.messages if message["role"] == "tool"]


def column(episode, kind):
    return [score.rewards[kind] for score in episode.scores]


def test_the_loop_of_trl_runs_programs_and_the_answer_is_judged(played):
    assert results(played["expert"]) == ["5050"]
    assert column(played["expert"], "outcome") == [None, 1.0]
    assert column(played["no_call"], "outcome") == [1.0]
    assert column(played["no_call"], "cost") == [0.0]


def test_each_of_several_calls_has_its_result_and_its_cost(played):
    first, second, third = results(played["parallel"])
    assert (first, third) == ("1", "3")
    assert second.endswith("ZeroDivisionError: division by zero")
    assert column(played["parallel"], "cost") == [pytest.approx(-0.3), 0.0]
    assert column(played["parallel"], "outcome") == [None, 0.0]


@pytest.mark.parametrize("name", ["wrong_name", "wrong_argument", "not_text"])
def test_a_wrong_call_breaks_the_format_and_the_episode_goes_on(played, name):
    assert results(played[name])[0].startswith("{'error': ")
    assert column(played[name], "format") == [-1.0, 0.0]
    assert column(played[name], "outcome") == [None, 1.0]
    assert played[name].scores[0].rewards["cost"] == -0.1


def test_broken_json_ends_the_episode_with_broken_format(played):
    (score,) = played["broken_json"].scores
    assert score.rewards == {"outcome": 0.0, "format": -1.0, "cost": -0.1, "process": None}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_characters": None}, TypeError, "max_characters None"),
        ({"max_characters": 0}, ValueError, "max_characters 0"),
        ({"call_cost": float("inf")}, ValueError, "call_cost inf: is out of range"),
        ({"limits": 5}, TypeError, "limits 5: are none; expected a dictionary"),
        ({"sandbox": 5}, TypeError, "sandbox 5: is none; expected one of"),
        ({"outcome": 5}, TypeError, "outcome 5: is a int, which judges nothing"),
        ({"outcome": "maths"}, ValueError, "outcome 'maths'.*math"),
    ],
)
def test_options_that_cannot_work_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        PythonTool(**{"sandbox": Broken(), **options})


def test_a_dataset_without_a_column_of_the_outcome_is_refused():
    PythonTool(Broken())._check_columns(["prompt", "solution"])
    with pytest.raises(ValueError, match=r"reward 'math'.*columns"):
        PythonTool(Broken())._check_columns(["prompt", "target"])
