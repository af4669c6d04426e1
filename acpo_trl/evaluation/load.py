"""The problems of a benchmark, from a file or from the Hub, checked before anything is generated."""

import csv
import gzip
import hashlib
import io
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from datasets import load_dataset
from datasets.exceptions import DatasetGenerationError
from huggingface_hub import HfApi

from ..rewards.code_extract import defined_names
from ..rewards.code_tests import read_tests
from ..rewards.extract import gold_answer
from .benchmarks import USUAL_COLUMNS, Benchmark, Problem, Source, fill

Row = dict[str, Any]
Columns = dict[str, tuple[str, ...]]
"""The columns that were chosen for each key of USUAL_COLUMNS."""
MAX_NAMED = 5


class Loaded(NamedTuple):
    """Problems, and what they were read from."""

    problems: list[Problem]
    origin: str
    """`name@commit` of a Hub dataset, `path sha256:digest` of a file."""


def load_problems(benchmark: Benchmark, limit: int | None = None, seed: int = 0) -> Loaded:
    """The problems of a benchmark in their order.

    Args:
        benchmark: whose `source` is read.
        limit: take so many, drawn at random; more of the same seed contain fewer.
        seed: of the draw.

    Raises:
        ValueError: no source, a file that is missing, empty or unreadable, a column that is missing, a row without
            problem, gold answer or tests, an id that occurs twice, or a limit below 1.
    """
    if limit is not None and (type(limit) is not int or limit < 1):
        raise ValueError(f"limit {limit!r}: leaves nothing to evaluate; expected a whole number of problems, or None.")
    if benchmark.source is None:
        raise ValueError(
            f"benchmark {benchmark.name!r}: has no source; expected a file or a dataset of the Hub; give it a file."
        )
    rows, origin = _read(benchmark.source)
    if not rows:
        raise ValueError(f"benchmark {benchmark.name!r}: {origin} has no rows; expected one for each problem.")
    columns = choose_columns(benchmark, list(dict.fromkeys(name for row in rows for name in row)))
    problems = [_problem(benchmark, columns, row, number) for number, row in enumerate(rows)]
    _refuse_bad(benchmark, problems, columns)
    return Loaded(_draw(problems, limit, seed), origin)


def choose_columns(benchmark: Benchmark, names: Sequence[str]) -> Columns:
    """The columns that the benchmark says, else the first usual one of each kind.

    Raises:
        ValueError: one that it says, or one that its check needs, is not there.
    """
    chosen: Columns = {}
    for role, usual in USUAL_COLUMNS.items():
        said = benchmark.columns.get(role, ())
        said = (said,) if isinstance(said, str) else tuple(said)
        found = said or tuple(name for name in usual if name in names)[:1]
        needed = role in ("problem", {"math": "answer", "code": "tests"}.get(benchmark.check))
        if set(found) - set(names) or (needed and not found):
            raise ValueError(
                f"benchmark {benchmark.name!r}: no column for {role!r} among {sorted(names)}; expected "
                f"{' and '.join(map(repr, said)) or f'one of {list(usual)}'}; say in its `columns` which it is."
            )
        if found:
            chosen[role] = found
    return chosen


def _problem(benchmark: Benchmark, columns: Columns, row: Row, number: int) -> Problem:
    def cell(role: str) -> Any:
        return row.get(columns[role][0]) if role in columns else None

    known = cell("id")
    group = cell("group")
    row = row | _GOLDS.get(benchmark.check, lambda *_: {})(benchmark, columns, row)
    name = f"{benchmark.name}-{number}" if known is None else str(known)
    return Problem(name, cell("problem"), row, None if group is None else str(group))


def _answer(benchmark: Benchmark, columns: Columns, row: Row) -> Row:
    answer = row.get(columns["answer"][0])
    return {"answer": ", ".join(map(str, answer)) if isinstance(answer, list) else answer}


def _tests(benchmark: Benchmark, columns: Columns, row: Row) -> Row:
    cells = [row.get(name) for name in columns["tests"]]
    if len(cells) > 1:
        cells = [[test for cell in cells for test in (cell if isinstance(cell, list) else [cell]) if test]]
    (tests,) = cells
    entry_point = row.get(columns["entry_point"][0]) if "entry_point" in columns else None
    if "reference" in columns and tests:
        entry_point = entry_point or _called_name(str(tests[-1]), row.get(columns["reference"][0]) or "")
    return {
        "tests": tests,
        "entry_point": entry_point,
        "starter_code": fill(benchmark.starter, row, benchmark.name),
    }


def _called_name(test: str, reference: str) -> str | None:
    """The first name that the test calls and the reference defines: MBPP has a function `sum`."""
    defined = defined_names(reference)
    return next((name for name in re.findall(r"(\w+)\(", test) if name in defined), None)


_GOLDS: dict[str, Callable[[Benchmark, Columns, Row], Row]] = {"math": _answer, "code": _tests}
"""What the checks ask for in a row."""


def _refuse_bad(benchmark: Benchmark, problems: Sequence[Problem], columns: Columns) -> None:
    """Raise ValueError for problems that could not be asked, judged or told apart."""
    empty = [problem.id for problem in problems if not isinstance(problem.prompt, str) or not problem.prompt.strip()]
    _refuse(benchmark, empty, f"no text in column {columns['problem'][0]!r}", "a problem in each row")
    if benchmark.check == "math":
        without = [problem.id for problem in problems if not gold_answer(problem.row["answer"])]
        _refuse(benchmark, without, f"no gold answer in column {columns['answer'][0]!r}", "one in each row")
    if benchmark.check == "code":
        without = [problem.id for problem in problems if not _has_tests(problem.row)]
        _refuse(benchmark, without, f"no tests in {list(columns['tests'])}", "some in each row")
    twice = [name for name, count in Counter(problem.id for problem in problems).items() if count > 1]
    _refuse(benchmark, twice, "ids that occur more than once", "another one in each row")


def _refuse(benchmark: Benchmark, ids: Sequence[str], what: str, expected: str) -> None:
    if ids:
        named = ", ".join(map(repr, ids[:MAX_NAMED])) + (", ..." if len(ids) > MAX_NAMED else "")
        raise ValueError(
            f"benchmark {benchmark.name!r}: {what}: {named} ({len(ids)} in all); expected {expected}; correct or "
            "remove them, or say in its `columns` where to look."
        )


def _has_tests(row: Mapping[str, Any]) -> bool:
    try:
        read_tests(row)
    except ValueError:
        return False
    return True


def _draw(problems: list[Problem], limit: int | None, seed: int) -> list[Problem]:
    order = list(range(len(problems)))
    random.Random(seed).shuffle(order)
    return [problems[place] for place in sorted(order[:limit])]


def _read(source: Source) -> tuple[list[Row], str]:
    path = Path(source.path).expanduser()
    name = path.name.removesuffix(".gz")
    if path.exists() or Path(name).suffix in READERS or source.path.startswith(("/", ".", "~")):
        return _read_file(path, name)
    try:
        commit = source.revision or HfApi().dataset_info(source.path).sha
        rows = load_dataset(source.path, name=source.config, split=source.split, revision=commit)
    except (OSError, ValueError, DatasetGenerationError) as error:
        raise ValueError(
            f"dataset {source.path!r}, config {source.config!r}, split {source.split!r}, revision "
            f"{source.revision!r}: cannot be loaded from the Hub ({' '.join(str(error).split())}); expected a dataset "
            "that is there, or in the cache with its revision; give a file instead where there is no network."
        ) from error
    return [dict(row) for row in rows], f"{source.path}@{commit}"


def _read_file(path: Path, name: str) -> tuple[list[Row], str]:
    read = READERS.get(Path(name).suffix)
    if read is None or not path.is_file():
        why = "no such file" if not path.exists() else "not a kind of file that can be read"
        raise ValueError(f"{str(path)!r}: {why}; expected one that ends in {list(READERS)}, or so with .gz behind.")
    try:
        raw = path.read_bytes()
        rows = read(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except (OSError, EOFError, ValueError) as error:
        raise ValueError(f"{str(path)!r}: cannot be read ({error}); expected rows with named columns.") from error
    return rows, f"{path} sha256:{hashlib.sha256(raw).hexdigest()}"


def _json_rows(content: bytes) -> list[Row]:
    """Rows of a JSON list, or of JSON Lines."""
    text = content.decode("utf-8-sig")
    if text.lstrip().startswith("["):
        rows = json.loads(text)
    else:
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("not every row is a JSON object")
    return rows


def _csv_rows(content: bytes) -> list[Row]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))


def _parquet_rows(content: bytes) -> list[Row]:
    from pyarrow.parquet import read_table  # type: ignore[import-untyped]

    return read_table(io.BytesIO(content)).to_pylist()


READERS: dict[str, Callable[[bytes], list[Row]]] = {
    ".jsonl": _json_rows,
    ".json": _json_rows,
    ".csv": _csv_rows,
    ".parquet": _parquet_rows,
}
"""By the end of the file's name."""
