import os
import pickle
import threading

import pytest

from acpo_trl.rewards.code import CodeReward
from acpo_trl.rewards.code_tests import CodeTests, is_same_output, judge, read_tests
from acpo_trl.sandbox import Bubblewrap, Limits, SandboxError

SQUARE = "```python\ndef square(x):\n    return x * x\n```"
TWICE = "```python\ndef square(x):\n    return x + x\n```"
ASSERTIONS = "assert square(3) == 9\nassert square(2) == 4\n"


@pytest.fixture(scope="module", autouse=True)
def _bubblewrap_works():
    try:
        Bubblewrap().close()
    except SandboxError as error:
        pytest.skip(str(error))


def reward_of(response, sandbox="bubblewrap", **columns):
    evidence = {}
    options = {name: columns.pop(name) for name in ("partial_credit", "tolerance", "limits") if name in columns}
    (score,) = CodeReward(sandbox, **options)(
        [response], log_extra=evidence.__setitem__, **{name: [value] for name, value in columns.items()}
    )
    return score, evidence["code_reason"][0].partition(":")[0]


def test_assertions():
    assert reward_of(SQUARE, test=ASSERTIONS) == (1.0, "pass")
    assert reward_of(TWICE, test=ASSERTIONS) == (0.0, "wrong_answer")


def test_a_list_of_assertions():
    assert reward_of(SQUARE, tests=ASSERTIONS.splitlines()) == (1.0, "pass")


def test_the_last_assistant_message_counts():
    messages = [{"role": "assistant", "content": SQUARE}, {"role": "user", "content": "?"}]
    assert reward_of([*messages, {"role": "assistant", "content": TWICE}], test=ASSERTIONS)[0] == 0.0
    assert reward_of(messages, test=ASSERTIONS)[0] == 1.0


def test_human_eval_style():
    columns = {
        "entry_point": "f",
        "starter_code": "from typing import List\ndef g(x): return -x\ndef f(x: List[int]) -> int:\n    '''Sum.'''\n",
        "test": "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert g(candidate([1])) == -1\n",
    }
    assert reward_of("    return sum(x)", **columns) == (1.0, "pass")
    assert reward_of("```python\ndef f(x: List[int]): return sum(x)\n```", **columns) == (1.0, "pass")
    assert reward_of("```python\ndef g(x): return -1\ndef f(x): return 3\n```", **columns) == (0.0, "wrong_answer")


@pytest.mark.parametrize("as_text", [False, True])
def test_input_and_output(as_text):
    tests = [{"input": "1 2", "output": "3"}, {"input": "5 5\n", "output": "10\n"}]
    tests = '[{"input": "1 2", "output": "3"}, {"input": "5 5", "output": "10"}]' if as_text else tests
    assert reward_of("```python\nprint(sum(map(int, input().split())))\n```", tests=tests) == (1.0, "pass")
    assert reward_of("```python\nprint(3)\n```", tests=tests) == (0.0, "wrong_answer")
    assert reward_of("```python\nprint(3)\n```", tests=tests, partial_credit=True) == (0.5, "wrong_answer")


def test_arguments_and_expected_result():
    tests = [{"args": [3], "expected": 9}, {"args": [2], "expected": 4}]
    assert reward_of(SQUARE, tests=tests, entry_point="square") == (1.0, "pass")
    assert reward_of(TWICE, tests=tests, entry_point="square", partial_credit=True) == (0.5, "wrong_answer")


def test_partial_credit_is_the_share_of_assertions():
    assert reward_of(TWICE, test=ASSERTIONS, partial_credit=True) == (0.5, "wrong_answer")


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"tests": []}, "no_tests"),
        ({"test": None}, "no_tests"),
        ({"test": ""}, "no_tests"),
        ({"tests": [{"stdin": "1"}]}, "no_tests"),
        ({"tests": [{"args": [1], "expected": 1}]}, "no_tests"),
        ({"tests": "[1"}, "no_tests"),
        ({"test": "def check(candidate): assert candidate(1)"}, "no_tests"),
        ({"test": "assert square(3 == 9"}, "bad_tests"),
        ({"test": "import nothing_of_that_name\nassert square(3) == 9"}, "bad_tests"),
        ({"test": "assert square(lambda: 1)"}, "unsupported"),
    ],
)
def test_tests_that_say_nothing_give_no_score(columns, reason):
    assert reward_of(SQUARE, **columns) == (None, reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("No code.", "no_code"),
        ("```python\nraise ValueError\n```", "runtime_error"),
        ("```python\ndef square(x): return 1 / 0\n```", "runtime_error"),
        ("```python\nwhile True: pass\n```", "timeout"),
        ("```python\ndef square(x):\n    while True: pass\n```", "timeout"),
        ("```python\ndef square(x): return b'x' * 2**40\n```", "runtime_error"),
        ("x" * 300_000, "too_long"),
    ],
)
def test_a_program_that_fails_earns_nothing(response, reason):
    assert reward_of(response, test=ASSERTIONS, limits={"wall_s": 0.5}) == (0.0, reason)


def test_columns_without_tests_are_refused():
    with pytest.raises(ValueError, match=r"no tests among the columns \['answer'\]"):
        CodeReward()(["x"], answer=["1"])


def test_check_wants_tests_and_a_sandbox_that_isolates(monkeypatch):
    CodeReward().check_columns(["prompt", "tests"])
    with pytest.raises(ValueError, match=r"no tests among the columns \['prompt'\]"):
        CodeReward().check_columns(["prompt"])
    monkeypatch.setattr("acpo_trl.rewards.code._sandboxes", {})
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
        CodeReward().check_columns(["test"])


@pytest.mark.parametrize(
    ("row", "program"),
    [
        ({"prompt": "def f(x):\n", "canonical_solution": "    return x\n"}, "def f(x):\n\n    return x\n"),
        ({"starter_code": "def f(x):", "prompt": [], "canonical_solution": "    return x"}, "def f(x):\n    return x"),
        ({"prompt": "Write f.", "canonical_solution": "def f(x): return x"}, "\ndef f(x): return x"),
        ({"prompt": "Write f.", "canonical_solution": "\ndef f(x): return x"}, "\n\ndef f(x): return x"),
    ],
)
def test_gold_of_a_row_is_its_solution_as_a_whole_program(row, program):
    assert CodeReward().gold(row) == f"```python\n{program}\n```"


@pytest.mark.parametrize(
    "row", [{"test": "assert f(1)"}, {"canonical_solution": None}, {"canonical_solution": "  return 1", "prompt": [{}]}]
)
def test_row_without_a_whole_solution_has_no_gold(row):
    assert CodeReward().gold(row) is None


def test_gold_of_a_row_earns_the_best_score():
    row = {
        "prompt": "def f(x: int) -> int:\n    '''Give twice x.'''\n",
        "entry_point": "f",
        "canonical_solution": "    return 2 * x\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    }
    assert CodeReward()([CodeReward().gold(row)], test=[row["test"]], entry_point=["f"]) == [1.0]


def test_missing_programs_and_unscored_rows_are_shares_apart_from_wrong_ones():
    logged = {}
    responses = [SQUARE, TWICE, "No code.", SQUARE]
    scores = CodeReward()(responses, test=[ASSERTIONS] * 3 + [None], log_metric=logged.__setitem__)
    assert scores == [1.0, 0.0, 0.0, None]
    assert logged == {"rewards/code/no_code": 0.25, "rewards/code/unscored": 0.25}


def test_a_sandbox_may_be_a_dotted_path_or_an_object():
    assert reward_of(SQUARE, "acpo_trl.sandbox.Bubblewrap", test=ASSERTIONS)[0] == 1.0
    sandbox = Bubblewrap()
    assert reward_of(SQUARE, sandbox, test=ASSERTIONS)[0] == 1.0
    sandbox.close()
    with pytest.raises(ValueError, match=r"sandbox 'bubblewarp'.*did you mean 'bubblewrap'"):
        reward_of(SQUARE, "bubblewarp", test=ASSERTIONS)


def test_the_process_sandbox_has_to_be_asked_for_by_name():
    assert reward_of(SQUARE, "process", test=ASSERTIONS) == (1.0, "pass")


class Failing:
    """A sandbox that fails for programs with a certain word."""

    def __init__(self, word):
        self.word, self.inner = word, Bubblewrap()

    def start(self, program, *arguments, **options):
        if self.word in program:
            raise SandboxError("no room")
        return self.inner.start(program, *arguments, **options)


def test_a_failure_of_the_sandbox_gives_no_score():
    sandbox = Failing("unlucky")
    scores = CodeReward(sandbox)([SQUARE, SQUARE.replace("x", "unlucky")], test=[ASSERTIONS] * 2)
    sandbox.inner.close()
    assert scores == [1.0, None]


def test_a_sandbox_that_fails_for_all_stops_the_run():
    sandbox = Failing("")
    sandbox.inner.close()
    with pytest.raises(SandboxError, match="no room"):
        CodeReward(sandbox)([SQUARE], test=[ASSERTIONS])


class Broken(Failing):
    """A sandbox in which no program finds what it needs."""

    def start(self, program, *arguments, **options):
        return self.inner.start("raise ImportError('nothing here')", *arguments, **options)


def test_tests_that_cannot_run_give_no_score():
    sandbox = Broken("")
    with pytest.raises(SandboxError, match=r"(?s)without a verdict.*nothing here"):
        judge(sandbox, "def square(x): return 9", read_tests({"test": ASSERTIONS}), Limits())
    sandbox.inner.close()


@pytest.mark.slow
def test_tests_that_get_what_they_cannot_digest_are_not_passed():
    program = "def square(x): return {i * (2**61 - 1) for i in range(10**5)}"
    verdict = judge(Bubblewrap(), program, read_tests({"test": ASSERTIONS}), Limits(wall_s=0.5, cpu_s=2))
    assert (verdict.score, verdict.outcome) == (0.0, "timeout")


def test_without_bwrap_the_run_stops(monkeypatch):
    monkeypatch.setattr("acpo_trl.rewards.code._sandboxes", {})
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
        CodeReward()([SQUARE], test=[ASSERTIONS])


@pytest.mark.slow
def test_scores_come_in_order_and_one_program_does_not_harm_another():
    hanging = "```python\nwhile True: pass\n```"
    responses = [SQUARE, hanging, TWICE, "```python\nimport os\nos._exit(0)\n```", SQUARE]
    reward = CodeReward(limits={"wall_s": 0.5}, num_workers=2)
    assert reward(responses, test=[ASSERTIONS] * 5) == [1.0, 0.0, 0.0, 0.0, 1.0]


def test_it_can_be_pickled_and_has_the_name_of_its_column():
    reward = pickle.loads(pickle.dumps(CodeReward(partial_credit=True)))
    assert reward.__name__ == "code"
    assert reward([SQUARE], test=[ASSERTIONS]) == [1.0]


def test_it_works_from_a_thread():
    scores = []
    thread = threading.Thread(target=lambda: scores.extend(CodeReward()([SQUARE], test=[ASSERTIONS])))
    thread.start()
    thread.join()
    assert scores == [1.0]


def test_nothing_stays_open():
    reward = CodeReward(num_workers=1)
    reward([SQUARE], test=[ASSERTIONS])
    before = len(os.listdir("/proc/self/fd"))
    reward([SQUARE, TWICE, "```python\nimport os; os._exit(1)\n```"], test=[ASSERTIONS] * 3)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("output", "expected", "tolerance", "same"),
    [
        ("1 2\n", "1  2", 0.0, True),
        ("1\n2\n", "12", 0.0, False),
        ("1", "1 2", 0.0, False),
        ("", "", 0.0, True),
        ("3.0000001", "3", 1e-6, True),
        ("3.0000001", "3", 0.0, False),
        ("nan", "0.5", 1e-6, False),
        ("inf", "0.5", 1e-6, False),
        ("x", "0.5", 1e-6, False),
    ],
)
def test_output_is_compared_word_by_word(output, expected, tolerance, same):
    assert is_same_output(output, expected, tolerance) is same


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"test": "import math\nassert math.isclose(g(f(1)), 2)"}, "g"),
        ({"test": "def check(candidate):\n    assert candidate(1)\ncheck(f)"}, "f"),
        ({"test": "assert f(1)", "entry_point": "F().f"}, "F().f"),
    ],
)
def test_a_missing_entry_point_is_what_the_tests_call(row, expected):
    assert read_tests(row).entry_point == expected


def test_a_row_of_a_table_may_have_empty_cells():
    row = {"tests": [{"input": "1", "output": "2", "args": None}], "test": None, "entry_point": None}
    assert read_tests(row) == CodeTests(cases=({"input": "1", "output": "2"},))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sandbox": 5}, TypeError, "sandbox 5: is a int; expected the name of a sandbox"),
        ({"partial_credit": "yes"}, TypeError, "partial_credit 'yes': is a str; expected True or False"),
        ({"tolerance": "x"}, TypeError, "tolerance 'x': is a str; expected a number"),
        ({"tolerance": -0.1}, ValueError, "tolerance -0.1: .*expected 0 or more"),
        ({"tolerance": float("nan")}, ValueError, "tolerance nan: .*expected 0 or more"),
        ({"num_workers": 0}, ValueError, "num_workers 0: .*expected 1 or more"),
        ({"num_workers": 1.5}, TypeError, "num_workers 1.5: is a float; expected a whole number"),
        ({"limits": 5}, TypeError, "limits 5: is a int; expected names and values"),
        ({"limits": {"walls": 1}}, ValueError, r"limits \['walls'\]: no such limits; expected some of \['wall_s', "),
        ({"limits": {"wall_s": "a"}}, TypeError, "limit wall_s 'a': is a str; expected a number of seconds"),
        ({"limits": {"wall_s": -1}}, ValueError, "limit wall_s -1: .*expected a number above 0"),
        ({"limits": {"wall_s": float("inf")}}, ValueError, "limit wall_s inf: .*expected a number above 0"),
        ({"limits": {"cpu_s": 0.5}}, TypeError, "limit cpu_s 0.5: is a float; expected a whole number"),
        ({"limits": {"memory_bytes": 0}}, ValueError, "limit memory_bytes 0: .*expected a number above 0"),
        ({"limits": {"max_processes": True}}, TypeError, "limit max_processes True: is a bool"),
    ],
)
def test_an_option_that_could_not_work_is_refused_at_once(options, error, message):
    with pytest.raises(error, match=message):
        CodeReward(**options)
