"""Records in files: Parquet, or JSON Lines with the same columns."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

from .schema import FOLDER, SCHEMA, Record, RewardEntry, TurnRewardEntry

FORMATS = ("parquet", "jsonl")
_NAME = re.compile(r"step-(\d+)-rank-(\d+)\.(parquet|jsonl)")


def write_records(folder: Path, step: int, rank: int, records: Sequence[Record], file_format: str = "parquet") -> Path:
    """Write what one process recorded of a step into a file of its own, which is there as a whole or not at all.

    Args:
        folder: made if it is not there.
        step: of the records.
        rank: of the process.
        records: of one step.
        file_format: of `FORMATS`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step:08d}-rank-{rank}.{file_format}"
    temporary = path.with_name(f".{path.name}.tmp")  # which readers of folders pass over
    table = pa.Table.from_pylist([asdict(record) for record in records], schema=SCHEMA)
    if file_format == "parquet":
        parquet.write_table(table, temporary, compression="zstd")
    else:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
        temporary.write_text(lines, encoding="utf-8")
    temporary.replace(path)
    return path


def record_files(folder: Path) -> list[Path]:
    """The files of records in a folder, by step and process."""
    named = [(match, path) for path in folder.glob("step-*") if (match := _NAME.fullmatch(path.name))]
    return [path for _, path in sorted(named, key=lambda pair: (int(pair[0][1]), int(pair[0][2])))]


def _step_of(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    assert match is not None
    return int(match[1])


def drop_from(folder: Path, step: int) -> None:
    """Remove the records of a step and of all later ones."""
    for path in record_files(folder):
        if _step_of(path) >= step:
            path.unlink(missing_ok=True)


def prune(folder: Path, max_bytes: int) -> None:
    """Remove the oldest files of records until the others take no more than so many bytes; the newest step stays."""
    sizes = {path: path.stat().st_size for path in record_files(folder)}
    total, files = sum(sizes.values()), list(sizes)
    while total > max_bytes and files and _step_of(files[0]) != _step_of(files[-1]):
        oldest = files.pop(0)
        oldest.unlink(missing_ok=True)
        total -= sizes[oldest]


def read_records(run: str | os.PathLike[str]) -> list[Record]:
    """The records of a run, by step, group and sample.

    Args:
        run: the output folder of the run, its folder of records, or one file of them.

    Raises:
        ValueError: there are none, or a file is no record.
    """
    where = Path(run)
    folder = where / FOLDER if (where / FOLDER).is_dir() else where
    files = [where] if where.is_file() else record_files(folder) if folder.is_dir() else []
    records = [record_of(row, path) for path in files for row in _rows(path)]
    if not records:
        raise ValueError(
            f"{str(where)!r}: holds no records of credit; expected the output folder of a run with `credit_log`; set "
            "credit_log in its config, or name another folder."
        )
    return sorted(records, key=lambda record: (record.step, record.group, record.sample))


def record_of(row: dict[str, Any], path: Path) -> Record:
    """The record that a row of a file says."""
    if row.keys() != set(SCHEMA.names):
        raise ValueError(
            f"{str(path)!r}: has the columns {sorted(row)}; expected those of a record, {SCHEMA.names}; was it written "
            "by another version?"
        )
    rewards = [RewardEntry(**entry) for entry in row["rewards"]]
    turn_rewards = [TurnRewardEntry(**entry) for entry in row["turn_rewards"]]
    return Record(**{**row, "rewards": rewards, "turn_rewards": turn_rewards})


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    try:
        if path.suffix == ".parquet":
            return parquet.read_table(path).to_pylist()
        with path.open(encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ValueError(f"{str(path)!r}: cannot be read as records ({error}); remove it.") from error
