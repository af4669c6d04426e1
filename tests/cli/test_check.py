"""`acpo-trl rewards check`, from a command line to a table."""

import io
import re
import subprocess
import sys

import pytest

from acpo_trl.cli.check import prepare, run
from acpo_trl.envs import lookup_tasks
from acpo_trl.rewards import reward

ROWS = [{"problem": f"{n}+1=", "answer": str(n + 1)} for n in range(12)]


class Bracket:
    """Pays for the row's number in brackets; odd ones are not scored, 4 is wrong."""

    def gold(self, row):
        return f"<{row['solution']}>"

    def __call__(self, completions, solution, log_extra, **columns):
        log_extra("bracket_reason", [f"number {number}" for number in solution])
        texts = [completion[-1]["content"] for completion in completions]
        paid = [float(text == f"<{n}>" and n != "4") for text, n in zip(texts, solution, strict=True)]
        return [None if int(n) % 2 else score for n, score in zip(solution, paid, strict=True)]


def copies(completions, solution, log_extra, **columns):
    """Knows nothing but copies."""
    log_extra("copies_reason", ["unreadable gold"] * len(solution))
    return [1.0 if text[-1]["content"] == right else None for text, right in zip(completions, solution, strict=True)]


def anything(completions, **columns):
    return [1.0 for _ in completions]


copies.gold = anything.gold = lambda row: row["solution"]


class Even(Bracket):
    def gold(self, row):
        return super().gold(row) if int(row["solution"]) % 2 == 0 and row["solution"] != "4" else None


def length(completions, **columns):
    return [len(completion[-1]["content"]) for completion in completions]


@reward(kind="process", level="turn")
def by_turn(turns, **columns):
    raise AssertionError("there are no turns to score")


def broken(completions, **columns):
    raise KeyError("lost")


def garbled(completions, **columns):
    raise ValueError("lost \udc80")


def exits(completions, **columns):
    sys.exit(0)


def check(*arguments):
    """Run the command and give its exit status."""
    try:
        run(["check", *arguments], "acpo-trl rewards")
    except SystemExit as exit_:
        return exit_.code
    return 0


def cells(text, name):
    """Header and cells of a reward's line in the table."""
    header, *lines = [re.split(r"\s{2,}", line.strip()) for line in text.split("\n\n")[0].splitlines()]
    return dict(zip(header, next(line for line in lines if line[0] == name), strict=True))


def test_table_counts_and_rows_that_are_not_right_follow_gravest_first(write_rows, capsys):
    assert check("--dataset_name", write_rows(*ROWS), "--reward_funcs", f"{__name__}.Bracket", "--num_rows", "5") == 1
    out = capsys.readouterr().out
    found = cells(out, "Bracket")
    assert float(found.pop("seconds")) >= 0
    assert found == {
        **{"reward": "Bracket", "kind": "outcome", "level": "trajectory", "weight": "1", "rows": "5"},
        **{"right": "1", "wrong": "1", "unscored": "3", "unread": "0", "raised": "0", "no gold": "0"},
    }
    assert out.endswith(
        "Bracket: 1 of 5 rows do not give their own gold answer the best score:\n"
        "  row 3: 0: '<4>': number 4\n"
        "\n"
        "Bracket: 3 of 5 rows do not score their own gold answer and teach nothing in training:\n"
        "  row 0: unscored: '<1>': number 1\n"
        "  row 2: unscored: '<3>': number 3\n"
        "  row 4: unscored: '<5>': number 5\n"
    )


def test_rows_that_tell_no_gold_answer_are_counted_and_pass(write_rows, capsys):
    assert check("--dataset_name", write_rows(*ROWS), "--reward_funcs", f"{__name__}.Even") == 0
    found = cells(capsys.readouterr().out, "Even")
    assert (found["rows"], found["right"], found["no gold"]) == ("12", "5", "7")


def test_answers_that_only_equal_themselves_and_rewards_that_take_any_are_shown(write_rows, capsys):
    names = [f"{__name__}.copies", f"{__name__}.anything"]
    assert check("--dataset_name", write_rows(*ROWS[:2]), "--reward_funcs", *names) == 1  # `copies` can read no row
    out = capsys.readouterr().out
    assert cells(out, "copies")["unread"] == "2"
    assert "2 of 2 rows score no answer but a copy of the gold one and teach nothing in training:\n" in out
    assert "  row 0: unscored: '1': unreadable gold\n" in out
    assert "anything: 2 of 2 rows give the gold answer of the next row the best score too" in out
    assert "  row 0: 1: '2'\n" in out


def test_function_without_gold_answers_is_only_reported(write_rows, capsys):
    entry = f'{{"name": "{__name__}.length", "weight": 0.2}}'
    assert check("--dataset_name", write_rows(*ROWS), "--reward_funcs", entry) == 0
    out = capsys.readouterr().out
    assert (cells(out, "length")["right"], cells(out, "length")["weight"]) == ("-", "0.2")
    assert "scores for the dataset's bare answers: min 1, mean 1.25, max 2." in out


def test_exception_fails_the_check_and_ten_rows_are_shown(write_rows, capsys):
    assert check("--dataset_name", write_rows(*ROWS), "--reward_funcs", f"{__name__}.broken") == 1
    out = capsys.readouterr().out
    assert cells(out, "broken")["raised"] == "12"
    assert "  row 9: raised: '10': KeyError: 'lost'\n  and 2 more\n" in out and "row 10" not in out


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_reason_that_the_output_cannot_encode_is_escaped(write_rows, monkeypatch, encoding):
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding=encoding, write_through=True))
    assert check("--dataset_name", write_rows(*ROWS[:1]), "--reward_funcs", f"{__name__}.garbled") == 1
    assert "  row 0: raised: '1': ValueError: lost \\udc80\n" in output.getvalue().decode(encoding)


def test_reward_that_exits_fails_the_check(write_rows, capsys):
    assert check("--dataset_name", write_rows(*ROWS[:1]), "--reward_funcs", f"{__name__}.exits") == 1
    assert "  row 0: raised: '1': SystemExit: 0\n" in capsys.readouterr().out


def test_reward_model_is_skipped_with_a_line(write_rows, capsys):
    model = ["--reward_model_name_or_path", "some/model", "--reward_weights", "1", "0.5"]
    assert check("--dataset_name", write_rows(*ROWS), "--reward_funcs", f"{__name__}.length", *model) == 0
    out = capsys.readouterr().out
    assert "some/model: not checked: a reward model, which is not loaded here." in out
    assert cells(out, "length")["weight"] == "0.5"


def test_reward_for_turns_is_skipped_with_a_line(write_rows, capsys):
    assert check("--dataset_name", write_rows(*ROWS), "--reward_funcs", f"{__name__}.by_turn") == 0
    assert "by_turn: not checked: it scores turns, which only a rollout has." in capsys.readouterr().out


def test_config_of_a_run_is_taken_as_it_is_and_neither_model_nor_device_matters(write_rows, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text(
        f"model_name_or_path: /absent/model\nbf16: true\nnum_generations: 7\nuse_vllm: true\n"
        f"dataset_name: {write_rows(*ROWS)}\nmax_train_samples: 3\nprompt_format: text\nreward_funcs: [format]\n"
    )
    rewards, weights, (prepared, sources, is_chat), _ = prepare(["--config", str(config)], num_rows=100)
    assert (len(prepared), is_chat, weights, len(rewards)) == (3, False, [1.0], 1)
    assert prepared[0] == sources[0] == {"problem": "0+1=", "prompt": "0+1=", "solution": "1"}


def test_gold_answers_are_told_from_the_prompts_of_the_dataset(write_rows):
    path = write_rows({"prompt": "def f():\n", "test": "assert f()"})
    options = ["--dataset_name", path, "--reward_funcs", "code", "--prompt_template", "Complete: {prompt}"]
    _, _, rows, _ = prepare(options, num_rows=1)
    assert rows.prepared[0]["prompt"] == [{"role": "user", "content": "Complete: def f():\n"}]
    assert rows.sources == [{"prompt": "def f():\n", "test": "assert f()"}]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--reward_funcs", "maths"], "did you mean 'math'"),
        (["--num_rows", "0"], "num_rows 0: nothing to check"),
        (["--reward_fun", "math"], "unknown argument '--reward_fun'; did you mean '--reward_funcs'"),
        (["--reward_funcs", "format", "--dataset_name", "absent.jsonl"], "no such file or folder"),
    ],
)
def test_mistake_ends_with_one_line(write_rows, more, message):
    code = check("--dataset_name", write_rows(*ROWS), *more)
    assert code.startswith("acpo-trl rewards check: error: ") and message in code and "\n" not in code


def test_command_alone_prints_its_usage(capsys):
    with pytest.raises(SystemExit):
        run([], "acpo-trl rewards")
    assert capsys.readouterr().out.startswith("usage: acpo-trl rewards check --config FILE.yaml [--num_rows N]")


def test_programs_are_checked_on_a_dataset_like_humaneval(write_rows, capsys):
    row = {
        "prompt": "def double(n):\n    # Give twice n.\n",
        "entry_point": "double",
        "canonical_solution": "    return 2 * n\n",
        "test": "def check(candidate):\n    assert candidate(3) == 6\n",
    }
    bad = {**row, "canonical_solution": "    return n\n"}
    options = ["--dataset_name", write_rows(row, bad), "--prompt_template", "Complete this function:\n{prompt}"]
    entry = '{"name": "code", "options": {"sandbox": "process"}}'
    assert check(*options, "--reward_funcs", entry) == 1
    out = capsys.readouterr().out
    assert (cells(out, "code")["right"], cells(out, "code")["wrong"]) == ("1", "1")
    assert "  row 1: 0: '```python def double(n): # Give twice n." in out and ": wrong_answer" in out


@pytest.mark.slow
def test_command_checks_the_built_in_rewards(write_rows):
    options = ["--dataset_name", write_rows(*ROWS), "--reward_funcs", "math", "format"]
    command = [sys.executable, "-m", "acpo_trl.cli.main", "rewards", "check", *options]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert cells(result.stdout, "math")["right"] == "12"


def test_environment_is_named_as_unchecked_beside_the_rewards(write_rows, tmp_path, capsys):
    rows = lookup_tasks(2, seed=0)
    config = tmp_path / "agent.yaml"
    config.write_text("environment: {name: lookup}\nrollout: {max_turns: 3}\nreward_weights: [0.5, 1, 1, 1, 1]\n")
    options = ["--config", str(config), "--dataset_name", write_rows(*rows)]
    note = "environment 'lookup': its rewards are not checked: they judge turns, which only a rollout has.\n"
    assert check(*options, "--reward_funcs", "exact_match") == 0
    out = capsys.readouterr().out
    assert (cells(out, "exact_match")["weight"], cells(out, "exact_match")["right"]) == ("0.5", "2")
    assert out.endswith(f"\n\n{note}")
    config.write_text("environment: lookup\n")
    assert check(*options) == 0
    assert capsys.readouterr().out.endswith(f"\n\n{note}")
    assert check(*options, "--environment", "lookups").startswith(
        "acpo-trl rewards check: error: environment 'lookups'"
    )
