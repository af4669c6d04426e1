"""Is the final answer right? The reward `math`."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from .declare import Verdict
from .equivalence.policy import Policy, check_choice
from .extract import Completion, final_answer, gold_answer, last_assistant_text
from .worker import Failure, Pool

MEMORY_BYTES = 2 * 2**30
MAX_CHARACTERS = 10_000
MAX_REMEMBERED = 20_000
MAX_SHOWN = 200
COMPARED = ("identical", "equal", "different")
"""The reasons of verdicts that two values were compared for."""

Task = tuple[str, str, Policy]
"""A gold answer and an answer, both without their box, and how to compare them."""
Graded = tuple[Verdict, float]
"""A verdict, and the wall-clock seconds it took in its worker."""

_pools: dict[float, Pool] = {}
_remembered: dict[Task, Verdict] = {}


class MathReward:
    r"""1.0 for a right final answer, 0.0 for a wrong or missing one, None where the gold answer cannot be read.

    The answer is the last `\boxed{...}` behind the last closing thinking tag of the last assistant message. The gold
    answer comes from the dataset column `solution`, else `answer`; docs/concepts/rewards.md says what counts as equal.
    An answer that cannot be checked within the limits earns 0.0.

    Args:
        limit_s: wall-clock seconds for one answer.
        require_box: score only boxed answers. Without it, a message without box may state its answer in a line such as
            `Answer: 4`, `The answer is 4.` or `#### 4`.
        require_thinking: a message without closing thinking tag has no answer. Set it where the chat template opens the
            thinking block, because then only the closing tag is part of the completion.
        several_boxes: `last`: the last box counts; `none`: a message whose boxes differ has no answer.
        ordered_lists: compare lists of values in their order.
        units: `lenient`: a missing unit is forgiven; `strict`: the unit of the gold answer has to be there.
        percent: `lenient`: `28\%` may be written `28`; `strict`: only as `0.28`, `28/100` and the like.
        decimal_tolerance: how far a number may be from the gold number, as a share of it, if one of the two is written
            as a decimal.

    Raises:
        ValueError: an option has no such value.
    """

    __name__ = "math"

    def __init__(
        self,
        limit_s: float = 5.0,
        require_box: bool = False,
        require_thinking: bool = False,
        several_boxes: Literal["last", "none"] = "last",
        ordered_lists: bool = False,
        units: Literal["lenient", "strict"] = "lenient",
        percent: Literal["lenient", "strict"] = "lenient",
        decimal_tolerance: float = 0.0,
    ) -> None:
        if not isinstance(limit_s, int | float) or not 0 < limit_s < math.inf:
            raise ValueError(f"limit_s {limit_s!r}: no answer could be checked; expected seconds, more than 0.")
        check_choice("require_box", require_box, (False, True))
        check_choice("require_thinking", require_thinking, (False, True))
        check_choice("several_boxes", several_boxes, ("last", "none"))
        self.limit_s = limit_s
        self.require_box = require_box
        self.require_thinking = require_thinking
        self.several_boxes = several_boxes
        self.policy = Policy(ordered_lists, units, percent, decimal_tolerance)

    def check_columns(self, columns: Iterable[str]) -> None:
        """Raise ValueError if there is neither a column `solution` nor a column `answer`."""
        gold_column(columns)

    def gold(self, row: Mapping[str, Any]) -> str | None:
        """Give the gold answer of a row as a model would write it, None if its cell is empty."""
        answer = gold_answer(row[gold_column(row)])
        thinking = "<think>\n</think>\n" if self.require_thinking else ""
        return rf"{thinking}\boxed{{{answer}}}" if answer else None

    def __call__(
        self,
        completions: Sequence[Completion],
        log_extra: Callable[[str, list], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Score each completion against its gold answer.

        Raises:
            ValueError: there is neither a column `solution` nor a column `answer`.
        """
        golds = [gold_answer(cell) for cell in columns[gold_column(columns)]]
        texts = [last_assistant_text(completion) for completion in completions]
        answers = [self._final_answer(text) for text in texts]
        graded = self.compare(list(zip(golds, answers, strict=True)))
        verdicts = [verdict for verdict, _ in graded]
        if log_extra is not None:
            log_extra("math_answer", [answer[:MAX_SHOWN] for answer in answers])
            log_extra("math_reason", [verdict.reason for verdict in verdicts])
            log_extra("math_seconds", [seconds for _, seconds in graded])
        if log_metric is not None and verdicts:
            for name, share in _shares(answers, verdicts).items():
                log_metric(f"rewards/math/{name}", share)
        return [verdict.score for verdict in verdicts]

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Graded]:
        """Give the verdict on each pair of gold answer and answer, both without their box.

        A verdict that is remembered took 0.0 seconds; equal pairs share their one verdict.
        """
        tasks = [(gold, answer, self.policy) for gold, answer in pairs]
        known = {task: (verdict, 0.0) for task in tasks if (verdict := _remembered.get(task))}
        new = [task for task in dict.fromkeys(tasks) if task not in known]
        known |= self._judge(new)
        return [known[task] for task in tasks]

    def _final_answer(self, text: str) -> str:
        return final_answer(text, self.require_box, self.require_thinking, self.several_boxes)

    def _judge(self, tasks: Sequence[Task]) -> dict[Task, Graded]:
        small = [task for task in tasks if max(map(len, task[:2])) <= MAX_CHARACTERS]
        results = dict(zip(small, self._pool.run(small), strict=True))
        failures = {task: result for task, result in results.items() if isinstance(result, Failure)}
        graded: dict[Task, Graded] = {task: result for task, result in results.items() if task not in failures}
        _remember({task: verdict for task, (verdict, _) in graded.items()})
        bad_golds = self._bad_golds({gold for gold, *_ in failures})
        for task, failure in failures.items():
            graded[task] = Verdict(None if task[0] in bad_golds else 0.0, failure.reason), failure.seconds
        for task in set(tasks) - set(small):
            graded[task] = Verdict(None if len(task[0]) > MAX_CHARACTERS else 0.0, "too long"), 0.0
        return graded

    def _bad_golds(self, golds: Iterable[str]) -> set[str]:
        """Give the gold answers to blame for a failure: one that fails against 0 too says nothing about the model."""
        tasks = [(gold, "0", self.policy) for gold in golds]
        results = self._pool.run(tasks)
        return {gold for (gold, *_), result in zip(tasks, results, strict=True) if isinstance(result, Failure)}

    @property
    def _pool(self) -> Pool:
        return _pools.get(self.limit_s) or _pools.setdefault(
            self.limit_s, Pool("acpo_trl.rewards.equivalence.grade.timed_grade", self.limit_s, MEMORY_BYTES)
        )


def gold_column(columns: Iterable[str]) -> str:
    """Give the name of the dataset column with the gold answers."""
    names = set(columns)
    for name in ("solution", "answer"):
        if name in names:
            return name
    raise ValueError(
        f"reward 'math': no gold answers among the columns {sorted(names)}; expected a column 'solution' or "
        "'answer'; rename the column that holds them."
    )


def _shares(answers: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Give the shares of a batch that have no answer, one that could not be checked, and no score."""
    has_none = [not answer or verdict.reason == "no answer" for answer, verdict in zip(answers, verdicts, strict=True)]
    is_unscored = [verdict.score is None for verdict in verdicts]
    is_unreadable = [
        verdict.reason not in COMPARED and not none and not unscored
        for verdict, none, unscored in zip(verdicts, has_none, is_unscored, strict=True)
    ]
    counted = {"no_answer": has_none, "unreadable": is_unreadable, "unscored": is_unscored}
    return {name: sum(flags) / len(flags) for name, flags in counted.items()}


def _remember(verdicts: Mapping[Task, Verdict]) -> None:
    if len(_remembered) > MAX_REMEMBERED:
        _remembered.clear()
    _remembered.update(verdicts)
