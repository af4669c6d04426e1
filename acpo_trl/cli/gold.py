"""What rewards say about answers that they themselves call right, row by row."""

import asyncio
import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from transformers import TrainerState
from trl.trainer.utils import get_callable_name

from ..rewards.declare import Declaration, declaration_of
from ..trainer.guard import JUDGE_ERRORS, check_scores

Row = Mapping[str, Any]

BATCH = 32
NOT_COLUMNS = ("prompt", "completion", "completion_ids")  # TRL does not pass these on


@dataclass(frozen=True)
class Said:
    """What a reward said about one row."""

    text: str | None
    """The completion that was scored; None: the row tells no right one."""
    score: float | None = None
    reason: str = ""
    """The evidence that the reward logs, or its exception."""
    is_error: bool = False


@dataclass(frozen=True)
class Checked:
    """What a reward said about the rows of a dataset; lists of rows hold their indices."""

    name: str
    declaration: Declaration
    has_gold: bool
    """Whether it tells which completions deserve the best score; otherwise it got the dataset's bare answers."""
    said: list[Said]
    seconds: float

    @property
    def raised(self) -> list[int]:
        return self._where(lambda said: said.is_error)

    @property
    def no_gold(self) -> list[int]:
        return self._where(lambda said: said.text is None and not said.is_error)

    @property
    def unscored(self) -> list[int]:
        return self._where(lambda said: said.text is not None and said.score is None and not said.is_error)

    @property
    def right(self) -> list[int]:
        return self._where(lambda said: said.score is not None and self._is_best(said.score))

    @property
    def wrong(self) -> list[int]:
        return self._where(lambda said: said.score is not None and not self._is_best(said.score))

    @property
    def is_fine(self) -> bool:
        """Whether the reward raised nothing and, of its gold answers, got none wrong and scored some."""
        is_blind = bool(self.unscored) and not self.right
        return not self.raised and not (self.has_gold and (self.wrong or is_blind))

    def _is_best(self, score: float) -> bool:
        return math.isclose(score, 0.0 if self.declaration.kind == "cost" else 1.0, abs_tol=1e-6)

    def _where(self, holds: Callable[[Said], bool]) -> list[int]:
        return [index for index, said in enumerate(self.said) if holds(said)]


def check_reward(
    reward: Callable[..., Any],
    rows: Sequence[Row],
    sources: Sequence[Row],
    is_chat: bool,
    progress: Callable[[int], Any] = lambda done: None,
) -> Checked:
    """Let a reward score its own gold answers, or the bare ones of the dataset if it has none.

    Args:
        reward: a reward function or object, sync or async.
        rows: of the dataset as TRL takes it.
        sources: the same rows for the reward's `gold`, with the prompts that the dataset has.
        is_chat: completions are lists of messages.
        progress: gets the number of rows of each batch that is done.
    """
    gold = getattr(reward, "gold", None)
    said: list[Said] = []
    start = time.perf_counter()
    with closing(asyncio.new_event_loop()) as loop:
        score = partial(call, reward, is_chat=is_chat, loop=loop)
        for first in range(0, len(rows), BATCH):
            batch = rows[first : first + BATCH]
            golds = [tell(gold or bare_answer, row) for row in sources[first : first + BATCH]]
            given = [(row, told.text) for row, told in zip(batch, golds, strict=True) if told.text is not None]
            answers = iter(say(score, given) if given else [])
            said += [told if told.text is None else next(answers) for told in golds]
            progress(len(batch))
    seconds = time.perf_counter() - start
    return Checked(get_callable_name(reward), declaration_of(reward), gold is not None, said, seconds)


def bare_answer(row: Row) -> str:
    """The dataset's own answer, "" if it has none."""
    answer = row.get("solution")
    return "" if answer is None else str(answer)


def tell(gold: Callable[[Row], str | None], row: Row) -> Said:
    """The completion for a row, not yet scored."""
    try:
        return Said(gold(row))
    except Exception as error:
        return failure(None, error)


def say(score: Callable[[list[tuple[Row, str]]], list[Said]], given: list[tuple[Row, str]]) -> list[Said]:
    """What a reward says about rows and completions; after an exception it is asked about each of them alone."""
    try:
        return score(given)
    except Exception as error:
        alone = [said for pair in given for said in say(score, [pair])] if len(given) > 1 else []
        if any(said.score is None for said in alone):
            return alone
        return [failure(text, error) for _, text in given]  # only one, or they fail in company only


def failure(text: str | None, error: Exception) -> Said:
    """What an exception says: nothing about the completion if the judge failed, a mistake of the reward otherwise."""
    if isinstance(error, JUDGE_ERRORS):
        return Said(text, reason=str(error))
    return Said(text, reason=f"{type(error).__name__}: {error}", is_error=True)


def call(
    reward: Callable[..., Any], given: list[tuple[Row, str]], is_chat: bool, loop: asyncio.AbstractEventLoop
) -> list[Said]:
    """Call a reward with TRL's keywords; there is no tokenizer, so `completion_ids` has one number for each word.

    Raises:
        RewardResultError: it gives not one number, or None, for each completion.
    """
    rows, texts = [row for row, _ in given], [text for _, text in given]
    extras: dict[str, list] = {}
    scores = reward(
        prompts=[row["prompt"] for row in rows],
        completions=[[{"role": "assistant", "content": text}] if is_chat else text for text in texts],
        completion_ids=[list(range(len(text.split()))) for text in texts],
        trainer_state=TrainerState(),
        log_extra=lambda column, values: extras.setdefault(column, []).extend(values),
        log_metric=lambda name, value: None,
        **{name: [row[name] for row in rows] for name in rows[0] if name not in NOT_COLUMNS},
    )
    if inspect.isawaitable(scores):
        scores = loop.run_until_complete(scores)
    scores = check_scores(scores, len(given), get_callable_name(reward))
    reasons = next((values for column, values in extras.items() if column.endswith("_reason")), [""] * len(given))
    return [Said(text, known(score), str(reason)) for text, score, reason in zip(texts, scores, reasons, strict=True)]


def known(score: float | None) -> float | None:
    """The score; None for NaN too, which TRL takes for not scored."""
    return None if score is None or math.isnan(score) else score
