"""Reward functions of a run, found and checked before anything heavy is loaded."""

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from trl.trainer.utils import get_callable_name

from ..resolve import resolve
from ..rewards import REWARDS
from ..rewards.declare import declaration_of
from .entry import Entry, check_options, describe, is_finite_number, make, read_entry
from .environment import Environment

Reward = Callable[..., Any]

# What TRL passes to a reward function beside the dataset's columns; the last only with an environment factory.
TRL_ARGUMENTS = ("prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric")
RESERVED = (*TRL_ARGUMENTS, "environments")
KEYS = ["name", "weight", "options"]
EXAMPLE = '{"name": "math", "weight": 1.0, "options": {"limit_s": 2}}'
NO_ENVIRONMENT = Environment()


def load_rewards(
    entries: Sequence[str | Mapping[str, Any]] | None,
    reward_model: str | None,
    weights: Sequence[float] | None,
    environment: Environment = NO_ENVIRONMENT,
) -> tuple[list[Any], list[float] | None]:
    """The reward model, if any, then the rewards of `reward_funcs`; and their weights, None if nobody sets one.

    The trainer adds the rewards of the environment behind them.

    Raises:
        ValueError: no reward, an entry that cannot be read or built, two rewards of one name, or weights that do not
            fit.
    """
    read = [read_entry(entry, "reward_funcs", KEYS, EXAMPLE) for entry in entries or ()]
    rewards: list[Any] = [reward_model] if reward_model else []
    rewards += map(build, read)
    if not rewards and not environment.scores:
        raise ValueError(
            "reward_funcs None: nothing would score the completions; expected names among "
            f"{sorted(REWARDS)} or dotted paths; set reward_funcs, reward_model_name_or_path, or an environment that "
            "has reward_kinds."
        )
    check_names(rewards)
    own = [None] * bool(reward_model) + [entry.weight for entry in read]
    return rewards, choose_weights(rewards, own, weights, environment.reward_kinds)


def build(entry: Entry) -> Reward:
    """The reward that an entry names, with its options.

    Raises:
        ValueError: an unknown name, something that cannot be called, or options that it does not take.
    """
    target = resolve(entry.name, REWARDS, "reward_funcs")
    if isinstance(target, type):
        target = make(target, entry)
    elif entry.options and callable(target):
        target = with_options(target, entry)
    if not callable(target):
        raise ValueError(f"{entry.label}: is a {type(target).__name__}; expected a function.")
    return target


def with_options(function: Reward, entry: Entry) -> Reward:
    """A reward function whose options are set, with the function's name and declaration."""
    if not inspect.isroutine(function):
        raise ValueError(
            f"{entry.label}: is an object, made before its options {dict(entry.options)} could be told; "
            "expected a function or a class; name its class, or drop the options."
        )
    check_options(function, entry, RESERVED)
    bound = functools.partial(function, **entry.options)
    bound.__name__ = function.__name__  # type: ignore[attr-defined]
    bound.declaration = declaration_of(function)  # type: ignore[attr-defined]
    return bound


def check_names(rewards: Sequence[Any]) -> None:
    """Raise ValueError for two rewards that would write to the same columns of the log."""
    counts = Counter(get_callable_name(reward) for reward in rewards if callable(reward))
    if twice := [name for name, count in counts.items() if count > 1]:
        raise ValueError(
            f"reward_funcs: several rewards are called {twice}, so one would overwrite the other's rewards/<name>/mean "
            "in the log; expected different names; wrap one in a function of your own and give its dotted path."
        )


def choose_weights(
    rewards: Sequence[Any], own: Sequence[float | None], weights: Sequence[float] | None, kinds: Sequence[str] = ()
) -> list[float] | None:
    """`reward_weights`, or the entries' own weights beside declared ones, or None if there is neither.

    `reward_weights` may go on with a weight for each of `kinds`, the rewards of the environment.

    Raises:
        ValueError: both are set, or `reward_weights` has the wrong length or is no list of finite numbers.
    """
    is_set = any(weight is not None for weight in own)
    if weights is None:
        return list(effective_weights(rewards, own)) if is_set else None
    if not isinstance(weights, Sequence) or not all(map(is_finite_number, weights)):
        raise ValueError(
            f"reward_weights {weights!r}: rewards would be lost or could not be weighed; expected a list of finite "
            "numbers such as [1.0, -0.5]; YAML takes 1e-1 for text, so write 0.1."
        )
    if is_set:
        raise ValueError(
            f"reward_weights {list(weights)}: entries of reward_funcs set weights too; expected one of the two; drop "
            "reward_weights, or `weight` from the entries."
        )
    if len(weights) not in (len(rewards), len(rewards) + len(kinds)):
        more = f", and perhaps one for each kind of the environment's rewards, {list(kinds)}" if kinds else ""
        raise ValueError(
            f"reward_weights {list(weights)}: {len(weights)} weights for {len(rewards)} rewards; expected one for each "
            f"of reward_model_name_or_path (first, if set) and reward_funcs{more}."
        )
    return list(weights)


def effective_weights(rewards: Sequence[Any], own: Sequence[float | None]) -> list[float]:
    """The weights that are set, and for the others the declared ones (1 for a reward model)."""
    return [
        declaration_of(reward).weight if weight is None else float(weight)
        for reward, weight in zip(rewards, own, strict=True)
    ]


def check_arguments(
    rewards: Sequence[Any], columns: Collection[str], environment: Environment = NO_ENVIRONMENT
) -> None:
    """Raise ValueError for a reward function that cannot be called, or cannot work, with the dataset's columns."""
    functions = [reward for reward in rewards if callable(reward)]
    if functions and (taken := sorted(set(columns) & set(RESERVED))):
        raise ValueError(
            f"dataset columns {taken}: TRL passes arguments of these names to reward functions; expected other names; "
            "rename or remove the columns."
        )
    given = dict.fromkeys({*TRL_ARGUMENTS, *columns, *environment.columns} - {"prompt", "completion"})
    for reward in functions:
        check_call(reward, {**given, "turns": None} if declaration_of(reward).level == "turn" else given)
        if check := getattr(reward, "check_columns", None):
            try:
                check(columns)
            except ValueError as error:
                raise ValueError(f"{error} Rewards get the column that answer_column names as 'solution'.") from error
            except RuntimeError as error:  # what it needs beside the data is not there, such as a sandbox
                raise ValueError(str(error)) from error
            except Exception as error:
                raise ValueError(
                    f"reward function {get_callable_name(reward)!r}: its check_columns fails: {describe(error)}; "
                    "expected ValueError for columns that it cannot use; correct it."
                ) from error


def check_call(reward: Reward, given: Mapping[str, Any]) -> None:
    """Raise ValueError for a reward function that does not take the keywords, or whose options they would replace."""
    name = get_callable_name(reward)
    if isinstance(reward, functools.partial) and (replaced := sorted(set(reward.keywords) & set(given))):
        raise ValueError(
            f"reward function {name!r}: the options {replaced} are columns of the dataset too, which would replace "
            "them; expected options of other names; drop the options or rename the columns."
        )
    try:
        inspect.signature(reward).bind(**given)
    except TypeError as error:
        raise ValueError(
            f"reward function {name!r}: {error}; it is called with the keywords {sorted(given)}; take only these and "
            "`**kwargs`, or set answer_column, whose column is passed as `solution`."
        ) from error
