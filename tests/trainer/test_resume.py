"""k steps + resume + k steps equal 2k steps, bit for bit."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

WINDOWS = {
    "plain": {},
    "several steps a generation": {"steps_per_generation": 4, "gradient_accumulation_steps": 1},
    "several iterations": {"num_iterations": 3, "gradient_accumulation_steps": 2},
    "both, logged now and then": {
        "num_iterations": 2,
        "steps_per_generation": 2,
        "gradient_accumulation_steps": 1,
        "logging_steps": 4,
    },
    "second epoch": {"num_prompts": 4},
}


def run(make_trainer, folder, settings, resume=None, **more):
    settings = dict(settings)
    prompts = [f"{i}+{i}=" for i in range(settings.pop("num_prompts", 16))]
    trainer = make_trainer(
        prompts=prompts,
        output_dir=str(folder),
        save_strategy="steps",
        max_steps=6,
        log_completions=True,
        **settings,
        **more,
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


TIMES = ("step_time", "train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos", "train_loss")


def logs_from(trainer, step):
    return [
        {k: v for k, v in log.items() if k not in TIMES}
        for log in trainer.state.log_history
        if log["step"] > step and "reward" in log
    ]


@pytest.mark.parametrize(
    "name", [name if name == "several iterations" else pytest.param(name, marks=pytest.mark.slow) for name in WINDOWS]
)
def test_resumed_run_equals_an_uninterrupted_one(make_trainer, tmp_path, name):
    whole = run(make_trainer, tmp_path / "whole", WINDOWS[name], save_steps=3)
    resumed = run(
        make_trainer, tmp_path / "resumed", WINDOWS[name], save_steps=3, resume=str(tmp_path / "whole" / "checkpoint-3")
    )
    for (key, expected), got in zip(whole.model.state_dict().items(), resumed.model.state_dict().values(), strict=True):
        assert torch.equal(expected, got), key
    # A log that began before the checkpoint holds the loss of the remaining steps only; all else agrees.
    skip = ("loss",) if WINDOWS[name].get("logging_steps") else ()
    for expected, got in zip(logs_from(whole, 3), logs_from(resumed, 3), strict=True):
        assert {k: v for k, v in expected.items() if k not in skip} == {k: v for k, v in got.items() if k not in skip}


@pytest.mark.slow
def test_a_window_of_other_batch_settings_is_not_continued(make_trainer, tmp_path, caplog):
    settings = {"steps_per_generation": 4, "gradient_accumulation_steps": 1}
    run(make_trainer, tmp_path / "a", settings, save_steps=3)
    checkpoint = str(tmp_path / "a" / "checkpoint-3")
    caplog.clear()
    trainer = run(make_trainer, tmp_path / "b", {**settings, "num_generations": 4}, save_steps=6, resume=checkpoint)
    assert "not bit for bit" in caplog.text
    assert trainer.state.global_step == 6
    assert trainer._step == 6


@pytest.mark.slow
def test_a_checkpoint_without_a_window_keeps_the_rhythm_of_generation(make_trainer, tmp_path, caplog):
    settings = {"steps_per_generation": 4, "gradient_accumulation_steps": 1}
    run(make_trainer, tmp_path / "a", settings, save_steps=3)
    os.remove(tmp_path / "a" / "checkpoint-3" / "generation_window_0.pt")
    caplog.clear()
    trainer = run(make_trainer, tmp_path / "b", settings, save_steps=6, resume=str(tmp_path / "a" / "checkpoint-3"))
    assert "generated anew" in caplog.text
    assert trainer._step == 6


@pytest.mark.slow
def test_rollouts_of_a_killed_run_are_not_written_into_the_new_table(make_trainer, tmp_path):
    settings = {"steps_per_generation": 4, "gradient_accumulation_steps": 1}
    run(make_trainer, tmp_path / "a", settings, save_steps=3)
    resumed = run(make_trainer, tmp_path / "b", settings, save_steps=6, resume=str(tmp_path / "a" / "checkpoint-3"))
    assert len(resumed._logs["advantages"]) == 16  # the second window only; its last rows are not used yet
    assert sum(advantage != advantage for advantage in resumed._logs["advantages"]) == 8


@pytest.mark.slow
def test_windows_are_stored_only_while_open(make_trainer, tmp_path):
    run(make_trainer, tmp_path / "open", {"steps_per_generation": 4, "gradient_accumulation_steps": 1}, save_steps=3)
    run(make_trainer, tmp_path / "shut", {}, save_steps=3)
    windows = [torch.load(tmp_path / n / "checkpoint-3" / "generation_window_0.pt") for n in ("open", "shut")]
    assert windows[0]["rollouts"] is not None
    assert windows[1]["rollouts"] is None


@pytest.mark.slow
def test_resume_after_kill_between_saves_equals_an_uninterrupted_run(make_trainer, tmp_path):
    """The child dies by SIGKILL after step 5; its last checkpoint is of step 3, inside a generation window."""
    script = Path(__file__).parent / "killed_run.py"
    folder = tmp_path / "killed"
    child = subprocess.run([sys.executable, str(script), str(folder), "5"], capture_output=True, text=True, timeout=300)
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert sorted(p.name for p in folder.glob("checkpoint-*")) == ["checkpoint-3"]
    settings = WINDOWS["several steps a generation"]
    resumed = run(make_trainer, folder, settings, save_steps=3, resume=str(folder / "checkpoint-3"))
    whole = run(make_trainer, tmp_path / "whole", settings, save_steps=3)
    for (key, expected), got in zip(whole.model.state_dict().items(), resumed.model.state_dict().values(), strict=True):
        assert torch.equal(expected, got), key
