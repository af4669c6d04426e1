"""Problems and worked solutions."""

import random
import re

from acpo_trl.quickstart import problems, worked_solution


def test_worked_solution_reads_as_documented():
    assert worked_solution("What is 347 + 586?", random.Random(0)) == "7+6=13\n4+8+1=13\n3+5+1=9\n\\boxed{933}"


def test_a_forgotten_carry_is_carried_through_to_the_answer():
    forgetful = worked_solution("What is 347 + 586?", random.Random(0), forget_carry=1.0)
    assert forgetful == "7+6=13\n4+8=12\n3+5=8\n\\boxed{823}"


def test_every_line_is_true_and_the_box_holds_the_sum():
    for row in problems(500, seed=3):
        first, second = map(int, re.findall(r"\d+", row["prompt"]))
        *lines, box = worked_solution(row["prompt"], random.Random(0)).splitlines()
        for line in lines:
            left, right = line.split("=")
            assert sum(map(int, left.split("+"))) == int(right), line
        assert box == f"\\boxed{{{first + second}}}"
        assert row["solution"] == str(first + second)


def test_problems_differ_from_each_other_and_from_seed_to_seed():
    rows = problems(2000, seed=0)
    assert len({row["prompt"] for row in rows}) == 2000
    assert rows == problems(2000, seed=0)
    assert rows[:10] != problems(10, seed=1)
