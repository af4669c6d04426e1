"""Verdicts on responses, through the rewards."""

import gzip
import json

import pytest
from shared import shared_file

from acpo_trl.evaluation.benchmarks import BENCHMARKS, Benchmark, Problem, benchmark_of
from acpo_trl.evaluation.checks import Checked, check_responses, vote_classes
from acpo_trl.evaluation.examples import GSM8K_EXAMPLES, MATH_EXAMPLES
from acpo_trl.evaluation.load import load_problems
from acpo_trl.rewards.extract import last_box
from acpo_trl.sandbox import SandboxError

MATH = Benchmark("mine")
CODE = Benchmark("mine", check="code")
TWO = Problem("two", "1+1?", {"answer": "2"})
ADD = Problem("add", "Add.", {"tests": ["assert add(1, 2) == 3"], "entry_point": "add", "starter_code": ""})


def labelled(name):
    with gzip.open(shared_file(f"data/labelled/{name}.jsonl.gz"), "rt") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (r"so \boxed{2}.", Checked(1.0, "identical", "2")),
        (r"so \boxed{\frac{4}{2}}", Checked(1.0, "equal", r"\frac{4}{2}")),
        (r"so \boxed{3}", Checked(0.0, "different", "3")),
        ("no idea", Checked(0.0, "no answer", None)),
        (r"<think>\boxed{2}</think> so \boxed{3}", Checked(0.0, "different", "3")),
        (r"<think>\boxed{2}", Checked(0.0, "no answer", None)),
        (r"\boxed{2}</think>", Checked(0.0, "no answer", None)),
    ],
)
def test_math_verdict_answer_and_reason(response, expected):
    assert check_responses(MATH, [(TWO, response)]) == [expected]


def test_response_that_never_leaves_the_thinking_block_of_its_prompt_has_no_answer():
    assert check_responses(MATH, [(TWO, r"\boxed{2}")], is_thinking=True)[0].score == 0.0
    assert check_responses(MATH, [(TWO, r"hm </think> \boxed{2}")], is_thinking=True)[0].score == 1.0


def test_batch_keeps_its_order_and_a_gold_answer_that_cannot_be_read_is_no_verdict():
    unreadable = Problem("x", "?", {"answer": "whatever the reader of this likes best of all"})
    found = check_responses(MATH, [(TWO, r"\boxed{3}"), (unreadable, r"\boxed{3}"), (TWO, r"\boxed{2}")])
    assert [each.score for each in found] == [0.0, None, 1.0] and found[1].reason == "gold is no answer"


def test_options_of_a_benchmark_reach_the_check():
    problem = Problem("g", "g?", {"answer": "9.81"})
    assert check_responses(MATH, [(problem, r"\boxed{9.8}")])[0].score == 0.0
    assert check_responses(BENCHMARKS["minerva"], [(problem, r"\boxed{9.8}")])[0].score == 1.0


def test_code_verdict_program_and_reason():
    right, wrong, none = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a\n", "I cannot."
    found = check_responses(CODE, [(ADD, f"```python\n{code}```") for code in (right, wrong)] + [(ADD, none)])
    assert found[0] == Checked(1.0, "pass", right)
    assert found[1].score == 0.0 and found[1].reason.startswith("wrong_answer") and found[1].answer == wrong
    assert found[2] == Checked(0.0, "no_code", None)


def test_tests_that_fail_by_themselves_are_no_verdict():
    broken = Problem("b", "?", {"tests": ["1 / 0"], "entry_point": "add", "starter_code": ""})
    found = check_responses(CODE, [(broken, "```python\ndef add(a, b): return a + b\n```")])
    assert found[0].score is None


class BrokenSandbox:
    """Fails for every program."""

    def start(self, program, limits, **streams):
        raise SandboxError("gone")

    def close(self):
        pass


def test_sandbox_that_fails_for_all_stops_the_evaluation():
    benchmark = Benchmark("mine", check="code", options={"sandbox": BrokenSandbox()})
    with pytest.raises(SandboxError, match="failed for every completion: gone"):
        check_responses(benchmark, [(ADD, "```python\ndef add(a, b): return a + b\n```")])


def test_body_that_continues_the_prompt_of_humaneval_is_a_program():
    prompt = 'from typing import List\n\n\ndef first(xs: List[int]) -> int:\n    """First."""\n'
    row = {"tests": "def check(candidate):\n    assert candidate([4, 5]) == 4\n", "entry_point": "first"}
    problem = Problem("h", prompt, {**row, "starter_code": prompt})
    assert check_responses(BENCHMARKS["humaneval"], [(problem, "    return xs[0]\n")])[0].score == 1.0


@pytest.mark.parametrize(
    ("benchmark", "error", "message"),
    [
        (Benchmark("mine", check="maths"), ValueError, "check 'maths'.*did you mean 'math'"),
        (Benchmark("mine", options={"units": "no"}), ValueError, "units"),
        (Benchmark("mine", options={"unit": "strict"}), TypeError, "unit"),
        (Benchmark("mine", check="code", options={"sandbox": "bubble"}), ValueError, "sandbox 'bubble'"),
    ],
)
def test_check_without_responses_finds_out_that_it_could_not_work(benchmark, error, message):
    with pytest.raises(error, match=message):
        check_responses(benchmark, [])


def even(responses, **options):
    return [Checked(float(len(text) % 2 == 0), "", text) for _, text in responses]


def test_check_of_ones_own_is_a_dotted_path():
    benchmark = Benchmark("mine", check="test_checks.even")
    assert [each.score for each in check_responses(benchmark, [(TWO, "ab"), (TWO, "abc")])] == [1.0, 0.0]


def test_equal_answers_share_a_vote():
    answers = [r"\frac12", "3", "0.5", None, "3", r"50\%", "x", "3.0"]
    assert vote_classes(MATH, answers) == [r"\frac12", "3", r"\frac12", None, "3", r"\frac12", "x", "3"]
    assert vote_classes(CODE, ["0.5", "1/2", "0.5", None]) == ["0.5", "1/2", "0.5", None]
    assert vote_classes(MATH, [None, None]) == [None, None] and vote_classes(MATH, []) == []


def test_worked_examples_are_right():
    golds = {"72": "12", "dice": r"\frac{1}{9}", "real": "2, 3", "triangle": "12"}
    golds |= {"Tom": "10", "Ann": "180", "tank": "5", "shirt": "60"}
    for example in (*GSM8K_EXAMPLES, *MATH_EXAMPLES):
        (gold,) = [gold for word, gold in golds.items() if word in example["problem"]]
        assert last_box(example["response"]) == gold


def pro_solution(row):
    return "\n".join(row[name] for name in ("raw_problem", "raw_solution", "new_problem", "new_solution"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "solution", "count"),
    [
        ("humaneval", lambda row: row["prompt"] + row["canonical_solution"], 82),
        ("humaneval_pro", pro_solution, 82),
        ("mbpp", lambda row: row["code"], 397),
        ("mbpp_pro", pro_solution, 152),
    ],
)
def test_reference_solutions_are_all_right(name, solution, count):
    file = shared_file(f"data/benchmarks/{name}.jsonl.gz")
    benchmark = benchmark_of({"name": name, "source": str(file)})
    problems = load_problems(benchmark).problems
    found = check_responses(benchmark, [(problem, f"```python\n{solution(problem.row)}\n```") for problem in problems])
    assert [each.score for each in found] == [1.0] * count


def test_published_math_responses_get_their_labels():
    rows = labelled("math_responses")
    responses = [(Problem(row["id"], "", {"answer": row["gold"]}), row["response"] or "") for row in rows]
    found = check_responses(MATH, responses)
    agreed = [each.score == float(row["is_correct"]) for row, each in zip(rows, found, strict=True)]
    boxed = [same for row, same in zip(rows, agreed, strict=True) if r"\boxed" in (row["response"] or "")]
    assert (sum(boxed), len(boxed)) == (405, 408)  # docs/concepts/rewards.md explains the other 3
    assert (sum(agreed), len(agreed)) == (1210, 1213)


@pytest.mark.slow
def test_published_programs_get_their_labels():
    with gzip.open(shared_file("data/benchmarks/stdin_stdout.jsonl.gz"), "rt") as file:
        pairs = {row["id"]: row["tests"] for row in map(json.loads, file)}
    rows = [row for row in labelled("code_responses") if row["passed"] == row["rerun_passed"]]
    responses = []
    for row in rows:
        columns = {"tests": row["test"], "entry_point": row["entry_point"], "starter_code": ""}
        if row["test"] is None:
            columns["tests"] = pairs[row["task_id"]]
        else:
            columns["starter_code"] = f"from typing import *\n{row['prompt']}"
        responses.append((Problem(row["id"], "", columns), f"```python\n{row['code']}\n```"))
    found = check_responses(CODE, responses)
    agreed = [each.score == float(row["passed"]) for row, each in zip(rows, found, strict=True)]
    assert (
        len(agreed) == 1154 and sum(agreed) >= 0.99 * 1154
    )  # 1147 on an idle machine; docs/concepts/sandbox.md explains the other 7
