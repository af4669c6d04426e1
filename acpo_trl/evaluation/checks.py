"""Is the response right? The checks of benchmarks, which judge as the rewards of the same name do."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from ..resolve import resolve
from ..rewards import CodeReward, MathReward
from ..rewards.extract import final_answer, gold_answer
from .benchmarks import Benchmark, Problem

Responses = Sequence[tuple[Problem, str]]


class Checked(NamedTuple):
    """What a check found."""

    score: float | None
    """1.0 right, 0.0 wrong; None: nothing was found out."""
    reason: str
    answer: str | None
    """What was taken for the answer, or for the program; None if there is none."""


def check_responses(benchmark: Benchmark, responses: Responses, is_thinking: bool = False) -> list[Checked]:
    """Judge each response to its problem.

    Without responses it judges nothing and still finds out whether it could.

    Args:
        benchmark: names the check.
        responses: problems with the text of a response, in one batch.
        is_thinking: the prompts have opened a thinking block, so that a response begins inside.

    Raises:
        SandboxError: programs cannot be isolated here, or the sandbox failed for all of them.
        TypeError: the check has no such option.
        ValueError: there is no such check, or its option has no such value.
    """
    check = resolve(benchmark.check, CHECKS, "check")
    opened = "<think>" if is_thinking else ""
    return check([(problem, opened + text) for problem, text in responses], **benchmark.options)


def check_math(responses: Responses, **options: Any) -> list[Checked]:
    """Compare final answers with the column `answer`; options are those of `MathReward`."""
    reward = MathReward(**options)
    answers = [
        final_answer(text, reward.require_box, reward.require_thinking, reward.several_boxes) for _, text in responses
    ]
    golds = [gold_answer(problem.row["answer"]) for problem, _ in responses]
    graded = reward.compare(list(zip(golds, answers, strict=True)))
    return [
        Checked(verdict.score, verdict.reason, answer or None)
        for (verdict, _), answer in zip(graded, answers, strict=True)
    ]


def check_code(responses: Responses, **options: Any) -> list[Checked]:
    """Run programs against the columns `tests`, `entry_point` and `starter_code`; options are those of `CodeReward`."""
    found: dict[str, list] = {}
    columns: dict[str, Any] = {
        name: [problem.row[name] for problem, _ in responses] for name in ("tests", "entry_point", "starter_code")
    }
    scores = CodeReward(**options)([text for _, text in responses], log_extra=found.__setitem__, **columns)
    return [
        Checked(score, reason, program or None)
        for score, reason, program in zip(scores, found["code_reason"], found["code_program"], strict=True)
    ]


CHECKS: dict[str, Callable[..., list[Checked]]] = {"math": check_math, "code": check_code}
"""Checks by name: functions of problems with responses, and of the benchmark's options."""


def vote_classes(benchmark: Benchmark, answers: Sequence[str | None]) -> list[str | None]:
    """For each answer to one problem the first that is equal to it, so that equal answers share their vote.

    Equal means what the check `math` says; answers to other checks are equal if they are the same text. None for none.
    """
    distinct = list(dict.fromkeys(answer for answer in answers if answer is not None))
    pairs = list(combinations(distinct, 2)) if benchmark.check == "math" else []
    graded = MathReward(**benchmark.options).compare(pairs) if pairs else []
    equal = {pair for pair, (verdict, _) in zip(pairs, graded, strict=True) if verdict.score == 1.0}
    first: dict[str, str] = {}
    for answer in distinct:
        first[answer] = next((other for other in first.values() if (other, answer) in equal), answer)
    return [None if answer is None else first[answer] for answer in answers]
