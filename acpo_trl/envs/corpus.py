"""Passages and an index of their words: SQLite's full-text search, which comes with Python."""

import json
import re
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..rollouts.codec import without_surrogates

# Words that nearly every passage has: they find nothing and make a query slow.
_STOP_WORDS = """a an and are as at be by did do does for from has have how in is it its of on or that the this to was
were what when where which who whom whose why will with"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


class Passage(NamedTuple):
    """A piece of text that can be found."""

    id: str
    title: str
    text: str


class Corpus:
    """Finds the passages that fit a query best, by BM25 over the words of title and text.

    Words count by their stem (Porter) without case and accents. Passages that share no word with the query are not
    found. Safe to use from several threads; a pickle holds the passages and indexes them again.

    Args:
        passages: mappings with `id`, `title` and `text`.

    Raises:
        ValueError: a passage lacks one of them, or has the id of another.
    """

    def __init__(self, passages: Iterable[Mapping[str, Any]]) -> None:
        self.passages: list[Passage] = []
        known = set()
        for number, passage in enumerate(passages):
            missing = [name for name in Passage._fields if name not in passage]
            if missing or passage["id"] in known:
                what = f"lacks {missing}" if missing else f"has the id {passage['id']!r} of an earlier one"
                raise ValueError(
                    f"passage {number}: {what}, so it cannot be found; expected `id`, `title` and `text`, and another "
                    "id for each passage."
                )
            known.add(passage["id"])
            self.passages.append(Passage(*(without_surrogates(str(passage[name])) for name in Passage._fields)))
        self._lock = threading.Lock()
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute("CREATE VIRTUAL TABLE passages USING fts5(title, text, tokenize = 'porter unicode61')")
        rows = ((number, passage.title, passage.text) for number, passage in enumerate(self.passages))
        self._index.executemany("INSERT INTO passages (rowid, title, text) VALUES (?, ?, ?)", rows)
        self._index.commit()

    def __reduce__(self) -> tuple:
        return Corpus, ([passage._asdict() for passage in self.passages],)

    def search(self, query: str, top_k: int) -> list[Passage]:
        """Give the best passages, best first, at most `top_k`; equally good ones in the order of the corpus."""
        words = re.findall(r"\w+", query)
        words = [word for word in words if word.lower() not in STOP_WORDS] or words
        if not words:
            return []
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        command = "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank, rowid LIMIT ?"
        with self._lock:
            found = self._index.execute(command, (match, top_k)).fetchall()
        return [self.passages[number] for (number,) in found]


def read_passages(path: str | Path) -> list[dict[str, Any]]:
    """Give the passages in a JSON Lines file, one in each line."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
