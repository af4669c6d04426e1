"""What is measured on held-out tasks of several turns, and the quick start with them from end to end."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from acpo_trl.quickstart.__main__ import MULTI_TURN, report
from acpo_trl.quickstart.accuracy import TEMPERATURE
from acpo_trl.quickstart.episodes import MAX_COMPLETION_LENGTH, ROLLOUT, mean_estimate, summarize
from acpo_trl.quickstart.lookup import build_lookup_start

REPOSITORY = Path(__file__).parents[2]
CONFIG = REPOSITORY / "configs/quickstart_multi_turn.yaml"


def test_success_turns_and_invalid_calls_are_counted():
    right = [{"outcome": None, "format": 0.0}, {"outcome": 1.0, "format": 0.0}]
    wrong = [{"outcome": None, "format": -1.0}, {"outcome": None, "format": -1.0}, {"outcome": 0.0, "format": 0.0}]
    without_answer = [{"outcome": None, "format": 0.0}]
    measured = summarize([right, wrong, without_answer, right])
    assert measured["success"].mean == 0.5
    assert measured["turns"].mean == 2.0
    assert measured["invalid"].mean == 0.25


def test_interval_of_a_mean():
    estimate = mean_estimate([2, 4, 2, 4])  # standard error 1.1547 / 2
    assert (estimate.mean, estimate.low, estimate.high) == pytest.approx((3.0, 1.8684, 4.1316), abs=5e-5)
    assert (str(estimate), estimate.change_to(mean_estimate([2, 3]))) == ("  3.00 [1.87, 4.13]", "-0.50")


def test_models_are_measured_under_the_limits_of_training():
    config = yaml.safe_load(CONFIG.read_text())
    assert config["rollout"] == ROLLOUT
    assert config["max_completion_length"] == MAX_COMPLETION_LENGTH
    assert config.get("temperature", 1.0) == TEMPERATURE


@pytest.mark.slow
def test_quick_start_of_several_turns_trains_and_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    build_lookup_start(MULTI_TURN.root / "start", seed=0, num_steps=60)
    launch = ["accelerate", "launch", "--num_processes", "1", str(REPOSITORY / "scripts/train.py")]
    options = ["--config", str(CONFIG), "--max_steps", "2", "--logging_steps", "1"]
    subprocess.run([*launch, *options], check=True)
    run = MULTI_TURN.root / "run"
    log = json.loads((run / "trainer_state.json").read_text())["log_history"]
    steps = [entry for entry in log if "reward" in entry]
    assert [entry["turns/count/max"] > 1 for entry in steps] == [True, True]
    kinds = ("outcome", "process", "cost", "format")
    assert [sum(entry[f"turns/advantage_share/{kind}"] for kind in kinds) for entry in steps] == pytest.approx([1, 1])
    report(MULTI_TURN, run)
    output = capsys.readouterr().out
    assert "300 held-out tasks" in output
    assert [line.split()[0] for line in output.splitlines() if " before " in line] == ["success", "turns", "invalid"]
    assert Path("outputs/quickstart_multi_turn/plot.png").read_bytes().startswith(b"\x89PNG")
