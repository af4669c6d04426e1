"""The environment `search`: answer a question with what a search finds in a local corpus."""

import functools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..rewards.retrieval import CLOSED_ANSWERS, GOLD_COLUMNS, gold_answers, normalize
from ..rollouts.options import check_number, check_whole
from ..rollouts.view import TurnView
from .base import TurnScore
from .corpus import Corpus, Passage, read_passages
from .island import PASSAGES
from .judge import (
    check_outcome_columns,
    format_score,
    num_attempts,
    outcome_reward,
    outcome_scores,
    progress_score,
    tools_of,
    valid_calls,
)
from .play import call_message

BUILT_IN = "island"


class Search:
    """A tool that finds passages of a corpus.

    A search makes progress if it finds a passage that supports the answer and that the episode has not found before:
    one whose id or title is in the column `supporting`. In a dataset without that column, the first passage that has a
    gold answer in it is the one to find; for `yes`, `no` and rows without gold answer, nobody knows.

    Rewards of a turn: `outcome`, on the last turn: what the reward `outcome` says about its text. `process`: 1.0 for
    progress, 0.0 for none, None if nothing is left to find or nobody knows. `cost`: `call_cost` for each call it
    attempts, negative. `format`: -1.0 if one of its calls cannot be carried out, else 0.0. The state key is the sorted
    list of the ids that have been found.

    Args:
        corpus: path of a JSON Lines file with `id`, `title` and `text` in each line, a `Corpus`, or `island`, the small
            built-in one.
        top_k: passages that a search gives.
        max_characters: of each passage.
        call_cost: what a call costs.
        outcome: name of a reward in `acpo_trl.rewards.REWARDS`, such as `f1`, a dotted path, or a reward; it gets the
            row's columns.

    Raises:
        ValueError, TypeError: an option that cannot work.
    """

    reward_kinds: tuple[str, ...] = ("outcome", "format", "cost", "process")

    def __init__(
        self,
        corpus: str | Path | Corpus = BUILT_IN,
        top_k: int = 3,
        max_characters: int = 500,
        call_cost: float = 0.1,
        outcome: str | Callable[..., Any] = "exact_match",
    ) -> None:
        check_whole("top_k", top_k)
        check_whole("max_characters", max_characters)
        check_number("call_cost", call_cost, zero=True)
        self._corpus = corpus if isinstance(corpus, Corpus) else _open(corpus)
        self._top_k = top_k
        self._max_characters = max_characters
        self._call_cost = call_cost
        self._outcome = outcome_reward(outcome)

    def reset(self, **row: Any) -> None:
        """Begin an episode with gold answers in `golden_answers`, `solution` or `answer`, perhaps `supporting`.

        Raises:
            ValueError: `supporting` holds something else than ids and titles.
        """
        self._row = row
        self._supporting = supporting_names(row.get("supporting"))
        self._found: dict[str, list[Passage]] = {}

    def _check_columns(self, columns: Collection[str]) -> None:
        """Raise ValueError for a dataset without a column that the reward `outcome` needs."""
        check_outcome_columns(self._outcome, columns)

    def search(self, query: str) -> str:
        """
        Search for passages.

        Args:
            query: Words to search for.
        """
        self._found[query] = self._corpus.search(query, self._top_k)
        texts = [f"{passage.title}: {passage.text}"[: self._max_characters] for passage in self._found[query]]
        return "\n".join(texts) or "Nothing found."

    def _score(self, turns: Sequence[TurnView]) -> list[TurnScore]:
        outcomes = outcome_scores(self._outcome, self._row, turns)
        scores, tools = [], tools_of(self)
        found: dict[str, Passage] = {}
        left = self._to_find()
        for turn, outcome in zip(turns, outcomes, strict=True):
            before, state_key = left, json.dumps(sorted(found))
            queries = [call["arguments"]["query"] for call in valid_calls(tools, turn)]
            shown = [passage for query in queries for passage in self._found.get(query, [])]
            new = {passage.id: passage for passage in shown if passage.id not in found}
            left = self._still_left(left, new.values())
            found |= new
            rewards = {
                "outcome": outcome,
                "format": format_score(tools, turn),
                "cost": 0.0 - self._call_cost * num_attempts(turn),
                "process": progress_score(left < before, bool(before)),
            }
            scores.append(TurnScore(rewards, state_key))
        return scores

    def _to_find(self) -> set[str]:
        """Give ids and titles of what supports the answer, else the answers, of which one is enough."""
        if self._supporting is not None:
            return self._supporting
        columns = [name for name in GOLD_COLUMNS if name in self._row]
        golds = gold_answers(self._row[columns[0]]) if columns else []
        return {normalize(gold) for gold in golds} - CLOSED_ANSWERS

    def _still_left(self, left: set[str], new: Collection[Passage]) -> set[str]:
        """Give what has still to be found behind these passages."""
        if self._supporting is not None:
            return left - {name for passage in new for name in (passage.id, passage.title)}
        texts = [f" {normalize(f'{passage.title}: {passage.text}'[: self._max_characters])} " for passage in new]
        return set() if any(f" {gold} " in text for gold in left for text in texts) else left


def supporting_names(cell: object) -> set[str] | None:
    """Give the ids and titles in a cell of the column `supporting`; None if nobody knows them.

    Raises:
        ValueError: the cell holds something else.
    """
    names = [cell] if isinstance(cell, str | int) else cell
    if names is None:
        return None
    if not isinstance(names, list | tuple) or not all(_is_name(name) for name in names):
        raise ValueError(
            f"supporting {cell!r}: no passage is called so; expected an id or title, or a list of them; correct the "
            "column `supporting`, or leave None where nobody knows."
        )
    return {str(name) for name in names}


def _is_name(name: object) -> bool:
    return isinstance(name, str | int) and not isinstance(name, bool) and name != ""


def expert(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the messages of a policy that searches for each title in `supporting` and gives the first gold answer."""
    answer = f"<answer>{gold_answers(row['golden_answers'])[0]}</answer>"
    searches = [call_message("search", query=title) for title in row["supporting"]]
    return [*searches, {"role": "assistant", "content": answer}]


@functools.cache
def _open(name: str | Path) -> Corpus:
    """Give the one corpus of this name or path that all environments of the process share."""
    return Corpus(PASSAGES if name == BUILT_IN else read_passages(name))
