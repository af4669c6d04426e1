"""Rewards by name, checked before a model is loaded."""

import pytest
import trl.rewards

from acpo_trl.cli.rewards import check_arguments, load_rewards
from acpo_trl.rewards import MathReward, format_reward


def needs_level(completions, level, **kwargs):
    return [float(n) for n in level]


def needs_no_more(completions):
    return [0.0 for _ in completions]


def test_rewards_come_in_the_order_of_their_weights_with_the_reward_model_first():
    rewards = load_rewards(["format", "trl.rewards.think_format_reward", "math"], "some/reward-model", [1, 2, 3, 4])
    assert rewards[:3] == ["some/reward-model", format_reward, trl.rewards.think_format_reward]
    assert isinstance(rewards[3], MathReward)


def test_reward_model_alone_is_enough():
    assert load_rewards(None, "some/reward-model", None) == ["some/reward-model"]


@pytest.mark.parametrize(
    ("names", "weights", "message"),
    [
        (["maths"], None, r"reward_funcs 'maths': no such name; .*did you mean 'math'\?"),
        (["trl.rewards.think_formt_reward"], None, "reward_funcs 'trl.rewards.think_formt_reward': cannot be imported"),
        (["math.pi"], None, "reward_funcs 'math.pi': is a float; expected a function"),
        (None, None, r"nothing would score the completions; expected names among \['code', 'format', 'math'\]"),
        (["math", "format"], [1.0], r"reward_weights \[1.0\]: 1 weights for 2 rewards"),
    ],
)
def test_reward_that_cannot_be_used_is_named(names, weights, message):
    with pytest.raises(ValueError, match=message):
        load_rewards(names, None, weights)


def test_reward_gets_dataset_columns_as_keywords():
    check_arguments([needs_level, trl.rewards.accuracy_reward, "a/reward-model"], ["prompt", "level", "solution"])


def test_column_that_a_reward_needs_must_be_there():
    with pytest.raises(ValueError, match="reward function 'needs_level': missing a required argument: 'level'"):
        check_arguments([needs_level], ["prompt", "solution"])


def test_reward_must_take_what_trl_passes():
    with pytest.raises(ValueError, match=r"'needs_no_more': got an unexpected keyword argument .*take only these and"):
        check_arguments([needs_no_more], ["prompt"])


def test_math_reward_needs_gold_answers():
    check_arguments([MathReward()], ["prompt", "solution"])
    with pytest.raises(ValueError, match=r"reward 'math': .* its columns are \['gold', 'prompt'\]; set answer_column"):
        check_arguments([MathReward()], ["prompt", "gold"])
