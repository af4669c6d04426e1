"""The options `environment` and `rollout`, from YAML and command line to a trained step."""

import json

import pytest
from scripted import TEMPLATE, Scripted, call
from tiny import byte_tokenizer

from acpo_trl.cli.environment import check_columns, check_rows, check_tokenizer, load_environment
from acpo_trl.cli.parse import parse
from acpo_trl.cli.rewards import check_arguments, load_rewards
from acpo_trl.cli.train import main, make_parser, run
from acpo_trl.envs import Search, Step, TaggedTools, lookup_tasks
from acpo_trl.rollouts import MultiTurnRollout

(ROW,) = lookup_tasks(1, seed=0, min_hops=2, max_hops=2)
FIRST, SECOND, RIGHT = *ROW["path"], ROW["solution"]


class Echo:
    """A step environment."""

    reward_kinds = ("format", "outcome")

    def reset(self, word, **row):
        return None

    def step(self, action):
        return Step(action, {"outcome": 0.0}, done=True)


class Calculator:
    """A tool environment of TRL that scores itself."""

    def reset(self, **row):
        return None

    def get_reward(self):
        return 1.0

    def add(self, left: int, right: int) -> int:
        """
        Add.

        Args:
            left: One.
            right: Another.
        """
        return left + right


class Judged(Calculator):
    reward_kinds = ("outcome",)

    def _score(self, turns):
        return []


class Silent:
    """A tool environment that nobody could score."""

    def reset(self, **row):
        return None


class Unexplained(Silent):
    def add(self, left, right):
        return left + right


class Strict(Silent):
    def reset(self, prompt):
        return None


class Picky(Judged):
    def _check_columns(self, columns):
        if "solution" not in columns:
            raise ValueError(f"no gold answers among {sorted(columns)}.")


class Careless(Judged):
    def _check_columns(self, columns):
        raise KeyError("solution")


class Unbuildable(Judged):
    def __init__(self):
        raise KeyError("home")


class NoReset:
    reward_kinds = ("outcome",)


def echo():
    return Echo()


def pays_if_done(completions, stop_reason, **columns):
    return [float(reason == "done") for reason in stop_reason]


def asks_environments(completions, environments, **columns):
    return [0.0 for _ in environments]


def own(name, **more):
    """An entry for something in this file."""
    return {"name": f"{__name__}.{name}", **more}


@pytest.fixture
def script_args(tmp_path):
    """Write a config file and give what it says to the training script."""

    def read(text, *options):
        (tmp_path / "run.yaml").write_text(text)
        arguments = ["--config", str(tmp_path / "run.yaml"), "--output_dir", str(tmp_path / "run")]
        return parse(make_parser, [*arguments, "--bf16", "false", "--use_cpu", "true", *options])[0]

    return read


def test_yaml_and_command_line_say_the_same(script_args):
    yaml = script_args("environment: {name: search, options: {top_k: 2}}\nrollout: {max_turns: 3, stop_strings: [x]}\n")
    line = script_args(
        "environment: lookup\n",
        *("--environment", '{"name": "search", "options": {"top_k": 2}}'),
        *("--rollout", '{"max_turns": 3, "stop_strings": ["x"]}'),
    )
    for given in (yaml, line):
        loaded = load_environment(given.environment, given.rollout)
        assert (loaded.rollout.max_turns, loaded.rollout.stop_strings) == (3, ("x",))
        assert isinstance(loaded.probe, Search) and loaded.probe._top_k == 2


def test_without_rollout_the_factory_goes_to_the_tool_loop_of_trl():
    loaded = load_environment({"name": "search", "options": {"top_k": 2}}, None)
    factory = loaded.arguments["environment_factory"]
    assert list(loaded.arguments) == ["environment_factory"]
    assert factory()._top_k == 2 and factory() is not factory()
    assert loaded.reward_kinds == ["outcome", "format", "cost", "process"]


def test_with_rollout_tools_are_called_with_tags():
    rollout = load_environment("lookup", {"max_turns": 3}).rollout
    assert isinstance(rollout, MultiTurnRollout) and rollout.max_turns == 3
    environment = rollout._pool.make()
    assert isinstance(environment, TaggedTools)
    environment.reset(**ROW)
    assert environment.step(f"<look>{FIRST}</look>").rewards["process"] == 1.0
    assert environment.step("<answer>x</answer>").done


def test_kinds_are_known_of_environments_that_a_function_gives():
    loaded = load_environment(own("echo"), {"max_turns": 2})
    assert isinstance(loaded.rollout._pool.make(), Echo)
    assert loaded.reward_kinds == ["outcome", "format"]


def test_nothing_said_is_no_environment():
    loaded = load_environment(None, None)
    assert (loaded.arguments, loaded.reward_kinds, loaded.scores, loaded.columns) == ({}, [], False, ())


@pytest.mark.parametrize(
    ("environment", "rollout", "message"),
    [
        ("lookups", None, r"environment 'lookups': no such name; .*did you mean 'lookup'\?"),
        ("my_package.Absent", None, "environment 'my_package.Absent': cannot be imported"),
        ("math.pi", None, "environment 'math.pi': is a float; expected a class"),
        ({"name": "lookup", "weight": 1}, None, r"no keys beside \['name', 'options'\]"),
        ({"name": "search", "top_k": 5}, None, "its own arguments belong into `options`"),
        ('{"name": "search"', None, "is no JSON"),
        ({"name": "lookup", "options": [1]}, None, r"'lookup': options \[1\]: is a list; expected a mapping"),
        (
            {"name": "lookup", "options": {"hops": 2}},
            None,
            r"'lookup': no such options \['hops'\]; expected some of \[\]",
        ),
        ({"name": "search", "options": {"topk": 2}}, None, r"'search': no such options \['topk'\]; .*'top_k'"),
        ({"name": "search", "options": {"corpus": "absent.jsonl"}}, None, "'search': options .*No such file"),
        ({"name": "search", "options": {"outcome": "f2"}}, None, "'search': options .*outcome 'f2': no such name"),
        ({"name": "python_tool", "options": {"limits": {"wall": 1}}}, None, "'python_tool': options .*'wall'"),
        (None, {"max_turns": 3}, "rollout .*there is no environment to answer the policy"),
        ("lookup", 3, "rollout 3: is a int; expected a mapping from option to value"),
        ("lookup", "tags", "rollout 'tags': is a str; expected a mapping"),
        ("lookup", {}, r"rollout: options \{\}: .*'max_turns'"),
        ("lookup", {"max_turn": 3}, r"rollout: no such options \['max_turn'\]; expected some of \['max_turns', "),
        ("lookup", {"max_turns": 0}, "rollout: options .*max_turns 0: nothing could be done within it"),
        ("lookup", {"max_turns": 3, "environment": 1}, r"rollout: no such options \['environment'\]"),
        (own("Echo"), None, "Echo': has a method `step`, .*expected `rollout` too"),
        (own("Unexplained"), None, "Unexplained': tool 'add' cannot be described to the policy: "),
        (own("Unbuildable"), None, r"Unbuildable': options \{\}: KeyError: 'home'; expected"),
        (own("NoReset"), None, "NoReset': gives a NoReset without `reset`"),
        (own("Calculator"), {"max_turns": 3}, "Calculator': gives a Calculator without `reward_kinds`"),
        (own("Judged"), {"max_turns": 3}, "Judged': tool 'add': takes 2 arguments, but a tag holds one text"),
    ],
)
def test_option_that_cannot_work_is_refused_in_one_line(environment, rollout, message):
    with pytest.raises(ValueError, match=message) as refusal:
        load_environment(environment, rollout)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("rollout", [None, {"max_turns": 3}])
def test_columns_that_reset_needs_must_be_there(rollout):
    lookup = load_environment("lookup", rollout)
    check_columns(lookup, list(ROW))
    with pytest.raises(ValueError, match=r"environment 'lookup': its reset .*missing a required argument: 'path'"):
        check_columns(lookup, ["prompt", "cards", "solution"])


def test_reset_must_take_the_columns_that_there_are():
    strict = load_environment(own("Strict"), None)
    check_columns(strict, ["prompt"])
    with pytest.raises(ValueError, match=r"unexpected keyword argument 'solution'; .*let reset take `\*\*row`"):
        check_columns(strict, ["prompt", "solution"])


def test_environment_may_refuse_columns_itself():
    picky = load_environment(own("Picky"), None)
    check_columns(picky, ["prompt", "solution"])
    with pytest.raises(ValueError, match=r"Picky': no gold answers among \['prompt'\]\.$"):
        check_columns(picky, ["prompt"])
    with pytest.raises(ValueError, match=r"Careless': KeyError: 'solution'$"):
        check_columns(load_environment(own("Careless"), None), ["prompt"])


@pytest.mark.parametrize("rollout", [None, {"max_turns": 3}])
def test_environment_that_compares_with_gold_answers_needs_them(rollout):
    search = load_environment("search", rollout)
    check_columns(search, ["prompt", "solution"])
    with pytest.raises(ValueError, match=r"^environment 'search': .*no gold answers among the columns \['prompt'\]"):
        check_columns(search, ["prompt"])


def test_columns_that_would_be_taken_for_something_else_are_refused():
    with pytest.raises(ValueError, match="column 'environment', from which TRL chooses among several"):
        check_columns(load_environment("search", None), ["prompt", "environment"])
    check_columns(load_environment("search", None), ["prompt", "solution", "messages"])
    with pytest.raises(ValueError, match=r"dataset columns \['messages'\]: the rollout gives"):
        check_columns(load_environment("search", {"max_turns": 2}), ["prompt", "messages"])


def test_the_tool_loop_needs_chat_prompts_and_a_rollout_does_not():
    text = {**ROW, "prompt": "Look up card a."}
    with pytest.raises(
        ValueError, match="environment 'lookup': TRL's tool loop needs chat prompts, and these are text"
    ):
        check_rows(load_environment("lookup", None), text)
    check_rows(load_environment("lookup", {"max_turns": 2}), text)


def test_the_tool_loop_needs_a_template_that_shows_tools(tokenizer):
    with pytest.raises(ValueError, match="'lookup': the chat template of the tokenizer cannot show tool calls"):
        check_tokenizer(load_environment("lookup", None), tokenizer, {})
    check_tokenizer(load_environment("lookup", {"max_turns": 2}), tokenizer, {})
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    check_tokenizer(load_environment("lookup", None), tokenizer, {})
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = f"{TEMPLATE} "  # shows tools, but nobody knows how to read the calls
    with pytest.raises(
        ValueError, match=r"can read and continue \(Unrecognized chat template.*expected, to the letter"
    ):
        check_tokenizer(load_environment("lookup", None), tokenizer, {})


def test_observations_as_messages_need_a_template_for_them(tokenizer):
    loaded = load_environment("lookup", {"max_turns": 2, "observation_role": "user"})
    check_tokenizer(loaded, tokenizer, {})
    bare = byte_tokenizer()
    bare.chat_template = None
    with pytest.raises(ValueError, match="'lookup': observation_role 'user': the tokenizer has no chat template"):
        check_tokenizer(loaded, bare, {})


def test_rewards_may_be_left_to_the_environment():
    assert load_rewards(None, None, None, load_environment("lookup", None)) == ([], None)
    assert load_rewards(None, None, None, load_environment(own("Calculator"), None)) == ([], None)
    with pytest.raises(
        ValueError, match=r"nothing would score the completions; .*an environment that has reward_kinds"
    ):
        load_rewards(None, None, None, load_environment(own("Silent"), None))


def test_weights_may_go_on_with_the_kinds_of_the_environment():
    lookup = load_environment("lookup", None)
    assert load_rewards(["math"], None, [1.0], lookup)[1] == [1.0]
    assert load_rewards(["math"], None, [0.0, 1.0, 0.5, 0.1, 0.2], lookup)[1] == [0.0, 1.0, 0.5, 0.1, 0.2]
    with pytest.raises(ValueError, match=r"2 weights for 1 rewards; .*kind of the environment's rewards, \['outcome'"):
        load_rewards(["math"], None, [1.0, 1.0], lookup)


def test_reward_functions_may_ask_for_what_a_rollout_gives():
    rollout, loop = load_environment("lookup", {"max_turns": 2}), load_environment("lookup", None)
    check_arguments([pays_if_done], list(ROW), rollout)
    check_arguments([asks_environments], list(ROW), loop)
    for reward, environment in ((pays_if_done, loop), (asks_environments, rollout)):
        with pytest.raises(ValueError, match="missing a required argument"):
            check_arguments([reward], list(ROW), environment)


@pytest.fixture
def train(arguments, chat_dir, write_rows, tmp_path, monkeypatch):
    """Train one step with a policy that follows a script; give what is logged about it."""

    def follow(script, *options):
        cls = type("Follows", (Scripted,), {"script": [list(texts) for texts in script]})
        monkeypatch.setattr("acpo_trl.trainer.ACPOTrainer", cls)
        size = ["--per_device_train_batch_size", "2", "--num_generations", "2", "--max_completion_length", "400"]
        data = ["--model_name_or_path", chat_dir, "--dataset_name", write_rows(ROW), "--max_steps", "1"]
        main(
            *parse(
                make_parser, [*arguments, *data, *size, "--environment", "lookup", "--save_strategy", "no", *options]
            )
        )
        return json.loads((tmp_path / "run" / "trainer_state.json").read_text())["log_history"][0]

    return follow


@pytest.mark.slow
def test_run_with_tags_logs_turns_and_rewards_of_the_environment(train):
    script = [
        [f"<look>{FIRST}</look>", "hm"],
        [f"<look>{SECOND}</look>", "<answer>x</answer>"],
        [f"<answer>{RIGHT}</answer>"],
    ]
    log = train(script, "--rollout", '{"max_turns": 3}', "--turn_estimator", "outcome")
    assert [log[f"turns/count/{name}"] for name in ("mean", "min", "max")] == [2.5, 2, 3]
    assert log["turns/stop/done"] == 1.0
    assert log["rewards/environment_outcome/mean"] == 0.5
    assert log["rewards/environment_format/mean"] == -0.5
    assert log["rewards/environment_process/mean"] == 1.0
    assert log["turns/advantage_share/outcome"] > 0 and log["grad_norm"] > 0


@pytest.mark.slow
def test_run_in_the_tool_loop_of_trl_logs_turns_and_rewards_of_the_environment(train):
    script = [[call("look", key=FIRST), call("look", key=FIRST)], [call("look", key=SECOND), "x"], [RIGHT]]
    log = train(script, "--turn_estimator", "outcome", "--reward_weights", "1", "0", "0", "0.5")
    assert [log[f"turns/count/{name}"] for name in ("mean", "min", "max")] == [2.5, 2, 3]
    assert (log["tools/calls"], log["tools/failure_frequency"]) == (1.5, 0.0)
    assert log["rewards/environment_outcome/mean"] == 0.5
    assert log["rewards/environment_process/mean"] == 1.5
    assert log["reward"] == 0.5 + 0.5 * 1.5
    assert log["turns/advantage_share/outcome"] > 0 and log["grad_norm"] > 0


def test_mistake_ends_the_command_with_one_line_before_the_model_is_loaded(arguments, monkeypatch):
    monkeypatch.setattr(
        "acpo_trl.trainer.ACPOTrainer", lambda **kwargs: pytest.fail("the model was about to be loaded")
    )
    with pytest.raises(SystemExit) as exit_:
        run([*arguments, "--environment", "search"], "acpo-trl train")
    assert exit_.value.code == (
        "acpo-trl train: error: environment 'search': the chat template of the tokenizer cannot show tool calls and "
        "their results; expected one that can, such as Qwen3's; use such a model, or set `rollout`, and the policy "
        "calls tools with tags."
    )
    with pytest.raises(SystemExit) as exit_:
        run([*arguments, "--environment", "lookup", "--rollout", '{"max_turns": 2}'], "acpo-trl train")
    assert exit_.value.code == (
        "acpo-trl train: error: environment 'lookup': its reset cannot take a row of the dataset: missing a required "
        "argument: 'path'; the columns are ['problem', 'prompt', 'solution'], with gold answers as 'solution'; add or "
        "rename columns, or let reset take `**row`."
    )
