"""`acpo-trl evaluate`: what it takes, what it refuses before anything is generated, and the numbers it gives."""

import fcntl
import json
import re

import pytest
import yaml
from peft import LoraConfig, get_peft_model
from tiny import byte_tokenizer, qwen2

from acpo_trl.cli.evaluate import run
from acpo_trl.cli.generator import ModelChoice, check_vllm, choose_model, load_generator, weights_digest
from acpo_trl.evaluation import generate
from acpo_trl.evaluation.generate import Sampling
from acpo_trl.evaluation.plan import Batch, Request

BATCH = Batch(0, 0, (Request("b", "p", 0, (49, 43, 49, 61)),))


@pytest.fixture
def sums(write_rows):
    return write_rows(*({"problem": f"{i}+1=", "answer": str(i + 1)} for i in range(6)), name="sums.jsonl")


@pytest.fixture
def no_generation(monkeypatch):
    def generate_nothing(self, batch, stop):
        raise AssertionError("something was generated")

    monkeypatch.setattr(generate.TransformersGenerator, "__call__", generate_nothing)


def evaluate(*arguments):
    run([str(argument) for argument in arguments], "acpo-trl evaluate")


def refusal(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        evaluate(*arguments)
    return str(stopped.value.code) + capsys.readouterr().err


def test_a_model_is_evaluated_on_a_file_and_the_table_shown(model_dir, sums, tmp_path, capsys):
    out = tmp_path / "out"
    evaluate(
        "--model", model_dir, "--data", f"gsm8k={sums}", "--max_new_tokens", 4, "--num_samples", 2, "--output_dir", out
    )
    assert "gsm8k" in capsys.readouterr().out
    results = json.loads((out / "results.json").read_text())
    assert results["settings"]["sampling"] == {"max_new_tokens": 4, "temperature": 0.6, "top_p": 1.0}
    assert results["settings"]["model"]["name"] == model_dir
    assert len((out / "samples.jsonl").read_text().splitlines()) == 12


def test_without_output_dir_equal_settings_share_a_folder(model_dir, sums, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for seed in (0, 0, 1):
        evaluate("--model", model_dir, "--data", f"gsm8k={sums}", "--max_new_tokens", 2, "--seed", seed, "--limit", 2)
    folders = sorted((tmp_path / "outputs" / "evaluations").iterdir())
    assert len(folders) == 2


def test_options_come_from_yaml_and_a_benchmark_of_ones_own_is_a_few_lines(model_dir, sums, tmp_path, capsys):
    config = {
        "model": model_dir,
        "benchmarks": [{"name": "mine", "source": sums, "template": "{problem}", "options": {"require_box": True}}],
        "max_new_tokens": 3,
        "output_dir": str(tmp_path / "out"),
    }
    (tmp_path / "eval.yaml").write_text(yaml.safe_dump(config))
    evaluate("--config", tmp_path / "eval.yaml", "--limit", 4)
    assert "mine" in capsys.readouterr().out
    settings = json.loads((tmp_path / "out" / "results.json").read_text())["settings"]
    assert settings["benchmarks"]["mine"]["options"] == {"require_box": True}
    assert settings["benchmarks"]["mine"]["num_problems"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "benchmarks None: there is nothing to evaluate on"),
        (["--benchmarks", "gms8k"], "'gms8k': .*did you mean 'gsm8k'"),
        (["--data", "gms8k=x.jsonl"], "'gms8k': .*did you mean 'gsm8k'"),
        (["--data", "gsm8k"], "data 'gsm8k': expected `name=path`"),
        (["--benchmarks", "gsm8k", "--data", "aime24=x.jsonl"], r"data for \['aime24'\]: the benchmarks are"),
        (["--data", "gsm8k=absent.jsonl"], "'absent.jsonl': no such file"),
        (["--data", "gsm8k={sums}", "--temperature", "-1"], "temperature -1.0"),
        (["--data", "gsm8k={sums}", "--num_samples", "0"], "num_samples 0"),
        (["--data", "gsm8k={sums}", "--limit", "0"], "limit 0"),
        (["--data", "gsm8k={sums}", "--num_samples", "2", "--temperature", "0"], "num_samples 2 with temperature 0"),
        (["--data", "gsm8k={sums}", "--num_examples", "99"], "number of examples 99"),
        (["--data", "gsm8k={sums}", "--max_new_tokens", "5000"], "more than the 4096 that the model can read"),
        (["--data", "gsm8k={sums}", "--dtype", "flaot16"], "dtype 'flaot16': is none of torch"),
        (["--data", "gsm8k={sums}", "--prompt_format", "cat"], "invalid choice: 'cat'"),
        (["--data", "gsm8k={sums}", "--adapter", "absent"], "adapter 'absent': has no adapter_config.json"),
        (["--data", "gsm8k={sums}", "--vllm_options", "{}"], "vllm_options '{}': nothing would use them"),
        (["--data", "gsm8k={sums}", "--tempreature", "1"], "unknown argument '--tempreature'; did you mean"),
        (["--data", "gsm8k={sums}", "--chat_template_kwargs", "{"], "chat_template_kwargs '{': is no JSON"),
        (["--data", "humaneval={sums}"], "no column for 'tests'"),
        (["--compare", "a"], r"compare \['a'\]: expected two folders"),
    ],
)
def test_mistakes_are_told_before_anything_is_generated(
    model_dir, sums, capsys, no_generation, arguments, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    given = [argument.format(sums=sums) if "{sums}" in argument else argument for argument in arguments]
    said = refusal(capsys, "--model", model_dir, *given)
    assert re.search(message, said), said
    assert not (tmp_path / "outputs").exists()


def test_numbers_where_text_belongs_and_folders_that_cannot_be_made_are_told(
    model_dir, sums, tmp_path, capsys, no_generation
):
    (tmp_path / "eval.yaml").write_text("model: 5\n")
    assert "model 5: is a int; expected text" in refusal(capsys, "--config", tmp_path / "eval.yaml")
    said = refusal(capsys, "--model", model_dir, "--data", f"gsm8k={sums}", "--output_dir", "/proc/nope")
    assert "No such file or directory: '/proc/nope'" in said


def test_a_folder_in_which_another_evaluation_is_at_work_is_told(model_dir, sums, tmp_path, capsys):
    arguments = [
        "--model",
        model_dir,
        "--data",
        f"gsm8k={sums}",
        "--max_new_tokens",
        2,
        "--output_dir",
        tmp_path / "out",
    ]
    evaluate(*arguments)
    with (tmp_path / "out" / "evaluation.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "another evaluation is at work in it" in refusal(capsys, *arguments)


def test_a_model_that_is_missing_is_told(sums, capsys, no_generation):
    assert "model None: there is no model" in refusal(capsys, "--data", f"gsm8k={sums}")
    said = refusal(capsys, "--data", f"gsm8k={sums}", "--model", "/absent/model")
    assert "model '/absent/model': no configuration could be loaded" in said


def test_wrong_columns_are_told_with_those_that_are_there(model_dir, write_rows, capsys, no_generation):
    rows = write_rows({"frage": "1+1=", "answer": "2"})
    said = refusal(capsys, "--model", model_dir, "--data", f"gsm8k={rows}")
    assert "no column for 'problem' among ['answer', 'frage']" in said


def test_chat_prompts_of_a_model_without_chat_template_are_refused(tmp_path, sums, capsys, no_generation):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = None
    tokenizer.save_pretrained(tmp_path / "base")
    qwen2().save_pretrained(tmp_path / "base")
    said = refusal(capsys, "--model", tmp_path / "base", "--data", f"gsm8k={sums}", "--prompt_format", "chat")
    assert "prompt format 'chat': the tokenizer has no chat template" in said


def test_two_evaluations_are_compared(model_dir, sums, tmp_path, capsys):
    common = ["--model", model_dir, "--data", f"gsm8k={sums}", "--max_new_tokens", 2, "--temperature", 1]
    for seed in (0, 1):
        evaluate(*common, "--seed", seed, "--output_dir", tmp_path / str(seed))
    capsys.readouterr()
    evaluate("--compare", tmp_path / "0", tmp_path / "1")
    assert "gsm8k" in capsys.readouterr().out
    assert "has no results.json" in refusal(capsys, "--compare", tmp_path / "0", tmp_path / "absent")


# Models


@pytest.fixture(scope="module")
def adapter_dir(model_dir, tmp_path_factory):
    """An adapter that changes what the model says."""
    folder = tmp_path_factory.mktemp("adapter")
    model = get_peft_model(qwen2(), LoraConfig(r=4, init_lora_weights=False, target_modules=["q_proj", "v_proj"]))
    model.peft_config["default"].base_model_name_or_path = model_dir
    model.save_pretrained(folder)
    return str(folder)


def said_by(choice):
    return load_generator(choice, byte_tokenizer(), Sampling(max_new_tokens=8), "cpu")(BATCH, ())


def test_an_adapter_is_put_on_its_model_by_its_folder_or_by_name(model_dir, adapter_dir):
    plain = said_by(choose_model(model_dir, None))
    adapted = said_by(choose_model(model_dir, adapter_dir))
    assert adapted != plain
    assert said_by(choose_model(adapter_dir, None)) == adapted
    assert choose_model(adapter_dir, None) == ModelChoice(model_dir, adapter_dir)
    with pytest.raises(ValueError, match="is an adapter, and adapter 'other' is another"):
        choose_model(adapter_dir, "other")


def test_weights_are_told_apart_wherever_they_differ(model_dir, tmp_path):
    def digest_with(change=lambda model: None):
        model = qwen2()
        change(model)
        model.save_pretrained(tmp_path)
        return weights_digest(tmp_path)

    first = digest_with()
    assert digest_with() == first
    assert digest_with(lambda model: model.lm_head.weight.data[-1, -1].add_(1)) != first
    assert digest_with(lambda model: model.model.norm.weight.data[0].add_(1)) != first
    assert weights_digest(tmp_path / "absent") is None


def test_vllm_is_refused_where_it_is_missing_or_in_several_processes():
    check_vllm(ModelChoice("m"), 4)
    with pytest.raises(ValueError, match="use_vllm in 2 processes"):
        check_vllm(ModelChoice("m", vllm_options={}), 2)
    try:
        import vllm  # noqa: F401
    except ImportError:
        with pytest.raises(ValueError, match=r"vllm cannot be imported .*`pip install 'acpo-trl\[vllm\]'"):
            check_vllm(ModelChoice("m", vllm_options={}), 1)
