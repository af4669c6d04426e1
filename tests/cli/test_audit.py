"""`acpo-trl audit`."""

import json

import pytest

from acpo_trl.cli.audit import run


def audit(*arguments):
    run([str(argument) for argument in arguments], "acpo-trl audit")


@pytest.fixture
def data(write_rows):
    rows = [{"id": i, "problem": f"{i}+1=?", "steps": ["One", "two", "3"], "first_error": i % 3} for i in range(5)]
    return write_rows(
        *rows, {"id": 9, "problem": "?", "steps": ["x"], "first_error": 0}, {**rows[0], "first_error": -1}
    )


def test_a_table_is_printed_and_kept(model_dir, data, tmp_path, capsys):
    audit("--model", model_dir, "--data", data, "--output_dir", tmp_path / "out")
    said = capsys.readouterr().out
    assert "5 failed solutions of two steps or more; 1 without a wrong step, 0 with a wrong step and the right" in said
    assert "5 failed solutions of rows.jsonl under" in said
    content = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert (content["num_solutions"], content["left_out"], content["seed"]) == (5, {}, 0)
    rows = content["rows"]
    chance = next(row for row in rows if row["signal"] == "nothing")
    assert (chance["top1"]["mean"], chance["auc"]["mean"]) == (pytest.approx(1 / 3), 0.5)
    assert (tmp_path / "out" / "audit.md").read_text().startswith("| blame | pooled by |")


def test_a_limit_draws_the_same_solutions_for_a_seed(model_dir, data, tmp_path):
    for name, seed in (("a", 0), ("b", 0)):
        audit("--model", model_dir, "--data", data, "--limit", 2, "--seed", seed, "--output_dir", tmp_path / name)
    tables = [json.loads((tmp_path / name / "audit.json").read_text())["rows"] for name in "ab"]
    assert tables[0] == tables[1]
    assert tables[0][0]["auc"]["num_solutions"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "absent.jsonl"], "cannot be read"),
        (["--data", "{data}", "--limit", "0"], "limit 0: expected 1 or more"),
        (["--data", "{data}", "--model", "/absent"], "no configuration could be loaded"),
    ],
)
def test_mistakes_are_told_in_one_line(model_dir, data, arguments, message):
    with pytest.raises(SystemExit, match=message):
        audit("--model", model_dir, *(argument.format(data=data) for argument in arguments))


def test_solutions_that_are_all_too_long_are_told(model_dir, write_rows):
    rows = write_rows({"id": 1, "problem": "?", "steps": ["x" * 5000, "y"], "first_error": 0})
    with pytest.raises(SystemExit, match="no solution could be judged; left out: 1 longer than the model can read"):
        audit("--model", model_dir, "--data", rows)
