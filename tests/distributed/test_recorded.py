"""Two processes record what one does, each its own completions of a group."""

from collections import Counter

import pytest
from test_two_processes import launch

from acpo_trl.records import read_records

EXACT = ("step", "group", "sample", "chosen", "prompt", "rewards", "turn_rewards", "token_ids", "pieces", "turn_ids")
CLOSE = ("log_probs", "delta", "entropy", "advantage", "credit", "ratio", "turn_advantages")


@pytest.mark.slow
def test_two_processes_record_whole_groups_once_as_one_does(tmp_path):
    for processes in (1, 2):
        launch(processes, "recording_groups.py", str(tmp_path / str(processes)))
    one, two = (read_records(tmp_path / str(processes)) for processes in (1, 2))
    for records in (one, two):
        sizes = Counter((record.step, record.group) for record in records)
        assert set(sizes.values()) == {4} and {step for step, _ in sizes} == {0, 1, 2, 3, 4, 5}
        assert {record.chosen for record in records} == {"random", "best"}
        assert len({(record.step, record.group, record.sample) for record in records}) == len(records)
    ranks = {path.name.split("-")[3] for path in (tmp_path / "2" / "credit_log").iterdir()}
    assert ranks == {"0.parquet", "1.parquet"}
    spanning = {sample for record in two if record.group % 3 == 1 for sample in [record.sample]}
    assert spanning == {0, 1, 2, 3}
    for expected, got in zip(one, two, strict=True):
        assert {name: getattr(got, name) for name in EXACT} == {name: getattr(expected, name) for name in EXACT}
        for name in CLOSE:
            assert numbers(got, name) == pytest.approx(numbers(expected, name), rel=1e-3, abs=1e-4), name
        assert [value is None for value in got.credit] == [turn < 0 for turn in got.turn_ids]


def numbers(record, name):
    return [-1000.0 if value is None else value for value in getattr(record, name)]
