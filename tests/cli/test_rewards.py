"""Rewards by name, checked before a model is loaded."""

import inspect

import pytest
import trl.rewards
from trl.trainer.utils import get_callable_name, is_async_callable

from acpo_trl.cli.rewards import check_arguments, load_rewards
from acpo_trl.rewards import CodeReward, MathReward, format_reward, reward


def needs_level(completions, level, **kwargs):
    return [float(n) for n in level]


def needs_no_more(completions):
    return [0.0 for _ in completions]


@reward(kind="cost", weight=0.25)
def words(completions, limit=10, **columns):
    return [float(len(completion.split()) > limit) for completion in completions]


@reward(kind="process")
async def slow_words(completions, *, limit, **columns):
    return words(completions, limit)


class Judge:
    def __init__(self, path, strict=False):
        if strict not in (True, False):
            raise ValueError(f"strict {strict!r}: expected true or false.")
        self.path, self.strict = path, strict

    def __call__(self, completions, **columns):
        return [0.0 for _ in completions]


class Lenient(Judge):
    def __init__(self, **options):
        super().__init__(**options)


class Lost(Judge):
    def __init__(self):
        raise KeyError("home")


judge = Judge("judge.txt")


def of(name, **more):
    """An entry for something in this file."""
    return {"name": f"{__name__}.{name}", **more}


def test_rewards_come_in_the_order_of_their_weights_with_the_reward_model_first():
    names = ["format", "trl.rewards.think_format_reward", "math"]
    rewards, weights = load_rewards(names, "some/reward-model", [1, 2, 3, 4])
    assert rewards[:3] == ["some/reward-model", format_reward, trl.rewards.think_format_reward]
    assert isinstance(rewards[3], MathReward)
    assert weights == [1, 2, 3, 4]


def test_reward_model_alone_is_enough():
    assert load_rewards(None, "some/reward-model", None) == (["some/reward-model"], None)


def test_class_is_called_with_its_options():
    (math, code), _ = load_rewards([{"name": "math", "options": {"limit_s": 2.0}}, {"name": "code"}], None, None)
    assert isinstance(math, MathReward) and math.limit_s == 2.0
    assert isinstance(code, CodeReward)


def test_mapping_can_be_json_as_on_the_command_line():
    text = '{"name": "math", "weight": 0.5, "options": {"require_box": true}}'
    (math,), weights = load_rewards([text], None, None)
    assert math.require_box is True and weights == [0.5]


def test_function_with_options_keeps_name_and_declaration():
    (bound,), _ = load_rewards([of("words", options={"limit": 1})], None, None)
    assert bound(completions=["one", "one two"], solution=["", ""]) == [0.0, 1.0]
    assert bound.__name__ == get_callable_name(bound) == "words"
    assert (bound.declaration.kind, bound.declaration.weight) == ("cost", 0.25)


def test_async_function_with_options_stays_async():
    (bound,), _ = load_rewards([of("slow_words", options={"limit": 1})], None, None)
    assert is_async_callable(bound) and inspect.iscoroutinefunction(bound)
    assert bound.declaration.kind == "process"


def test_class_that_takes_any_option_gets_them_all():
    (lenient,), _ = load_rewards([of("Lenient", options={"path": "x", "strict": True})], None, None)
    assert (lenient.path, lenient.strict) == ("x", True)


def test_object_is_taken_as_it_is():
    assert load_rewards([of("judge")], None, None) == ([judge], None)


def test_one_weight_brings_in_the_declared_ones():
    entries = [{"name": "math", "weight": 2}, of("words"), "format"]
    assert load_rewards(entries, "some/reward-model", None)[1] == [1.0, 2.0, 0.25, 1.0]


def test_weight_may_be_negative():
    assert load_rewards(["math", "format"], None, [1, -0.5])[1] == [1, -0.5]


def test_without_weights_the_trainer_decides():
    assert load_rewards(["math", of("words")], None, None)[1] is None


@pytest.mark.parametrize(
    ("entries", "weights", "message"),
    [
        (["maths"], None, r"reward_funcs 'maths': no such name; .*did you mean 'math'\?"),
        ([{"name": "maths"}], None, r"reward_funcs 'maths': no such name; .*did you mean 'math'\?"),
        (["trl.rewards.think_formt_reward"], None, "reward_funcs 'trl.rewards.think_formt_reward': cannot be imported"),
        (["math.pi"], None, "reward_funcs 'math.pi': is a float; expected a function"),
        ([{"name": "math.pi", "options": {"a": 1}}], None, "reward_funcs 'math.pi': is a float; expected a function"),
        (None, None, r"nothing would score the completions; expected names among \['code'"),
        ([], None, "nothing would score the completions"),
        (["math", "format"], [1.0], r"reward_weights \[1.0\]: 1 weights for 2 rewards"),
        (["math"], [float("nan")], r"reward_weights \[nan\]: .*expected a list of finite numbers"),
        (["math"], [float("-inf")], r"reward_weights \[-inf\]: "),
        (["math"], 1, "reward_weights 1: .*expected a list of finite numbers"),
        (["math"], "1", "reward_weights '1': "),
        (["math"], ["a"], r"reward_weights \['a'\]: "),
        (["math"], [True], r"reward_weights \[True\]: "),
        (["math"], [None], r"reward_weights \[None\]: "),
        ([{"name": "math", "weight": 1}], [1.0], r"reward_weights \[1.0\]: entries of reward_funcs set weights too"),
        (["math", {"name": "math", "options": {"require_box": True}}], None, r"several rewards are called \['math'\]"),
    ],
)
def test_reward_that_cannot_be_used_is_named(entries, weights, message):
    with pytest.raises(ValueError, match=message):
        load_rewards(entries, None, weights)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (7, "reward_funcs 7: is neither a name nor a mapping"),
        ({"weight": 1.0}, r"is neither a name nor a mapping with `name` and no keys beside \['name', 'weight', 'opt"),
        ({"math": {"limit_s": 2}}, "is neither a name nor a mapping"),
        ({"name": "math", "limit_s": 2}, "its own arguments belong into `options`"),
        ('{"name": "math"', "is no JSON"),
        ({"name": "math", "weight": "1e-1"}, "'math': weight '1e-1': expected a finite number such as 0.1"),
        ({"name": "math", "weight": True}, "'math': weight True: expected a finite number"),
        ({"name": "math", "weight": float("nan")}, "'math': weight nan: expected a finite number"),
        ({"name": "math", "options": ["limit_s"]}, r"'math': options \['limit_s'\]: is a list; expected a mapping"),
        (
            {"name": "math", "options": {"limit": 2}},
            r"'math': no such options \['limit'\]; expected some of \['limit_s', 'require_box'",
        ),
        (of("words", options={"limits": 2}), r"words': no such options \['limits'\]; expected some of \['limit'\]"),
        (of("words", options={"completions": []}), r"words': no such options \['completions'\]"),
        (of("Judge", options={"strict": True}), r"Judge': options .*missing 1 required .* values for \['path', 'str"),
        (of("Judge", options={"path": "", "strict": 3}), "strict 3: expected true or false.; expected values for"),
        (of("Lost"), r"Lost': options \{\}: KeyError: 'home'; expected values for"),
        (of("judge", options={"strict": True}), "judge': is an object, made before its options .*name its class"),
    ],
)
def test_entry_that_cannot_be_used_is_refused_with_what_it_takes(entry, message):
    with pytest.raises(ValueError, match=message) as refusal:
        load_rewards([entry], None, None)
    assert "\n" not in str(refusal.value)


def test_reward_gets_dataset_columns_as_keywords():
    check_arguments([needs_level, trl.rewards.accuracy_reward, "a/reward-model"], ["prompt", "level", "solution"])


def test_column_that_a_reward_needs_must_be_there():
    with pytest.raises(ValueError, match="reward function 'needs_level': missing a required argument: 'level'"):
        check_arguments([needs_level], ["prompt", "solution"])


def test_reward_must_take_what_trl_passes():
    with pytest.raises(ValueError, match=r"'needs_no_more': got an unexpected keyword argument .*take only these and"):
        check_arguments([needs_no_more], ["prompt"])


def test_option_that_a_column_would_replace_is_refused():
    rewards, _ = load_rewards([of("words", options={"limit": 1})], None, None)
    check_arguments(rewards, ["prompt", "solution"])
    with pytest.raises(ValueError, match=r"'words': the options \['limit'\] are columns of the dataset too"):
        check_arguments(rewards, ["prompt", "limit"])


def test_reward_may_refuse_columns_itself(monkeypatch):
    def check(columns):
        if "gold" not in columns:
            raise ValueError(f"judge: no column 'gold' among {columns}.")

    monkeypatch.setattr(judge, "check_columns", check, raising=False)
    check_arguments([judge], ["prompt", "gold"])
    with pytest.raises(ValueError, match=r"no column 'gold' among \['prompt'\]\. Rewards get the column that answer_"):
        check_arguments([judge], ["prompt"])


@pytest.mark.parametrize("name", ["prompts", "completion_ids", "trainer_state", "log_extra", "environments"])
def test_column_that_trl_fills_itself_is_refused(name):
    check_arguments(["a/reward-model"], ["prompt", name])
    with pytest.raises(ValueError, match=rf"dataset columns \['{name}'\]: TRL passes arguments of these names"):
        check_arguments([words], ["prompt", name])


def test_built_in_reward_names_the_columns_it_needs():
    check_arguments([MathReward()], ["prompt", "solution"])
    with pytest.raises(
        ValueError, match=r"reward 'math': no gold answers among .*'gold'.* answer_column names as 'sol"
    ):
        check_arguments([MathReward()], ["prompt", "gold"])


def test_check_of_columns_that_fails_is_named(monkeypatch):
    monkeypatch.setattr(judge, "check_columns", lambda columns: {}["gold"], raising=False)
    with pytest.raises(
        ValueError, match="reward function 'Judge': its check_columns fails: KeyError: 'gold'; expected"
    ):
        check_arguments([judge], ["prompt"])


def test_missing_sandbox_is_told_in_one_line(monkeypatch):
    def check(columns):
        raise RuntimeError("bwrap is not installed")

    monkeypatch.setattr(judge, "check_columns", check, raising=False)
    with pytest.raises(ValueError, match=r"^bwrap is not installed$"):
        check_arguments([judge], ["prompt"])
