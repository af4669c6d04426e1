"""Two processes evaluate as one does."""

import json

import pytest
from test_two_processes import launch

from acpo_trl.evaluation.samples import read_samples


@pytest.mark.slow
def test_two_processes_give_the_samples_and_numbers_of_one_each_sample_once(tmp_path):
    rows = [{"id": f"s{i}", "problem": f"{i}+{i}=", "answer": str(2 * i)} for i in range(9)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for processes in (1, 2):
        launch(processes, "evaluated.py", str(tmp_path / "sums.jsonl"), str(tmp_path / str(processes)))
    one, two = (read_samples(tmp_path / name / "samples.jsonl") for name in "12")
    assert [(s.problem_id, s.sample_index) for s in two] == [(f"s{i}", j) for i in range(9) for j in range(3)]
    assert [s._replace(seconds=0.0) for s in two] == [s._replace(seconds=0.0) for s in one]
    results = [(tmp_path / name / "results.json").read_bytes() for name in "12"]
    assert results[0] == results[1]
    assert sorted(path.name for path in (tmp_path / "2").iterdir()) == [
        "evaluation.json",
        "results.json",
        "results.md",
        "samples.jsonl",
    ]
