"""Failed solutions whose first wrong step humans have marked, from the files of four datasets."""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class Segment(NamedTuple):
    """A piece of a solution."""

    text: str
    step: int | None
    """Which step it is; None: the environment said it."""


@dataclass(frozen=True)
class Solution:
    """A problem, what was said to it, and where it first went wrong."""

    id: str
    problem: str
    segments: tuple[Segment, ...]
    first_error: int
    """Step, from 0."""

    @property
    def num_steps(self) -> int:
        """How many steps it has."""
        return sum(segment.step is not None for segment in self.segments)


class Loaded(NamedTuple):
    """Failed solutions, and how many rows are none."""

    solutions: list[Solution]
    num_without_error: int
    num_right: int
    """With a wrong step and yet the right answer: a reward on the answer would not blame them."""


def load_solutions(path: Path) -> Loaded:
    """The failed solutions of a file, JSON Lines, perhaps with .gz: its columns say which dataset it is.

    ProcessBench (arXiv:2412.06559), MR-GSM8K (arXiv:2312.17080; counts steps from 1), BIG-Bench-Mistake
    (arXiv:2311.08516), AgentProcessBench (steps are the messages of the assistant, the first with label -1 is wrong).

    Raises:
        ValueError: no such file, columns of none of them, or an error behind the last step; names the row.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, EOFError, ValueError) as error:
        raise ValueError(f"{str(path)!r}: cannot be read ({error}); expected JSON Lines, perhaps with .gz.") from error
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{str(path)!r}: has no rows, or rows that are no objects; expected one for each solution.")
    read = next((reader for columns, reader in READERS if columns <= rows[0].keys()), None)
    if read is None:
        raise ValueError(
            f"{str(path)!r}: has the columns {sorted(rows[0])}; expected those of ProcessBench, MR-GSM8K, "
            f"BIG-Bench-Mistake or AgentProcessBench: one of {[sorted(columns) for columns, _ in READERS]}."
        )
    solutions = [_read(read, row, path, number) for number, row in enumerate(rows)]
    wrong = [(row, solution) for row, solution in zip(rows, solutions, strict=True) if solution is not None]
    failed = [solution for row, solution in wrong if not _is_right(row)]
    return Loaded(failed, len(rows) - len(wrong), len(wrong) - len(failed))


def _is_right(row: Row) -> bool:
    """Whether the file says that the answer is right; AgentProcessBench says it in `final_label`."""
    return row.get("final_answer_correct") is True or row.get("final_label") == 1


def _read(read: Callable[[Row], Solution | None], row: Row, path: Path, number: int) -> Solution | None:
    try:
        solution = read(row)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{str(path)!r}, row {number}: cannot be read ({error!r}); remove or correct it.") from error
    if solution is not None and not (
        type(solution.first_error) is int and 0 <= solution.first_error < solution.num_steps
    ):
        raise ValueError(
            f"{str(path)!r}, row {number}: first wrong step {solution.first_error!r} of {solution.num_steps}, counted "
            "from 0; expected one of its steps; remove or correct it."
        )
    return solution


def _from_steps(row: Row, first_error: Any) -> Solution:
    if not isinstance(row["steps"], list):
        raise TypeError(f"steps is a {type(row['steps']).__name__}, expected a list of texts")
    segments = tuple(Segment(str(text), number) for number, text in enumerate(row["steps"]))
    return Solution(str(row["id"]), str(row["problem"]), segments, first_error)


def _process_bench(row: Row) -> Solution | None:
    return None if row["first_error"] in (None, -1) else _from_steps(row, row["first_error"])


def _mr_gsm8k(row: Row) -> Solution | None:
    return None if row["first_error"] is None else _from_steps(row, row["first_error"] - 1)


def _agent_process_bench(row: Row) -> Solution | None:
    labels = {int(place): label for place, label in row["step_labels"].items()}
    wrong = [place for place in sorted(labels) if labels[place] == -1]
    if not wrong:
        return None
    segments: list[Segment] = []
    places: list[int] = []
    for place, message in enumerate(row["messages"]):
        if message["role"] == "assistant":
            segments.append(Segment(_said(message), len(places)))
            places.append(place)
        elif places:
            segments.append(Segment(str(message.get("content") or ""), None))
    return Solution(str(row["id"]), str(row["question"]), tuple(segments), places.index(wrong[0]))


def _said(message: Mapping[str, Any]) -> str:
    calls = [call.get("function", call) for call in message.get("tool_calls") or ()]
    written = [f"<tool_call>{json.dumps(call, ensure_ascii=False, sort_keys=True)}</tool_call>" for call in calls]
    return "\n".join([part for part in (str(message.get("content") or ""), *written) if part])


READERS: list[tuple[set[str], Callable[[Row], Solution | None]]] = [
    ({"messages", "step_labels", "question"}, _agent_process_bench),
    ({"variant", "steps", "problem", "first_error"}, _mr_gsm8k),
    ({"steps", "problem", "first_error"}, _process_bench),
]
"""Columns of a dataset, and how its rows are read; BIG-Bench-Mistake has those of ProcessBench."""
