"""Reading configs and the command line."""

import os
import subprocess
import sys

import pytest
from trl import TrlParser

from acpo_trl.cli.parse import merge_configs, parse, read_configs
from acpo_trl.cli.train import make_parser

ON_CPU = ["--bf16", "false", "--use_cpu", "true"]


@pytest.fixture
def write_yaml(tmp_path):
    def write(text, name="run.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_command_line_wins_over_later_config_over_earlier_config(write_yaml):
    task = write_yaml("learning_rate: 1e-5\ncredit_mix: 0.2\nmax_steps: 7\n", "task.yaml")
    method = write_yaml("credit_mix: 0.4\nmax_steps: 8\n", "method.yaml")
    _, config, _, _ = parse(make_parser, ["--config", task, f"--config={method}", "--max_steps", "9", *ON_CPU])
    assert (config.learning_rate, config.credit_mix, config.max_steps) == (1e-5, 0.4, 9)


def test_env_blocks_are_merged_and_set_before_the_parser_is_made(write_yaml, monkeypatch):
    monkeypatch.setenv("ACPO_TEST_A", "")  # so that both are removed after the test
    monkeypatch.setenv("ACPO_TEST_B", "")
    first = write_yaml("env: {ACPO_TEST_A: 1, ACPO_TEST_B: 1}\n", "a.yaml")
    second = write_yaml("env: {ACPO_TEST_B: two}\n", "b.yaml")
    seen = {}

    def make():
        seen.update(A=os.environ["ACPO_TEST_A"], B=os.environ["ACPO_TEST_B"])
        return make_parser()

    parse(make, ["--config", first, "--config", second, *ON_CPU])
    assert seen == {"A": "1", "B": "two"}


def test_null_unsets_an_environment_variable(write_yaml, monkeypatch):
    monkeypatch.setenv("ACPO_TEST_A", "1")
    parse(make_parser, ["--config", write_yaml("env: {ACPO_TEST_A: null}\n"), *ON_CPU])
    assert "ACPO_TEST_A" not in os.environ


@pytest.mark.slow
@pytest.mark.parametrize("module", ["train", "check"])
def test_script_loads_no_library_before_the_env_block_is_set(module):
    code = (
        f"import sys, acpo_trl.cli.{module}; print({{'torch', 'transformers', 'huggingface_hub'}} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_file_given_again_at_the_end_wins(write_yaml):
    first, second = write_yaml("max_steps: 1\n", "a.yaml"), write_yaml("max_steps: 2\n", "b.yaml")
    paths = [part for path in (first, second, first) for part in ("--config", path)]
    assert parse(make_parser, [*paths, *ON_CPU])[1].max_steps == 1


def test_unknown_key_of_a_config_is_named_with_its_file_and_the_nearest_key(write_yaml):
    path = write_yaml("lerning_rate: 1e-5\n")
    with pytest.raises(ValueError, match=r"run\.yaml: unknown key 'lerning_rate'; did you mean 'learning_rate'\?"):
        parse(make_parser, ["--config", path])


def test_unknown_key_is_reported_before_the_errors_it_causes(write_yaml):
    # num_generations keeps its default of 8, which does not divide the batch of 4: that is not the user's mistake.
    path = write_yaml("num_generation: 4\nper_device_train_batch_size: 4\n")
    with pytest.raises(ValueError, match="did you mean 'num_generations'"):
        parse(make_parser, ["--config", path, *ON_CPU])


@pytest.mark.parametrize("option", ["--credit-rul", "--credit_rul=acpo"])
def test_beginning_of_an_option_is_not_taken_for_it(option):
    with pytest.raises(ValueError, match=r"unknown argument '--credit.rul.*did you mean '--credit_rule'\?"):
        parse(make_parser, [option, "acpo"])


def test_key_like_no_other_points_to_help():
    with pytest.raises(ValueError, match="acpo-trl train --help"):
        parse(lambda: make_parser(prog="acpo-trl train"), ["--zzzzzz", "1"])


@pytest.mark.parametrize("text", ["- a\n- b\n", "env: [A, B]\n"])
def test_config_that_is_no_mapping_is_refused(write_yaml, text):
    with pytest.raises(ValueError, match=r"run\.yaml.*is a list; expected a YAML mapping"):
        read_configs(["--config", write_yaml(text)])


def test_config_of_comments_only_changes_nothing(write_yaml):
    files, rest = read_configs(["--config", write_yaml("# nothing\n"), "--max_steps", "3"])
    assert merge_configs(keys for _, keys in files) == {"env": {}}
    assert rest == ["--max_steps", "3"]


def test_missing_config_is_named():
    with pytest.raises(FileNotFoundError, match=r"absent\.yaml"):
        read_configs(["--config", "absent.yaml"])


def test_dotted_path_is_found_in_the_current_directory(tmp_path, monkeypatch):
    (tmp_path / "rules_of_mine.py").write_text("def half(stats, advantages):\n    return 0.5 + 0 * advantages\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    _, config, _, _ = parse(make_parser, ["--credit_rule", "rules_of_mine.half", *ON_CPU])
    assert config.credit_rule == "rules_of_mine.half"


def test_mistyped_rule_gets_the_nearest_name():
    with pytest.raises(ValueError, match=r"credit_rule 'acop'.*did you mean 'acpo'\?"):
        parse(make_parser, ["--credit_rule", "acop", *ON_CPU])


def test_num_generations_that_does_not_divide_the_batch_is_refused():
    with pytest.raises(ValueError, match=r"must be divisible by num_generations \(3\)"):
        parse(make_parser, ["--num_generations", "3", "--per_device_train_batch_size", "4", *ON_CPU])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prompt_format: chatt\n", r"prompt_format 'chatt': expected one of \['chat', 'text'\]"),
        ("max_train_samples: 0\n", "max_train_samples 0: nothing to train on"),
        ("prompt_template: no place\n", "the prompt would be lost"),
        ("prompt_template: '{prompt} \\boxed{}'\n", r"every other brace doubled, as in \\boxed\{\{\}\}"),
        ("prompt_template: '{question}'\n", "cannot be filled"),
        ("prompt_template: '{prompt.x}'\n", "cannot be filled"),
        ("prompt_template: '{prompt[x]}'\n", "cannot be filled"),
        ("prompt_template: 5\n", "prompt_template 5: is a int; expected text"),
        ("system_prompt: 5\n", "system_prompt 5: is a int; expected text"),
        ("max_train_samples: 1.5\n", "max_train_samples 1.5: .*expected a whole number"),
        ("max_train_samples: true\n", "max_train_samples True: .*expected a whole number"),
        ("env: {5: 6}\n", r"env: 5: 6: cannot be set \(str expected, not int\)"),
        ("env: {A=B: x}\n", "env: 'A=B': 'x': cannot be set"),
        ("env: {ACPO_TEST_A: [x]}\n", r"env: 'ACPO_TEST_A': \['x'\]: cannot be set \(text expected, not list\)"),
    ],
)
def test_script_argument_that_cannot_work_is_refused(write_yaml, text, message):
    with pytest.raises(ValueError, match=message):
        parse(make_parser, ["--config", write_yaml(text)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("credit_mix: null\n", r"run\.yaml: credit_mix None: is null; expected float"),
        ("credit_mix: [1]\n", r"run\.yaml: credit_mix \[1\]: is a list; expected float"),
        ("max_grad_norm: {}\n", r"run\.yaml: max_grad_norm \{\}: is a dict; expected float"),
        ("reward_weights: 1\n", r"run\.yaml: reward_weights 1: is a int; expected list\[float\] \| None"),
        ("turn_estimator_options: [1]\n", r"run\.yaml: turn_estimator_options \[1\]: is a list; expected dict"),
    ],
)
def test_value_of_a_config_whose_form_an_option_cannot_have_is_refused(write_yaml, text, message):
    with pytest.raises(ValueError, match=message):
        parse(make_parser, ["--config", write_yaml(text), *ON_CPU])


def test_forms_that_an_option_can_have_pass(write_yaml):
    text = "warmup_steps: 2\neval_steps: null\nresume_from_checkpoint: true\nlora_target_modules: [q_proj, v_proj]\n"
    _, config, model, _ = parse(make_parser, ["--config", write_yaml(text), *ON_CPU])
    assert (config.warmup_steps, config.eval_steps, config.resume_from_checkpoint) == (2, None, True)
    assert model.lora_target_modules == ["q_proj", "v_proj"]


@pytest.mark.parametrize("option", ["turn_estimator_options", "kind_estimators"])
def test_broken_json_is_told_with_its_option(write_yaml, option):
    path = write_yaml(f"turn_estimator: outcome\n{option}: '{{gamma'\n")
    for given in (["--config", path], ["--turn_estimator", "outcome", f"--{option}", "{gamma"]):
        with pytest.raises(
            ValueError, match=rf"^{option} '\{{gamma': is no JSON \(.*\); expected a JSON object such as"
        ):
            parse(make_parser, [*given, *ON_CPU])


def test_single_reward_needs_no_list(write_yaml):
    script, _, _, _ = parse(make_parser, ["--config", write_yaml("reward_funcs: math\n"), *ON_CPU])
    assert script.reward_funcs == ["math"]


def test_rewards_can_be_mappings(write_yaml):
    path = write_yaml("reward_funcs: [format, {name: math, weight: 0.5, options: {limit_s: 2}}]\n")
    entry = {"name": "math", "weight": 0.5, "options": {"limit_s": 2}}
    assert parse(make_parser, ["--config", path, *ON_CPU])[0].reward_funcs == ["format", entry]
    path = write_yaml("reward_funcs: {name: math}\n")
    assert parse(make_parser, ["--config", path, *ON_CPU])[0].reward_funcs == [{"name": "math"}]


def test_parser_can_be_a_sub_command():
    parser = TrlParser()
    make_parser(parser.add_subparsers())
    assert parser.parse_args(["train", "--credit_mix", "0.5"]).credit_mix == 0.5
