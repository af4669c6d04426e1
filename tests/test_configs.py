"""Every file under configs/ against the parsers that read it, by way of its own launch line.

Settings that only a GPU can take are switched off (`--bf16 false --use_cpu true`): this checks keys, values and their
combination, not that a GPU run works.
"""

import dataclasses
import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import launch_command_parser
from trl import GRPOConfig, ScriptArguments, get_peft_config

from acpo_trl import ACPOConfig
from acpo_trl.advantages import TURN_ESTIMATORS
from acpo_trl.cli.parse import parse
from acpo_trl.cli.rewards import load_rewards
from acpo_trl.cli.train import ACPOScriptArguments, make_parser

REPOSITORY = Path(__file__).parents[1]
FILES = sorted(path.relative_to(REPOSITORY).as_posix() for path in REPOSITORY.glob("configs/**/*.yaml"))
LAUNCHING = (REPOSITORY / "docs/howto/launch.md").read_text()
ON_CPU = ["--bf16", "false", "--use_cpu", "true"]

METHODS = {
    "grpo": {"credit_rule": "uniform", "loss_type": "grpo"},
    "dapo": {
        "credit_rule": "uniform",
        "loss_type": "dapo",
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "mask_truncated_completions": True,
    },
    "dapo_dynamic": {
        "credit_rule": "uniform",
        "loss_type": "dapo",
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "mask_truncated_completions": True,
        "dynamic_sampling": 3,
    },
    "dr_grpo": {"credit_rule": "uniform", "loss_type": "dr_grpo", "scale_rewards": "none"},
    "sapo": {
        "credit_rule": "uniform",
        "loss_type": "sapo",
        "sapo_temperature_pos": 1.0,
        "sapo_temperature_neg": 1.05,
    },
    "gspo": {
        "credit_rule": "uniform",
        "importance_sampling_level": "sequence",
        "loss_type": "grpo",
        "beta": 0.0,
        "epsilon": 0.0003,
        "epsilon_high": 0.0004,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 4,
    },
    "gspo_token": {
        "credit_rule": "acpo",
        "ratio": "gspo_token",
        "loss_type": "grpo",
        "beta": 0.0,
        "epsilon": 0.0003,
        "epsilon_high": 0.0004,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 4,
    },
    "gspo_token_turn": {
        "ratio": "gspo_token_turn",
        "turn_estimator": "outcome",
        "loss_type": "grpo",
        "beta": 0.0,
        "epsilon": 0.003,
        "epsilon_high": 0.004,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 4,
    },
    "cispo": {"credit_rule": "uniform", "loss_type": "cispo", "epsilon_high": 5.0},
    "entropy_80_20": {
        "credit_rule": "uniform",
        "loss_type": "dapo",
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "mask_truncated_completions": True,
        "top_entropy_quantile": 0.2,
    },
    "acpo": {"credit_rule": "acpo", "loss_type": "dapo"},
    "acpo_sapo": {
        "credit_rule": "acpo",
        "loss_type": "sapo",
        "sapo_temperature_pos": 1.0,
        "sapo_temperature_neg": 1.05,
    },
    "acpo_live": {
        "credit_rule": "acpo_live",
        "loss_type": "sapo",
        "sapo_temperature_pos": 1.0,
        "sapo_temperature_neg": 1.05,
    },
    "acpo_as_written": {"credit_rule": "acpo_as_written", "loss_type": "dapo"},
    "acpo_sign_normalized": {"credit_rule": "acpo", "credit_normalization": "sign", "loss_type": "dapo"},
    "turns_outcome": {
        "credit_rule": "uniform",
        "turn_estimator": "outcome",
        "turn_estimator_options": {"gamma": 0.95},
    },
    "turns_discounted": {
        "credit_rule": "uniform",
        "turn_estimator": "discounted",
        "turn_estimator_options": {"gamma": 0.95, "failure": -1.0},
    },
    "turns_process": {
        "credit_rule": "uniform",
        "turn_estimator": "outcome",
        "kind_estimators": {"process": {"name": "process", "gamma": 0.95}},
    },
    "turns_milestone": {
        "credit_rule": "uniform",
        "turn_estimator": "outcome",
        "kind_estimators": {"process": {"name": "milestone", "gamma": 0.95}},
    },
    "turns_turn_rtg": {
        "credit_rule": "uniform",
        "turn_estimator": "turn_rtg",
        "kind_estimators": {"process": "turn_rtg"},
    },
    "turns_mt_grpo": {
        "credit_rule": "uniform",
        "turn_estimator": "mt_grpo",
        "turn_estimator_options": {"alpha": 1.0, "form": "paper"},
        "kinds": "mixed",
    },
    "turns_kevin": {
        "credit_rule": "uniform",
        "turn_estimator": "kevin",
        "turn_estimator_options": {"mode": "sum", "gamma": 0.4},
        "kinds": "mixed",
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "beta": 0.0,
    },
    "turns_gtpo_turn": {
        "credit_rule": "uniform",
        "turn_estimator": "gtpo_turn",
        "turn_estimator_options": {"gamma": 0.9},
        "kinds": "mixed",
    },
    "turns_gigpo": {
        "credit_rule": "uniform",
        "turn_estimator": "gigpo",
        "turn_estimator_options": {
            "omega": 1.0,
            "gamma": 0.95,
            "normalization": "std",
            "statistics": "trajectory",
            "guard_first_turn": True,
        },
    },
    "turns_hgpo": {
        "credit_rule": "uniform",
        "turn_estimator": "hgpo",
        "turn_estimator_options": {
            "max_history": 2,
            "alpha": 1.0,
            "gamma": 0.95,
            "weights": "paper",
            "renormalize": True,
        },
    },
    "turns_salt": {
        "credit_rule": "uniform",
        "turn_estimator": "salt",
        "turn_estimator_options": {"trajectory": "grpo"},
    },
    "turns_turn_ppo": {
        "credit_rule": "uniform",
        "turn_estimator": "turn_ppo",
        "turn_estimator_options": {"gamma": 0.99, "lam": 0.9, "normalization": "token", "bootstrap": False},
        "kinds": "mixed",
        "ratio": "turn",
        "critic_options": {"learning_rate": 0.001},
    },
    "turns_step_ppo": {
        "credit_rule": "uniform",
        "turn_estimator": "step_ppo",
        "turn_estimator_options": {"gamma": 0.99, "lam": 1.0, "normalization": "turn"},
        "kinds": "mixed",
        "ratio": "gspo_token_turn",
        "loss_type": "grpo",
        "epsilon": 0.0003,
        "epsilon_high": 0.0004,
        "delta": 10.0,
    },
    "turns_ppo": {
        "credit_rule": "uniform",
        "turn_estimator": "ppo",
        "turn_estimator_options": {"gamma": 1.0, "lam": 0.95, "normalization": "token", "bootstrap": False},
        "kinds": "mixed",
        "critic_options": {"learning_rate": 0.001, "clip": 0.2},
    },
    "turns_bilevel_gae": {
        "credit_rule": "uniform",
        "turn_estimator": "bilevel_gae",
        "turn_estimator_options": {"turn_gamma": 0.95, "gamma": 1.0, "lam": 1.0, "bootstrap": False},
        "kinds": "mixed",
    },
    "turns_igpo": {
        "credit_rule": "uniform",
        "turn_estimator": "igpo",
        "turn_estimator_options": {"gain": "log", "normalization": "separate", "gamma": 1.0},
        "belief_options": {"column": "solution", "prefix": "<answer>"},
    },
    "turns_spa_rl": {
        "credit_rule": "uniform",
        "turn_estimator": "spa_rl",
        "turn_estimator_options": {
            "alpha": 1.0,
            "beta": 0.0,
            "share_rest": True,
            "baseline": "turn",
        },
    },
    "turns_gigpo_similar": {
        "credit_rule": "uniform",
        "turn_estimator": "gigpo_similar",
        "turn_estimator_options": {"similarity": 0.95, "invalid_penalty": 0.1},
    },
    "turns_gtpo": {
        "credit_rule": "uniform",
        "turn_estimator": "gtpo",
        "turn_estimator_options": {"alpha1": 1.0, "alpha2": 0.1, "normalization": "joint"},
        "epsilon": 0.2,
        "epsilon_high": 0.28,
    },
    "turns_grpo_s": {
        "credit_rule": "uniform",
        "turn_estimator": "grpo_s",
        "turn_estimator_options": {"beta1": 1.0, "beta2": 0.1, "normalization": "joint"},
        "epsilon": 0.2,
        "epsilon_high": 0.28,
    },
    "turns_gtpo_trajectory": {
        "credit_rule": "uniform",
        "turn_estimator": "gtpo_trajectory",
        "turn_estimator_options": {"gamma": 0.1},
        "loss_type": "grpo",
        "beta": 0.0,
    },
}


def launch_of(line):
    """The arguments of an `accelerate launch` line."""
    words = shlex.split(line)
    assert words[:2] == ["accelerate", "launch"], f"{line!r} is no launch line"
    return launch_command_parser().parse_args(words[2:])


def launch_line(file):
    return launch_of((REPOSITORY / file).read_text().splitlines()[0].removeprefix("# "))


def parsed(file, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    return parse(make_parser, [*launch_line(file).training_script_args, *ON_CPU])


def is_for_accelerate(file):
    return file.startswith("configs/accelerate/")


@pytest.mark.parametrize("file", FILES)
def test_first_line_launches_the_file_and_parses(file, monkeypatch):
    launch = launch_line(file)
    assert launch.training_script == "scripts/train.py"
    assert file == (launch.config_file if is_for_accelerate(file) else launch.training_script_args[-1])
    if launch.config_file:
        load_config_from_file(str(REPOSITORY / launch.config_file))
    script, config, model, mixture = parsed(file, monkeypatch)
    assert model.model_name_or_path and config.output_dir and (script.reward_funcs or script.environment)
    assert bool(script.dataset_name) != bool(mixture.datasets)


def test_every_method_file_is_listed():
    assert {Path(file).stem for file in FILES if file.startswith("configs/methods/")} == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_method_file_sets_what_its_name_says_and_nothing_else(name, monkeypatch):
    file = f"configs/methods/{name}.yaml"
    _, config, _, _ = parsed(file, monkeypatch)
    assert {key: getattr(config, key) for key in METHODS[name]} == METHODS[name]
    assert set(yaml.safe_load((REPOSITORY / file).read_text())) == set(METHODS[name])
    assert config.credit_mix == 1.0 and config.num_iterations == 1


@pytest.mark.parametrize("name", ["quickstart", "quickstart_multi_turn"])
def test_a_quick_start_records_credit_by_the_defaults(name, monkeypatch):
    _, config, _, _ = parsed(f"configs/{name}.yaml", monkeypatch)
    assert config.credit_log == {}


@pytest.mark.parametrize("size", ["0.5", "1.5"])
@pytest.mark.parametrize("kind", ["lora", "qlora"])
def test_one_gpu_config_trains_an_adapter(size, kind, monkeypatch):
    _, config, model, _ = parsed(f"configs/qwen2.5_{size}b_{kind}.yaml", monkeypatch)
    adapter = get_peft_config(model)
    assert model.model_name_or_path == f"Qwen/Qwen2.5-{size}B-Instruct"
    assert (adapter.target_modules, adapter.r, model.load_in_4bit) == ("all-linear", 16, kind == "qlora")
    assert config.generation_batch_size == 32


@pytest.mark.parametrize(
    ("file", "name"), [("qwen2.5_7b_math", "Qwen/Qwen2.5-7B"), ("qwen3_8b_base_math", "Qwen/Qwen3-8B-Base")]
)
def test_headline_config_has_128_completions_a_step_on_8_gpus(file, name, monkeypatch):
    launch = launch_line(f"configs/{file}.yaml")
    num_gpus = load_config_from_file(str(REPOSITORY / launch.config_file)).num_processes
    _, config, model, _ = parsed(f"configs/{file}.yaml", monkeypatch)
    assert (model.model_name_or_path, model.use_peft, config.use_vllm) == (name, False, True)
    assert config.per_device_train_batch_size * config.gradient_accumulation_steps * num_gpus == 128
    assert config.num_generations == 8


@pytest.mark.parametrize(
    ("name", "kind", "num_processes"),
    [
        ("cpu2", "MULTI_GPU", 2),
        ("ddp", "MULTI_GPU", 8),
        ("zero2", "DEEPSPEED", 8),
        ("zero3", "DEEPSPEED", 8),
        ("fsdp2", "FSDP", 8),
    ],
)
def test_accelerate_config_launches_what_its_name_says(name, kind, num_processes):
    config = load_config_from_file(str(REPOSITORY / f"configs/accelerate/{name}.yaml"))
    assert (config.distributed_type.value, config.num_processes) == (kind, num_processes)
    assert config.use_cpu == (name == "cpu2")
    assert config.deepspeed_config.get("zero_stage") == {"zero2": 2, "zero3": 3}.get(name)
    assert config.fsdp_config.get("fsdp_version") == {"fsdp2": 2}.get(name)


@pytest.mark.parametrize("line", re.findall(r"^(?:acpo-trl|accelerate) .*$", LAUNCHING, flags=re.MULTILINE))
def test_command_of_the_launch_guide_parses(line, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    if line.startswith("acpo-trl train "):
        arguments = shlex.split(line)[2:]
    else:
        launch = launch_of(line)
        arguments = launch.training_script_args
        assert Path(launch.training_script).is_file()
        assert launch.config_file is None or load_config_from_file(launch.config_file)
    parse(make_parser, [*arguments, *ON_CPU])


def test_example_config_of_the_launch_guide_parses(tmp_path, monkeypatch):
    text = LAUNCHING.split("```yaml\n# my.yaml\n")[1].split("```")[0]
    (tmp_path / "my.yaml").write_text(text)
    (tmp_path / "my_rewards.py").write_text(LAUNCHING.split("```python\n")[1].split("```")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    script, config, _, _ = parse(make_parser, ["--config", "my.yaml", *ON_CPU])
    (_, short), _ = load_rewards(script.reward_funcs, None, config.reward_weights)
    assert short([[{"role": "assistant", "content": "a" * n}] for n in (199, 200)]) == [1.0, 0.0]


@pytest.mark.parametrize(("own", "base"), [(ACPOConfig, GRPOConfig), (ACPOScriptArguments, ScriptArguments)])
def test_reference_lists_every_own_option_with_its_default(own, base):
    inherited = {field.name for field in dataclasses.fields(base)}
    expected = {field.name: repr(field.default) for field in dataclasses.fields(own) if field.name not in inherited}
    text = (REPOSITORY / "docs/reference/config.md").read_text()
    section = text.split(f"## {own.__name__}\n")[1].split("\n## ")[0]
    rows = [[cell.strip(" `") for cell in line.split("|")[1:3]] for line in section.splitlines() if line[:3] == "| `"]
    assert {name: default.replace('"', "'") for name, default in rows} == expected


def test_every_turn_estimator_has_a_config():
    used = set()
    for settings in METHODS.values():
        kinds = settings.get("kind_estimators", {}).values()
        used |= {settings.get("turn_estimator")} | {kind if isinstance(kind, str) else kind["name"] for kind in kinds}
    assert set(TURN_ESTIMATORS) - used == {"local"}  # what rewards of format have anyway
