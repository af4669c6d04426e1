"""The training script, from a command line to a model on disk."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, call

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from acpo_trl.cli.parse import parse
from acpo_trl.cli.train import main, make_parser, prepare, run, save

REPOSITORY = Path(__file__).parents[2]


def train(arguments, *more):
    main(*parse(make_parser, [*arguments, *more]))


def spread(completions, **kwargs):
    """A reward that differs between completions, so that every step has a gradient."""
    return [float(sum(map(ord, completion[-1]["content"]))) for completion in completions]


def two_short(completions, **kwargs):
    return [0.0] * (len(completions) - 2)


@pytest.fixture
def no_trainer(monkeypatch):
    """Fail the test when the trainer, which loads the model, is built."""

    def fail(**kwargs):
        pytest.fail("the model was about to be loaded")

    monkeypatch.setattr("acpo_trl.trainer.ACPOTrainer", fail)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--reward_funcs", "maths"], "did you mean 'math'"),
        (["--reward_funcs", "math", "--reward_weights", "1", "2"], "2 weights for 1 rewards"),
        (["--reward_funcs", "math", "--prompt_column", "q"], "prompt_column 'q': no such column"),
        (["--reward_funcs", "math", "--answer_column", "gold"], "answer_column 'gold': no such column"),
        (["--reward_funcs", "math", "--dataset_name", "absent.jsonl"], "no such file or folder"),
        (["--reward_funcs", "math", "--model_name_or_path", "/absent/model"], "no tokenizer could be loaded"),
        (["--reward_funcs", "trl.rewards.get_soft_overlong_punishment"], "missing a required argument"),
        (["--reward_funcs", "math", "--resume_from_checkpoint", "/absent"], "holds no readable trainer_state.json"),
    ],
)
def test_mistake_is_reported_before_the_model_is_loaded(arguments, no_trainer, more, message):
    with pytest.raises(ValueError, match=message):
        train(arguments, *more)


def test_empty_dataset_is_reported_before_the_model_is_loaded(arguments, no_trainer, write_rows):
    with pytest.raises(ValueError, match="empty: there is nothing to train on"):
        train(arguments, "--reward_funcs", "math", "--dataset_name", write_rows(name="empty.jsonl"))


@pytest.mark.slow
def test_reward_of_wrong_length_is_named_at_the_first_rollout(arguments, tmp_path):
    with pytest.raises(
        ValueError, match=r"reward function 'two_short' returned 2 rewards; expected a list of 4 numbers"
    ):
        train(arguments, "--reward_funcs", f"{__name__}.two_short")
    assert not (tmp_path / "run" / "checkpoint-1").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--credit_rul", "acpo"], "error: unknown argument '--credit_rul'; did you mean '--credit_rule'?"),
        (
            ["--num_generations", "3"],
            "error: generation_batch_size (4) must be divisible by num_generations (3). A generation batch is "
            "per_device_train_batch_size x processes x steps_per_generation (by default gradient_accumulation_steps) "
            "completions: change one of these, or set num_generations to a divisor.",
        ),
        (["--config", "absent.yaml"], "error: [Errno 2] No such file or directory: 'absent.yaml'"),
    ],
)
def test_mistake_on_the_command_line_ends_with_one_line(arguments, more, message):
    with pytest.raises(SystemExit) as exit_:
        run([*arguments, *more], "acpo-trl train")
    assert exit_.value.code == f"acpo-trl train: {message}"


def test_run_saves_model_tokenizer_state_and_card(arguments, model_dir, tmp_path):
    train(arguments, "--reward_funcs", f"{__name__}.spread", "--learning_rate", "1e-2")
    saved = tmp_path / "run"
    before = load_file(f"{model_dir}/model.safetensors")
    after = AutoModelForCausalLM.from_pretrained(saved).state_dict()
    assert not torch.equal(before["model.norm.weight"], after["model.norm.weight"])
    assert AutoTokenizer.from_pretrained(saved).eos_token == "<|im_end|>"
    state = json.loads((saved / "trainer_state.json").read_text())
    assert state["global_step"] == 2 and "acpo/delta" in state["log_history"][0]
    card = (saved / "README.md").read_text()
    assert "# Model Card for run" in card and "2607.03126" in card and "- acpo" in card and "- TRL: " in card


@pytest.mark.parametrize(("dataset", "named"), [("you/problems", "you/problems"), (__file__, None), (None, None)])
def test_push_names_hub_datasets_only_and_comes_before_the_end(tmp_path, dataset, named):
    trainer = Mock(args=SimpleNamespace(output_dir=str(tmp_path / "run"), push_to_hub=True))
    save(trainer, dataset)
    calls = [made for made in trainer.mock_calls if made[0] != "accelerator.print"]
    assert calls == [
        call.save_model(str(tmp_path / "run")),
        call.save_state(),
        call.create_model_card(model_name="run", dataset_name=named),
        call.push_to_hub(dataset_name=named),
        call.accelerator.free_memory(),
        call.end(),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(REPOSITORY.glob("configs/methods/*.yaml")), ids=lambda path: path.stem)
def test_every_method_config_trains(arguments, tmp_path, method):
    # A random model hardly ever ends a completion, and DAPO would mask all of them.
    options = ["--mask_truncated_completions", "false", "--save_strategy", "no"]
    train(arguments, "--config", str(method), "--reward_funcs", f"{__name__}.spread", *options)
    history = json.loads((tmp_path / "run" / "trainer_state.json").read_text())["log_history"]
    assert history[0]["grad_norm"] > 0 and history[1]["step"] == 2


@pytest.mark.slow
def test_run_takes_a_dataset_like_humaneval_and_weights_of_entries(arguments, write_rows, tmp_path):
    row = {"prompt": "def one():\n", "entry_point": "one", "test": "assert one() == 1", "canonical_solution": "x"}
    code = {"name": "code", "weight": 2.0, "options": {"sandbox": "process"}}
    options = ["--prompt_template", "Complete: {prompt}", "--max_steps", "1", "--save_strategy", "no"]
    funcs = ["--reward_funcs", json.dumps(code), f"{__name__}.spread"]
    trainer, _ = prepare(*parse(make_parser, [*arguments, "--dataset_name", write_rows(row, row), *options, *funcs]))
    assert trainer.args.reward_weights == [2.0, 1.0]
    trainer.train()
    assert trainer.state.log_history[0]["rewards/code/mean"] == 0.0


@pytest.mark.slow
def test_evaluation_split_is_evaluated(arguments, write_rows, tmp_path):
    for name in ("train", "test"):
        write_rows({"problem": "1+1=", "answer": "2"}, name=f"data/{name}.jsonl")
    options = ["--eval_strategy", "steps", "--eval_steps", "1", "--per_device_eval_batch_size", "4", "--max_steps", "1"]
    train(arguments, "--dataset_name", str(tmp_path / "data"), "--reward_funcs", "math", *options)
    history = json.loads((tmp_path / "run" / "trainer_state.json").read_text())["log_history"]
    assert any("eval_rewards/math/mean" in entry for entry in history)


@pytest.mark.slow
def test_command_trains_resumes_and_skips_an_interrupted_save(arguments, tmp_path):
    command = [sys.executable, "-m", "acpo_trl.cli.main", "train", *arguments, "--reward_funcs", "math", "format"]
    first = subprocess.run(command, capture_output=True, text=True)
    assert first.returncode == 0, first.stderr
    (tmp_path / "run" / "checkpoint-3").mkdir()
    more = ["--max_steps", "4", "--resume_from_checkpoint", "auto"]
    second = subprocess.run([*command, *more], capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    assert "Skipping" in second.stdout and "Resuming from" in second.stdout and "checkpoint-2." in second.stdout
    history = json.loads((tmp_path / "run" / "trainer_state.json").read_text())["log_history"]
    assert [entry["step"] for entry in history if "loss" in entry] == [1, 2, 3, 4]


@pytest.mark.slow
def test_script_runs_on_two_processes(arguments, tmp_path):
    config = REPOSITORY / "configs" / "accelerate" / "cpu2.yaml"
    launch = ["-m", "accelerate.commands.launch", "--config_file", config, "--main_process_port", "0"]
    # A group of 4 completions at 2 a process: one process alone would refuse to start.
    options = ["--num_generations", "4", "--per_device_train_batch_size", "2", "--reward_funcs", "math"]
    command = [sys.executable, *launch, REPOSITORY / "scripts" / "train.py", *arguments, *options]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert json.loads((tmp_path / "run" / "trainer_state.json").read_text())["global_step"] == 2
    assert run.stdout.count("saved to") == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--reward_funcs", "format", "--dataset_name", "absent.jsonl"], "no such file or folder"),
        (["--reward_funcs", "maths"], "did you mean 'math'"),
        (["--config", "broken.yaml"], r"broken\.yaml: is no valid YAML"),
    ],
)
def test_mistake_in_data_rewards_or_yaml_ends_with_one_line(arguments, tmp_path, monkeypatch, more, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.yaml").write_text("a: [1\nb: 2\n")
    with pytest.raises(SystemExit, match=message):
        run([*arguments, *more], "acpo-trl train")
