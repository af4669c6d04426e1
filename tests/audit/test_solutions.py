"""Failed solutions from the files of four datasets."""

import gzip
import json

import pytest
from shared import shared_file

from acpo_trl.audit import load_solutions


def write(tmp_path, *rows, name="rows.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


STEPS = {"id": 7, "problem": "1+1=?", "steps": ["One", "and one", "is 3"]}


def test_steps_are_counted_from_0_or_in_mr_gsm8k_from_1(tmp_path):
    (solution,), without, _ = load_solutions(write(tmp_path, {**STEPS, "first_error": 2}))
    assert (solution.id, solution.problem, solution.first_error, solution.num_steps, without) == ("7", "1+1=?", 2, 3, 0)
    assert [segment.text for segment in solution.segments] == ["One", "and one", "is 3"]
    (solution,), _, _ = load_solutions(write(tmp_path, {**STEPS, "first_error": 3, "variant": "original"}))
    assert solution.first_error == 2


def test_solutions_without_error_or_with_the_right_answer_are_counted_and_left_out(tmp_path):
    rows = [{**STEPS, "first_error": error} for error in (-1, None, 0)]
    loaded = load_solutions(write(tmp_path, *rows, {**rows[2], "final_answer_correct": True}))
    assert [solution.first_error for solution in loaded.solutions] == [0]
    assert (loaded.num_without_error, loaded.num_right) == (2, 1)


def test_steps_of_an_agent_are_its_messages_and_what_it_was_shown_is_none(tmp_path):
    call = {"function": {"name": "search", "arguments": {"query": "é"}}}
    messages = [
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "found"},
        {"role": "assistant", "content": "He."},
    ]
    row = {"id": "a", "question": "Who?", "messages": messages, "step_labels": {"1": 1, "3": -1}}
    (solution,), _, _ = load_solutions(write(tmp_path, row, {**row, "step_labels": {"1": 0, "3": 1}}))
    assert [(segment.text, segment.step) for segment in solution.segments] == [
        ('<tool_call>{"arguments": {"query": "é"}, "name": "search"}</tool_call>', 0),
        ("found", None),
        ("He.", 1),
    ]
    assert (solution.first_error, solution.num_steps) == (1, 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"text": "x"}], r"has the columns \['text'\]; expected those of ProcessBench"),
        ([{**STEPS, "first_error": 3}], "row 0: first wrong step 3 of 3"),
        ([{**STEPS, "first_error": 1.5}], "row 0: first wrong step 1.5 of 3"),
        ([{**STEPS, "first_error": 0, "variant": "original"}], "row 0: first wrong step -1 of 3"),
        ([{**STEPS, "first_error": 1, "steps": "One"}], "row 0: cannot be read .*expected a list of texts"),
        ([{**STEPS, "first_error": 1}, {**STEPS, "steps": None, "first_error": 1}], "row 1: cannot be read"),
        ([], "has no rows"),
        ([[1]], "rows that are no objects"),
    ],
)
def test_files_that_cannot_be_are_refused(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        load_solutions(write(tmp_path, *rows))


def test_missing_and_broken_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        load_solutions(tmp_path / "absent.jsonl")
    (tmp_path / "broken.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n')[:-6])
    with pytest.raises(ValueError, match="cannot be read"):
        load_solutions(tmp_path / "broken.jsonl.gz")


@pytest.mark.parametrize(
    ("name", "num_failed", "num_without", "num_right"),
    [
        ("steps/processbench", 459, 321, 120),
        ("steps/mr_gsm8k", 243, 0, 9),
        ("steps/bigbench_mistake", 321, 38, 20),
        ("trajectories/agentprocessbench_hotpotqa", 31, 65, 9),
    ],
)
def test_the_published_files_load_as_they_are(name, num_failed, num_without, num_right):
    loaded = load_solutions(shared_file(f"data/{name}.jsonl.gz"))
    assert (len(loaded.solutions), loaded.num_without_error, loaded.num_right) == (num_failed, num_without, num_right)
