"""The page on training agents and the configs that it names, run with a tiny model."""

import json
import re
from pathlib import Path

import datasets
import pytest

from acpo_trl.cli.environment import check_rows, load_environment
from acpo_trl.cli.parse import parse
from acpo_trl.cli.rewards import load_rewards
from acpo_trl.cli.train import main, make_parser, run
from acpo_trl.sandbox import SandboxError
from acpo_trl.sandbox.bubblewrap import Bubblewrap

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs/howto/train_agent.md").read_text()
HOTPOT = {
    "question": "Where was the first person on Mount Virre born?",
    "answer": "Lower Quarne",
    "supporting_facts": {"title": ["Mount Virre", "Ebba Karsk", "Ebba Karsk"], "sent_id": [1, 0, 1]},
    "context": {
        "title": ["Mount Virre", "Sool", "Ebba Karsk"],
        "sentences": [["It is high. ", "Ebba Karsk climbed it."], ["A river."], ["She drew maps. ", "Lower Quarne."]],
    },
}


def block(language, first_line):
    """The block of the page that begins with a line."""
    (text,) = re.findall(rf"^```{language}\n({re.escape(first_line)}\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(("name", "not_logged"), [("agent", set()), ("tags", {"tools/failure_frequency"})])
def test_config_of_the_page_trains_and_logs_what_the_page_says(name, not_logged, folder, arguments, chat_dir):
    (folder / f"{name}.yaml").write_text(block("yaml", f"# {name}.yaml"))
    exec(block("python", "import json"), {})
    given = ["--model_name_or_path", chat_dir, "--dataset_name", "tasks.jsonl", "--max_completion_length", "128"]
    options = ["--max_steps", "1", "--save_strategy", "no"]
    main(*parse(make_parser, [*arguments, "--config", f"{name}.yaml", *given, *options]))
    log = json.loads((folder / "run" / "trainer_state.json").read_text())["log_history"][0]
    assert 1 <= log["turns/count/mean"] <= 6
    named = re.findall(r"`([a-z]+/[a-z_/]+)`", PAGE.split("## What is logged")[1].split("##")[0])
    assert len(named) >= 6 and set(named) - set(log) == not_logged


def test_mistake_on_the_page_is_answered_as_it_says(arguments):
    with pytest.raises(SystemExit) as exit_:
        run([*arguments, "--environment", "lookups"], "acpo-trl train")
    assert f"```text\n{exit_.value.code}\n```" in PAGE


def test_hotpot_script_writes_what_the_search_config_reads(folder, monkeypatch):
    monkeypatch.setattr(datasets, "load_dataset", lambda *names, split: [HOTPOT])
    exec(block("python", "# hotpot.py"), {"__name__": "__main__"})
    script_args, config, *_ = parse(
        make_parser, ["--config", str(REPOSITORY / "configs/agent_search.yaml"), "--bf16", "false", "--use_cpu", "true"]
    )
    search = load_environment(script_args.environment, script_args.rollout)
    assert load_rewards(script_args.reward_funcs, None, config.reward_weights, search) == ([], None)
    row = json.loads((folder / script_args.dataset_name).read_text())
    check_rows(search, {"prompt": row.pop("question"), **row})
    environment = search.rollout._pool.make()
    environment.reset(**row)
    steps = [environment.step(f"<search>{words}</search>") for words in ("Ebba Karsk climbed", "rivers")]
    assert [step.rewards["process"] for step in steps] == [1.0, None]
    assert "She drew maps. Lower Quarne." in steps[0].observation
    assert environment.step("<answer>Quarne</answer>").rewards["outcome"] == pytest.approx(2 / 3)


def test_python_config_makes_its_environment(folder):
    try:
        Bubblewrap().close()
    except SandboxError as error:
        pytest.skip(str(error))
    script_args, config, *_ = parse(
        make_parser, ["--config", str(REPOSITORY / "configs/agent_python.yaml"), "--bf16", "false", "--use_cpu", "true"]
    )
    environment = load_environment(script_args.environment, script_args.rollout)
    check_rows(environment, {"prompt": [], "solution": "4"})
    environment.probe.reset(solution="4")
    assert environment.probe.python("print(2 + 2)") == "4"
    assert environment.reward_kinds == ["outcome", "format", "cost", "process"]
    assert config.max_tool_calling_iterations == 5
