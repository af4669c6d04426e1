"""Accuracy, plot and the quick start from end to end."""

import json
import subprocess
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from acpo_trl.quickstart import build_start
from acpo_trl.quickstart.__main__ import SINGLE_TURN, report
from acpo_trl.quickstart.accuracy import Accuracy, score, wilson
from acpo_trl.quickstart.plot import draw, draw_metrics

REPOSITORY = Path(__file__).parents[2]


def test_wilson_interval_of_half_and_of_all():
    half, full = wilson(0.5, 100), wilson(1.0, 10)
    assert (half.low, half.high) == pytest.approx((0.4038, 0.5962), abs=5e-5)
    assert (full.low, full.high) == pytest.approx((0.7225, 1.0), abs=5e-5)


def test_answers_to_one_problem_stand_side_by_side():
    answers = ["\\boxed{3}", "\\boxed{4}", "1+2=3\n\\boxed{12}", "no idea"]
    assert score(answers, [{"solution": "3"}, {"solution": "12"}]).mean == 0.5


def test_a_metric_that_was_not_logged_is_left_out():
    axis = Figure().subplots()
    draw_metrics(axis, [{"step": 5, "reward": 0.2}, {"step": 10, "reward": None}, {"step": 15}], {"reward": "reward"})
    assert axis.lines[0].get_xydata().tolist() == [[5.0, 0.2]]


@pytest.mark.slow
def test_plot_of_a_run_that_logged_nothing_is_still_a_picture(tmp_path):
    accuracy = {"sampled": Accuracy(0.5, 0.4, 0.6)}
    draw([{"step": 1, "train_loss": 0.1}], {"before": accuracy, "after": accuracy}, "title", tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_quick_start_trains_and_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    build_start(SINGLE_TURN.root / "start", seed=0, num_steps=20)
    launch = ["accelerate", "launch", "--num_processes", "1", str(REPOSITORY / "scripts/train.py")]
    options = ["--config", str(REPOSITORY / "configs/quickstart.yaml"), "--max_steps", "2", "--logging_steps", "1"]
    subprocess.run([*launch, *options], check=True)
    run = SINGLE_TURN.root / "run"
    log = json.loads((run / "trainer_state.json").read_text())["log_history"]
    assert [0 < entry["acpo/mode_rate"] < 1 for entry in log if "reward" in entry] == [True, True]
    report(SINGLE_TURN, run)
    output = capsys.readouterr().out
    assert "Accuracy on 300 held-out problems" in output
    assert output.count("points") == 2
    assert Path("outputs/quickstart/plot.png").read_bytes().startswith(b"\x89PNG")
