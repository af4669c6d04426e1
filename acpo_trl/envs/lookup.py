"""The environment `lookup`: follow a chain of cards to a digit."""

import random
from collections.abc import Collection, Mapping, Sequence
from string import ascii_lowercase, digits
from typing import Any

from ..rewards.extract import after_thinking
from ..rewards.retrieval import short_answer
from ..rollouts.view import TurnView
from .base import TurnScore
from .judge import format_score, progress_score, tools_of, valid_calls
from .play import call_message

QUESTION = "Look up card {start}. Follow =, ignore !. A letter is the next card, a digit the answer."


class Lookup:
    """A deck of 26 cards, one for each letter; each names two signs, `=` the one to follow and `!` a distractor.

    The prompt names the first card. On the path, `=` leads to the next card, on its last card to the digit that is
    asked for; the distractor is of the same kind. Cards beside the path never lead back to it.

    Rewards of a turn: `outcome`, on the last turn: 1.0 if its text, or the answer in its `<answer>` tag, is the digit,
    else 0.0. `process`: 1.0 if it looks up the next card of the path, 0.0 if it does not, None if it has been read to
    the end. `cost`: -1.0 for each card that it looks up again or beside the path. `format`: -1.0 if one of its calls
    cannot be carried out, else 0.0. The state key is the number of cards of the path that have been read.
    """

    reward_kinds: tuple[str, ...] = ("outcome", "format", "cost", "process")

    def reset(self, path: str, cards: Sequence[str], solution: str | int, **row: Any) -> None:
        """Begin an episode with a row of `lookup_tasks`."""
        self._path = path
        self._cards = dict(zip(ascii_lowercase, cards, strict=True))
        self._solution = str(solution)

    def _check_columns(self, columns: Collection[str]) -> None:
        """Raise ValueError for a dataset without one of the columns of `lookup_tasks`."""
        missing = [name for name in ("path", "cards", "solution") if name not in columns]
        if missing:
            raise ValueError(
                f"environment 'lookup': the columns {sorted(columns)} lack {missing}; expected the rows of "
                "acpo_trl.envs.lookup_tasks; make the dataset with it."
            )

    def look(self, key: str) -> str:
        """
        Read a card.

        Args:
            key: Its letter.
        """
        if key not in self._cards:
            raise ValueError(f"no card {key!r}")
        return self._cards[key]

    def _score(self, turns: Sequence[TurnView]) -> list[TurnScore]:
        scores, num_read, tools = [], 0, tools_of(self)
        for index, turn in enumerate(turns):
            before = num_read
            keys = [call["arguments"]["key"] for call in valid_calls(tools, turn)]
            for key in keys:
                num_read += self._path[num_read : num_read + 1] == key
            rewards = {
                "outcome": self._outcome(turn) if index == len(turns) - 1 else None,
                "format": format_score(tools, turn),
                "cost": float(num_read - before - len(keys)),
                "process": progress_score(num_read > before, before < len(self._path)),
            }
            scores.append(TurnScore(rewards, str(before)))
        return scores

    def _outcome(self, turn: TurnView) -> float:
        answer = short_answer(turn.text, "answer") or (after_thinking(turn.text) or "").strip()
        return float(answer == self._solution)


def lookup_tasks(num: int, seed: int, min_hops: int = 1, max_hops: int = 6) -> list[dict[str, Any]]:
    """Give rows for `Lookup`; equal arguments give equal rows, and rows of different seeds differ.

    Args:
        num: how many.
        seed: of the random decks.
        min_hops, max_hops: cards on the path, each number equally often; a perfect policy needs one turn more.

    Raises:
        ValueError: there is no path of such a length.
    """
    if not 1 <= min_hops <= max_hops <= 20:
        raise ValueError(
            f"min_hops {min_hops!r}, max_hops {max_hops!r}: no such paths; expected 1 <= min_hops <= max_hops <= 20."
        )
    dice = random.Random(seed)
    return [_task(dice, dice.randint(min_hops, max_hops)) for _ in range(num)]


def expert(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the messages of a policy that solves a row of `lookup_tasks` in the fewest turns."""
    looks = [call_message("look", key=key) for key in row["path"]]
    return [*looks, {"role": "assistant", "content": str(row["solution"])}]


def _task(dice: random.Random, num_hops: int) -> dict[str, Any]:
    path = dice.sample(ascii_lowercase, num_hops)
    others = [letter for letter in ascii_lowercase if letter not in path]
    solution = dice.choice(digits)
    links = dict(zip(path, [*path[1:], solution], strict=True))
    links |= {letter: dice.choice([dice.choice(others), dice.choice(digits)]) for letter in others}
    return {
        "prompt": [{"role": "user", "content": QUESTION.format(start=path[0])}],
        "path": "".join(path),
        "cards": [_card(dice, links[letter], others) for letter in ascii_lowercase],
        "solution": solution,
    }


def _card(dice: random.Random, link: str, others: Sequence[str]) -> str:
    decoy = dice.choice([sign for sign in (digits if link in digits else others) if sign != link])
    signs = [f"={link}", f"!{decoy}"]
    dice.shuffle(signs)
    return " ".join(signs)
