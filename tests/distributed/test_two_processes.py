"""Two processes train as one does, with groups that span them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CONFIG = HERE.parents[1] / "configs" / "accelerate" / "cpu2.yaml"
LOSSES = ["grpo", "dapo", "sapo", "turns"]
# Speed, and statistics that TRL averages over processes instead of tokens or rows.
NOT_COMPARED = ("step_time", "runtime", "per_second", "flos", "train_loss")


def launch(processes, script, *arguments):
    command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(CONFIG)]
    command += ["--num_processes", str(processes), "--main_process_port", "0", str(HERE / script), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two_processes")
    for processes in (1, 2):
        launch(processes, "fixed_rollouts.py", str(folder / f"{processes}.json"), *LOSSES)
    results = [json.loads((folder / f"{processes}.json").read_text()) for processes in (1, 2)]
    assert [result["num_processes"] for result in results] == [1, 2]
    return results


@pytest.mark.slow
@pytest.mark.parametrize("loss_type", LOSSES)
def test_two_processes_give_the_advantages_of_one(runs, loss_type):
    one, two = (run[loss_type]["advantages"] for run in runs)
    assert len(one) == len(two) == 8
    for expected, got in zip(one, two, strict=True):
        assert got == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert max(abs(a) for row in one for a in row) > 0.1


@pytest.mark.slow
def test_turns_of_a_completion_have_advantages_of_their_own_on_every_process(runs):
    for run in runs:
        assert run["turns"]["logs"][0]["turns/count/max"] == 3
        assert run["turns"]["logs"][0]["turns/count/min"] == 1
        assert 0 < run["turns"]["logs"][0]["turns/advantage_share/process"] < 1
        assert any(len({round(a, 5) for a in row if a}) > 1 for row in run["turns"]["advantages"])


@pytest.mark.slow
@pytest.mark.parametrize("loss_type", LOSSES)
def test_two_processes_give_loss_gradient_norm_and_metrics_of_one(runs, loss_type):
    one, two = (run[loss_type]["logs"] for run in runs)
    assert len(one) == len(two) == 4
    for expected, got in zip(one, two, strict=True):
        names = [name for name in expected if not name.endswith(NOT_COMPARED)]
        assert {n: got[n] for n in names} == {n: pytest.approx(expected[n], rel=1e-5, abs=1e-6) for n in names}
    assert one[0]["grad_norm"] > 0
    assert 0 < one[0]["acpo/delta"] < 1


@pytest.mark.slow
@pytest.mark.parametrize("loss_type", LOSSES)
def test_two_processes_end_with_the_weights_of_one(runs, loss_type):
    one, two = (run[loss_type]["weights"] for run in runs)
    assert two == {name: pytest.approx(value, rel=1e-5, abs=1e-4) for name, value in one.items()}


@pytest.mark.slow
def test_a_model_sharded_over_two_processes_has_the_loss_and_gradient_of_the_whole_one():
    assert launch(2, "sharded_loss.py").count("sharded loss and gradient equal the whole model's") == 2
