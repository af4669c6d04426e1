"""Reward functions of a run, found and checked before anything heavy is loaded."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..resolve import resolve
from ..rewards import REWARDS, MathReward

Reward = Callable[..., Any]

# What TRL passes to a reward function beside the dataset's columns.
TRL_ARGUMENTS = ("prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric")


def load_rewards(names: Sequence[str] | None, reward_model: str | None, weights: Sequence[float] | None) -> list[Any]:
    """The reward model, if any, then the named functions, in the order of `reward_weights`.

    Raises:
        ValueError: no reward, an unknown name, something that cannot be called, or a wrong number of weights.
    """
    rewards: list[str | Reward] = [reward_model] if reward_model else []
    for name in names or ():
        reward = resolve(name, REWARDS, "reward_funcs")
        if isinstance(reward, type):
            reward = reward()
        if not callable(reward):
            raise ValueError(f"reward_funcs {name!r}: is a {type(reward).__name__}; expected a function.")
        rewards.append(reward)
    if not rewards:
        raise ValueError(
            "reward_funcs None: nothing would score the completions; expected names among "
            f"{sorted(REWARDS)} or dotted paths; set reward_funcs or reward_model_name_or_path."
        )
    if weights is not None and len(weights) != len(rewards):
        raise ValueError(
            f"reward_weights {list(weights)}: {len(weights)} weights for {len(rewards)} rewards; expected one for each "
            "of reward_model_name_or_path (first, if set) and reward_funcs."
        )
    return rewards


def check_arguments(rewards: Sequence[Any], columns: Iterable[str]) -> None:
    """Raise ValueError for a reward function that cannot be called with the dataset's columns."""
    given = dict.fromkeys({*TRL_ARGUMENTS, *columns} - {"prompt", "completion"})
    for reward in filter(callable, rewards):
        if isinstance(reward, MathReward) and "solution" not in given:
            raise ValueError(
                f"reward 'math': the dataset has no gold answers in 'solution' or 'answer'; its columns are "
                f"{sorted(columns)}; set answer_column to the one that holds them."
            )
        try:
            inspect.signature(reward).bind(**given)
        except TypeError as error:
            raise ValueError(
                f"reward function {getattr(reward, '__name__', reward)!r}: {error}; it is called with the keywords "
                f"{sorted(given)}; take only these and `**kwargs`, or set answer_column, whose column is passed as "
                "`solution`."
            ) from error
