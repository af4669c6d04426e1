"""docs/reference/metrics.md lists every metric that the trainer adds to TRL's, and says what a bad value looks like."""

import re
from pathlib import Path

import pytest
from scripted import scripted_trainer
from test_turn_rewards import SCRIPT, Judge
from trl import GRPOConfig, GRPOTrainer

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def documented():
    """Patterns of the metrics in the first column of the tables: `a/b/c`, `/d` is a/b/c and a/b/d; `<x>` any part."""
    patterns = []
    for row in re.findall(r"^\| (`[^|]*) \|", PAGE.read_text(), re.MULTILINE):
        last = ""
        for name in re.findall(r"`([^`]+)`", row):
            last = last.rsplit("/", 1)[0] + name if name.startswith("/") else name
            patterns.append(re.sub(r"<\w+>", "[^/]+", re.escape(last).replace(r"\<", "<").replace(r"\>", ">")))
    return patterns


def logged(trainer):
    trainer.train()
    return {key for log in trainer.state.log_history for key in log}


def is_documented(key):
    return any(re.fullmatch(pattern, key) for pattern in documented())


@pytest.mark.slow
def test_every_metric_that_we_add_is_listed(make_trainer, tmp_path):
    plain = logged(make_trainer(cls=GRPOTrainer, config_cls=GRPOConfig, output_dir=str(tmp_path / "plain")))
    ours = logged(make_trainer(output_dir=str(tmp_path / "one")))
    ours |= logged(make_trainer(output_dir=str(tmp_path / "two"), dynamic_sampling=1))
    for number, estimator in enumerate(["gigpo", "turn_ppo", "spa_rl"]):
        ours |= logged(
            scripted_trainer(
                tmp_path / str(number), SCRIPT, environment_factory=Judge, turn_estimator=estimator, kinds="mixed"
            )
        )
    tools = {"tools/call_frequency", "tools/failure_frequency"}  # TRL's, of its tool loop
    functions = {key for key in ours if re.fullmatch(r"rewards/\w+/(mean|std)", key)}  # TRL's, of reward functions
    added = ours - plain - tools - functions
    assert {"acpo/delta", "turns/count/mean", "critic/loss", "dynamic_sampling/rounds"} <= added
    assert sorted(key for key in added if not is_documented(key)) == []


def test_every_listed_metric_has_a_formula():
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    assert len(rows) > 25
    assert all(formula.strip() for _, formula in rows)
