"""Records in files."""

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from acpo_trl.records import SCHEMA, Record, RewardEntry, TurnRewardEntry, read_records, store, write_records
from acpo_trl.records.store import drop_from, prune, record_files


def record(step=0, group=0, sample=0):
    """A completion of two turns around a token of the environment."""
    return Record(
        step=step,
        group=group,
        sample=sample,
        chosen="best",
        prompt="1+1=",
        stop_reason=None,
        is_truncated=False,
        rewards=[RewardEntry("math", "outcome", 0.5, 1.0), RewardEntry("judge", "process", 1.0, None)],
        turn_rewards=[TurnRewardEntry("outcome", [None, 0.5]), TurnRewardEntry("process", [None, None])],
        turn_estimator=None,
        credit_rule="acpo",
        token_ids=[5, 6, 7],
        pieces=["", "€", "b"],
        turn_ids=[0, -1, 1],
        log_probs=[-0.5, None, -2.0],
        delta=[0.25, None, 0.5],
        is_mode=[True, None, False],
        entropy=[0.0, None, 1.0],
        advantage=[0.5, None, -0.5],
        credit=[1.5, None, 0.5],
        ratio=[1.0, None, 1.0],
        turn_advantages=[0.5, -0.5],
        state_keys=[2**62, 3],
        action_keys=[4, -1],
    )


def test_columns_are_the_fields_of_a_record():
    assert SCHEMA.names == [field.name for field in dataclasses.fields(Record)]


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
def test_what_is_written_is_read_in_order_of_step_group_and_sample(tmp_path, file_format):
    folder = tmp_path / "credit_log"
    write_records(folder, 10, 0, [record(10, 1, 1), record(10, 1, 0)], file_format)
    write_records(folder, 9, 1, [record(9, 2, 3)], file_format)
    write_records(folder, 9, 0, [record(9, 2, 2)], file_format)
    expected = [record(9, 2, 2), record(9, 2, 3), record(10, 1, 0), record(10, 1, 1)]
    assert read_records(tmp_path) == read_records(folder) == expected
    assert read_records(folder / f"step-00000009-rank-1.{file_format}") == [record(9, 2, 3)]


def test_a_file_that_was_not_finished_is_not_read(tmp_path):
    write_records(tmp_path, 1, 0, [record(1)])
    whole = tmp_path / "step-00000001-rank-0.parquet"
    (tmp_path / ".step-00000002-rank-0.parquet.tmp").write_bytes(whole.read_bytes()[:-9])
    assert read_records(tmp_path) == [record(1)]
    assert len(pd.read_parquet(tmp_path)) == 1


def test_a_process_that_dies_while_it_writes_leaves_no_half_a_file(tmp_path, monkeypatch):
    def fail(table, where, **kwargs):
        Path(where).write_bytes(b"PAR1")
        raise OSError("disk full")

    monkeypatch.setattr(store.parquet, "write_table", fail)
    with pytest.raises(OSError, match="disk full"):
        write_records(tmp_path, 1, 0, [record(1)])
    assert record_files(tmp_path) == []


def test_the_oldest_files_of_all_processes_make_room_and_the_newest_step_stays(tmp_path):
    for step in (2, 100000000, 30):
        for rank in (0, 1):
            write_records(tmp_path, step, rank, [record(step)])
    size = sum(path.stat().st_size for path in record_files(tmp_path)) / 6

    def left():
        return [path.name for path in record_files(tmp_path)]

    prune(tmp_path, int(size * 6.5))
    assert len(left()) == 6
    prune(tmp_path, int(size * 3.5))
    assert left() == [f"step-{name}.parquet" for name in ("00000030-rank-1", "100000000-rank-0", "100000000-rank-1")]
    prune(tmp_path, 1)
    assert left() == ["step-100000000-rank-0.parquet", "step-100000000-rank-1.parquet"]


def test_records_from_a_step_on_are_dropped(tmp_path):
    for step in (0, 3, 4, 10):
        write_records(tmp_path, step, 0, [record(step)])
    drop_from(tmp_path, 4)
    assert [each.step for each in read_records(tmp_path)] == [0, 3]
    drop_from(tmp_path / "none", 0)


def test_a_folder_without_records_and_a_broken_file_are_named(tmp_path):
    with pytest.raises(ValueError, match="holds no records of credit"):
        read_records(tmp_path)
    path = Path(write_records(tmp_path, 1, 0, [record(1)], "jsonl"))
    path.write_text('{"step": 1}\n')
    with pytest.raises(ValueError, match=r"has the columns \['step'\]; expected those of a record"):
        read_records(tmp_path)
    path.write_text("{")
    with pytest.raises(ValueError, match="cannot be read as records"):
        read_records(tmp_path)
