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
from ..trainer.guard import JUDGE_ERRORS
from ..trainer.scores import check_scores
from .entry import describe, text_of

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


Scorer = Callable[[list[tuple[Row, str]]], list[Said]]


@dataclass(frozen=True)
class Checked:
    """What a reward said about the rows of a dataset; lists of rows hold their indices."""

    name: str
    declaration: Declaration
    has_gold: bool
    """Whether it tells which completions deserve the best score; otherwise it got the dataset's bare answers."""
    said: list[Said]
    """About each row's own completion."""
    swapped: list[Said]
    """About the completion of the next row, where that is another one; empty without gold answers."""
    seconds: float

    @property
    def raised(self) -> list[int]:
        both = zip(self.said, self.swapped or self.said, strict=True)
        return [index for index, (own, other) in enumerate(both) if own.is_error or other.is_error]

    @property
    def no_gold(self) -> list[int]:
        return self._where(lambda said: said.text is None and not said.is_error)

    @property
    def unscored(self) -> list[int]:
        return self._where(is_unscored)

    @property
    def right(self) -> list[int]:
        return self._where(self._is_best)

    @property
    def wrong(self) -> list[int]:
        return self._where(lambda said: said.score is not None and not self._is_best(said))

    @property
    def unread(self) -> list[int]:
        """Rows that score their own gold answer and no other: it equals its own text, but means nothing."""
        own = {*self.right, *self.wrong}
        return [index for index, said in enumerate(self.swapped) if index in own and is_unscored(said)]

    @property
    def fooled(self) -> list[int]:
        """Rows for which the gold answer of another row has the best score."""
        return [index for index, said in enumerate(self.swapped) if self._is_best(said)]

    @property
    def is_fine(self) -> bool:
        """Whether the reward raised nothing and, of its gold answers, got none wrong and could read some."""
        is_blind = bool(self.unscored or self.unread) and not set(self.right) - set(self.unread)
        return not self.raised and not (self.has_gold and (self.wrong or is_blind))

    def _is_best(self, said: Said) -> bool:
        best = 0.0 if self.declaration.kind == "cost" else 1.0
        return said.score is not None and math.isclose(said.score, best, abs_tol=1e-6)

    def _where(self, holds: Callable[[Said], bool]) -> list[int]:
        return [index for index, said in enumerate(self.said) if holds(said)]


def is_unscored(said: Said) -> bool:
    """Whether there was a completion and the reward, without an exception, gave it no score."""
    return said.text is not None and said.score is None and not said.is_error


def check_reward(
    reward: Callable[..., Any],
    rows: Sequence[Row],
    sources: Sequence[Row],
    is_chat: bool,
    progress: Callable[[int], Any] = lambda done: None,
) -> Checked:
    """Let a reward score its own gold answers, and those of other rows; or the dataset's bare ones if it has none.

    An answer may equal its own text although the reward cannot read it: only another answer brings that to light.

    Args:
        reward: a reward function or object, sync or async.
        rows: of the dataset as TRL takes it.
        sources: the same rows for the reward's `gold`, with the prompts that the dataset has.
        is_chat: completions are lists of messages.
        progress: gets the number of rows of each batch that is done.
    """
    gold = getattr(reward, "gold", None)
    start = time.perf_counter()
    golds = [tell(gold or bare_answer, row) for row in sources]
    with closing(asyncio.new_event_loop()) as loop:
        score = partial(call, reward, is_chat=is_chat, loop=loop)
        said = score_all(score, rows, golds, progress)
        swapped = score_all(score, rows, swap(golds), progress) if gold else []
    seconds = time.perf_counter() - start
    return Checked(get_callable_name(reward), declaration_of(reward), gold is not None, said, swapped, seconds)


def swap(golds: Sequence[Said]) -> list[Said]:
    """For each row the completion of the next one, if both rows have one and they differ."""
    pairs = zip(golds, (*golds[1:], *golds[:1]), strict=True)
    return [Said(None if mine.text in (None, other.text) else other.text) for mine, other in pairs]


def score_all(score: Scorer, rows: Sequence[Row], golds: Sequence[Said], progress: Callable[[int], Any]) -> list[Said]:
    """What a reward says about the rows' completions, batch by batch; a row without completion stays as it is."""
    said: list[Said] = []
    for first in range(0, len(rows), BATCH):
        batch = golds[first : first + BATCH]
        pairs = zip(rows[first : first + BATCH], batch, strict=True)
        given = [(row, gold.text) for row, gold in pairs if gold.text is not None]
        answers = iter(say(score, given) if given else [])
        said += [gold if gold.text is None else next(answers) for gold in batch]
        progress(len(batch))
    return said


def bare_answer(row: Row) -> str:
    """The dataset's own answer, "" if it has none."""
    answer = row.get("solution")
    return "" if answer is None else str(answer)


def tell(gold: Callable[[Row], str | None], row: Row) -> Said:
    """The completion for a row, not yet scored."""
    try:
        text = gold(row)
        if text is not None and not isinstance(text, str):
            raise TypeError(f"gold gave the {type(text).__name__} {text!r}; expected text, or None if it knows none")
        return Said(text)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return failure(None, error)


def say(score: Scorer, given: list[tuple[Row, str]]) -> list[Said]:
    """What a reward says about rows and completions; after an exception it is asked about each of them alone."""
    try:
        return score(given)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a reward that exits must not end the check with its own status
        alone = [said for pair in given for said in say(score, [pair])] if len(given) > 1 else []
        if any(said.score is None for said in alone):
            return alone
        return [failure(text, error) for _, text in given]  # only one, or they fail in company only


def failure(text: str | None, error: BaseException) -> Said:
    """What an exception says: nothing about the completion if the judge failed, a mistake of the reward otherwise."""
    if isinstance(error, JUDGE_ERRORS):
        return Said(text, reason=text_of(error))
    return Said(text, reason=describe(error), is_error=True)


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
