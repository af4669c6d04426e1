"""The report in a terminal, and what it reads of a run."""

import json

import pytest
from recorded import record

from acpo_trl.records import write_records
from acpo_trl.report import Run, demo_run, load_run, render_text
from acpo_trl.report.load import charts_of
from acpo_trl.report.text import bar, spark


def test_the_demo_shows_blame_to_the_left_and_praise_to_the_right():
    lines = render_text(demo_run()).splitlines()
    assert lines[0] == "Five turns, one failure"
    assert "      ############|              -0.7071  credit  1.593  search population Arford" in lines
    assert "                  |############   0.7071  credit   1.58  The answer is 40,000." in lines


def test_no_text_of_a_completion_reaches_the_terminal_as_a_command():
    text = render_text(Run("\x1b]0;title\x07", [record(pieces=["\x1b[31m", "a\n", "b\r", "\u202e", "c", "d"])]))
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(text)


def test_bars_and_sparks():
    assert bar(-1.0, 2.0) == "      ######|            "
    assert bar(None, 2.0) == "            |            "
    assert spark([0.0, 0.5, 1.0]) == "▁▅█"
    assert spark([2.0, 2.0]) == "▄▄"


def test_curves_are_those_of_the_log_and_unknown_values_are_left_out():
    log = [
        {"step": 1, "entropy": 0.5, "acpo/credit_positive": None, "turns/stop/done": 1.0, "loss": 3.0},
        {"step": 2, "entropy": float("nan"), "acpo/credit_positive": 1.5, "eval_gsm8k/mean@2": 0.25},
    ]
    assert charts_of(log) == {
        "entropy": {"entropy": [(1, 0.5)]},
        "credit by sign": {"acpo/credit_positive": [(2, 1.5)]},
        "stop reasons": {"turns/stop/done": [(1, 1.0)]},
        "benchmarks": {"eval_gsm8k/mean@2": [(2, 0.25)]},
    }


def test_a_run_is_read_with_the_newest_log(tmp_path):
    write_records(tmp_path / "credit_log", 0, 0, [record()])
    assert load_run(tmp_path).charts == {}
    (tmp_path / "checkpoint-5").mkdir()
    state = {"log_history": [{"step": 5, "entropy": 0.5}]}
    (tmp_path / "checkpoint-5" / "trainer_state.json").write_text(json.dumps(state))
    run = load_run(tmp_path)
    assert run.charts == {"entropy": {"entropy": [(5, 0.5)]}}
    assert run.title == f"{tmp_path.parent.name}/{tmp_path.name}"
    (tmp_path / "checkpoint-5" / "trainer_state.json").write_text("{")
    with pytest.raises(ValueError, match="is no state of a trainer"):
        load_run(tmp_path)
