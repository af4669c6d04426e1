"""What tests can do with a program that is another process; here both sides are in one, without a sandbox."""

import json
import types

import pytest

from acpo_trl.sandbox.inside.callee import Desk
from acpo_trl.sandbox.inside.grader import Grading, is_same
from acpo_trl.sandbox.inside.remote import Program, ProgramEnded, Unsupported


class Direct:
    """A channel to a desk in the same process."""

    def __init__(self, source):
        self.replies = [{"value": None}]
        module = types.ModuleType("solution")
        exec(source, module.__dict__)
        self.desk = Desk(module)

    def send(self, request):
        self.replies.append(self.desk.answer(json.loads(json.dumps(request))))

    def receive(self):
        return json.loads(json.dumps(self.replies.pop(0)))


def program_with(source, allow_objects=False):
    program = Program(Direct(source))
    program.wait_until_ready()
    program.allow_objects = allow_objects
    return program


def verdict_of(source, test="", **task):
    return Grading(Direct(source), test=test, **task).verdict()


def test_calls_and_results_cross():
    f = program_with("def f(a, *b, c=0, **d): return a, b, c, d").name("f")
    assert f(1, [2], c={3}, e=None) == (1, ([2],), {3}, {"e": None})


@pytest.mark.parametrize("kind", [ValueError, KeyError, ZeroDivisionError, AssertionError, RecursionError])
def test_built_in_errors_arrive_as_what_they_are(kind):
    with pytest.raises(kind, match="why"):
        program_with(f"def f(): raise {kind.__name__}('why')").name("f")()


def test_an_own_error_arrives_as_its_built_in_base():
    with pytest.raises(LookupError, match="why"):
        program_with("class E(LookupError): pass\ndef f(): raise E('why')").name("f")()


@pytest.mark.parametrize("kind", ["SystemExit", "KeyboardInterrupt", "StopIteration", "GeneratorExit"])
def test_errors_that_steer_the_tests_arrive_as_runtime_errors(kind):
    with pytest.raises(RuntimeError, match=kind):
        program_with(f"def f(): raise {kind}").name("f")()


def test_generators_and_views_can_be_read():
    source = "def g(n): yield from range(n)\ndef v(): return {1: 2, 3: 4}.keys()\ndef m(): return map(str, [1, 2])"
    program = program_with(source)
    assert list(program.name("g")(3)) == [0, 1, 2]
    assert sorted(program.name("v")()) == [1, 3]
    assert set(program.name("m")()) == {"1", "2"}
    assert program.name("g")(3) != [0, 1, 2]


def test_a_function_without_result_may_change_its_arguments():
    f = program_with("def f(a, b, c):\n    a.sort(); b['x'] = 1; c.add(2)").name("f")
    numbers, table, group = [3, 1], {}, {1}
    assert f(numbers, table, group) is None
    assert (numbers, table, group) == ([1, 3], {"x": 1}, {1, 2})


def test_a_function_with_a_result_does_not_change_its_arguments_for_the_tests():
    f = program_with("def f(a):\n    a.clear()\n    return []").name("f")
    numbers = [3, 1]
    assert f(numbers) == []
    assert numbers == [3, 1]


def test_objects_of_own_classes_are_refused_where_the_tests_use_none():
    with pytest.raises(TypeError, match="not plain data"):
        program_with("class E: pass\ndef f(): return E()").name("f")()


def test_classes_of_the_program_can_be_used():
    source = "class Node:\n    def __init__(self, value): self.value, self.next = value, None\n    def last(self):\n"
    source += "        return self if self.next is None else self.next.last()\n    def __len__(self): return 7\n"
    node = program_with(source, allow_objects=True).name("Node")
    first = node(1)
    first.next = node(2)
    assert (first.next.value, first.last().value, len(first), first.next.next) == (2, 2, 7, None)
    assert first.last() is first.next
    assert node(1) != node(1)
    with pytest.raises(AttributeError):
        first.missing  # noqa: B018


def test_comparisons_and_arithmetic_never_ask_the_program():
    source = "class E:\n    def __eq__(s, o): return True\n    def __sub__(s, o): return 0\n    __rsub__ = __sub__\n"
    source += "    def __lt__(s, o): return True\n    __contains__ = __lt__\n    def __bool__(s): return False\n"
    thing = program_with(source, allow_objects=True).name("E")()
    assert thing != 9
    assert bool(thing)
    for attempt in (lambda: thing - 1, lambda: 1 - thing, lambda: thing < 1, lambda: 1 in thing, lambda: float(thing)):
        with pytest.raises((TypeError, AttributeError)):
            attempt()


@pytest.mark.parametrize("argument", [lambda x: x, object(), print])
def test_an_argument_that_cannot_cross_is_the_tests_fault(argument):
    program = program_with("def f(x): return 1")
    with pytest.raises(Unsupported, match="cannot cross"):
        program.name("f")(argument)
    assert program.unsupported


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        "pass",
        {"error": 3},
        {"error": ["ValueError"]},
        {"value": {"a": 1, "b": 2}},
        {"value": {"object": "x"}},
        {"value": {"type": "object"}},
        {"value": {"int": "zz"}},
    ],
)
def test_a_reply_that_is_none_ends_the_program_or_fails_the_call(reply):
    program = program_with("def f(): return 1")
    f = program.name("f")
    f()
    program.channel.desk.answer = lambda request: reply
    with pytest.raises((ProgramEnded, TypeError, RuntimeError)):
        f()


@pytest.mark.parametrize(
    ("test", "outcome"),
    [
        ("assert f(2) == 4", "pass"),
        ("def check(candidate):\n    assert candidate(2) == 4", "pass"),
        ("def check(candidate):\n    assert candidate(2) == 5", "wrong_answer"),
        ("def check(candidate):\n    assert candidate(2) == 4\ncheck(f)", "pass"),
        ("assert isclose(f(2), 4)", "runtime_error"),
        ("assert math.isclose(f(2), 4)", "pass"),
        ("assert g(2) == 4", "runtime_error"),
        ("assert f(2) + None", "runtime_error"),
        ("assert True", "no_tests"),
        ("", "no_tests"),
        ("assert False", "bad_tests"),
        ("import nothing_of_that_name\nassert f(2) == 4", "bad_tests"),
        ("assert f(2 == 4", "bad_tests"),
        ("assert f(lambda: 1) == 4", "unsupported"),
        ("try:\n    f(lambda: 1)\nexcept Exception:\n    pass", "unsupported"),
        ("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(2), 4)", "pass"),
        ("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(2), 5)", "wrong_answer"),
    ],
)
def test_outcomes(test, outcome):
    assert verdict_of("def f(x): return x * x", test, entry_point="f")["outcome"] == outcome


def test_helpers_of_the_starter_are_its_own_not_the_programs():
    starter = "def poly(x): return x - 3\ndef f(): ..."
    wrong = "def poly(x): return 0\ndef f(): return 1"
    assert verdict_of(wrong, "assert poly(f()) == 0", starter=starter, entry_point="f")["outcome"] == "wrong_answer"


def test_an_entry_point_may_be_an_expression_or_a_built_in_name():
    found = verdict_of("class S:\n    def g(self, x): return 2", "assert candidate(1) == 2", entry_point="S().g")
    assert found["outcome"] == "pass"
    assert verdict_of("def sum(a, b): return a * b", "assert sum(3, 4) == 12", entry_point="sum")["outcome"] == "pass"


@pytest.mark.parametrize(
    ("test", "passed", "total"),
    [
        ("assert f(0) == 0\nassert f(1) == 2\nassert f(2) == 4", 2, 3),
        ("for i in range(3):\n    assert f(i) == 2 * i\nassert f(2) == 4", 1, 2),
        ("assert f(0) == 0\nf(None)\nassert f(2) == 4", 1, 2),
    ],
)
def test_partial_credit_counts_assertions(test, passed, total):
    found = verdict_of("def f(x): return x * x", test, entry_point="f", partial=True)
    assert (found["passed"], found["total"]) == (passed, total)


def test_partial_credit_counts_cases():
    cases = [{"args": [0], "expected": 0}, {"args": [3], "expected": 6}, {"args": ["x"], "expected": 1}]
    found = verdict_of("def f(x): return x * x", cases=cases, entry_point="f", partial=True)
    assert (found["outcome"], found["passed"], found["total"]) == ("wrong_answer", 1, 3)


@pytest.mark.parametrize(
    ("result", "expected", "same"),
    [
        ((1, 2), [1, 2], True),
        ([1, (2,)], [1, [2]], True),
        (1.0, 1, True),
        (True, 1, False),
        (1, True, False),
        (None, "", False),
        ({"a": (1,)}, {"a": [1]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1], [1, 2], False),
        (float("nan"), 0.5, False),
        ("1", 1, False),
        ({1}, [1], False),
    ],
)
def test_results_are_compared_with_what_json_can_say(result, expected, same):
    assert is_same(result, expected, 0.0) is same


def test_tolerance_is_absolute_or_relative():
    assert is_same([0.5000001], [0.5], 1e-6)
    assert is_same(1e9 + 1, 1e9, 1e-6)
    assert not is_same(0.51, 0.5, 1e-6)
    assert not is_same(0.5000001, 0.5, 0.0)
