"""Reward functions of a run, found and checked before anything heavy is loaded."""

import functools
import inspect
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trl.trainer.utils import get_callable_name

from ..resolve import resolve
from ..rewards import REWARDS
from ..rewards.declare import declaration_of

Reward = Callable[..., Any]

# What TRL passes to a reward function beside the dataset's columns; the last only with an environment factory.
TRL_ARGUMENTS = ("prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric")
RESERVED = (*TRL_ARGUMENTS, "environments")
KEYS = ["name", "weight", "options"]
EXAMPLE = '{"name": "math", "weight": 1.0, "options": {"limit_s": 2}}'


@dataclass(frozen=True)
class Entry:
    """One entry of `reward_funcs`."""

    name: str
    weight: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def load_rewards(
    entries: Sequence[str | Mapping[str, Any]] | None, reward_model: str | None, weights: Sequence[float] | None
) -> tuple[list[Any], list[float] | None]:
    """The reward model, if any, then the rewards of `reward_funcs`; and their weights, None if nobody sets one.

    Raises:
        ValueError: no reward, an entry that cannot be read or built, two rewards of one name, or weights that do not
            fit.
    """
    read = [read_entry(entry) for entry in entries or ()]
    rewards: list[Any] = [reward_model] if reward_model else []
    rewards += map(build, read)
    if not rewards:
        raise ValueError(
            "reward_funcs None: nothing would score the completions; expected names among "
            f"{sorted(REWARDS)} or dotted paths; set reward_funcs or reward_model_name_or_path."
        )
    check_names(rewards)
    own = [None] * bool(reward_model) + [entry.weight for entry in read]
    return rewards, choose_weights(rewards, own, weights)


def read_entry(entry: Any) -> Entry:
    """An entry of `reward_funcs`: a name, or a mapping (on the command line as JSON) with `name`, `weight`, `options`.

    Raises:
        ValueError: it is neither, or has unknown keys or values of the wrong type.
    """
    given = entry
    if isinstance(entry, str) and entry.lstrip().startswith("{"):
        try:
            given = json.loads(entry)
        except json.JSONDecodeError as error:
            raise ValueError(f"reward_funcs {entry!r}: is no JSON ({error}); expected e.g. {EXAMPLE}.") from error
    if isinstance(given, str):
        return Entry(given)
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str) or not given.keys() <= set(KEYS):
        raise ValueError(
            f"reward_funcs {entry!r}: is neither a name nor a mapping with `name` and no keys beside {KEYS}; expected "
            f"e.g. math or {EXAMPLE}; an argument of the reward itself belongs into `options`."
        )
    weight, options = given.get("weight"), given.get("options") or {}
    if weight is not None and (type(weight) not in (int, float) or not math.isfinite(weight)):
        raise ValueError(f"reward_funcs {given['name']!r}: weight {weight!r}: expected a finite number such as 0.1.")
    if not isinstance(options, Mapping):
        raise ValueError(
            f"reward_funcs {given['name']!r}: options {options!r}: is a {type(options).__name__}; expected a mapping "
            "from option to value."
        )
    return Entry(given["name"], weight, options)


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
        raise ValueError(f"reward_funcs {entry.name!r}: is a {type(target).__name__}; expected a function.")
    return target


def make(kind: Callable[..., Any], entry: Entry) -> Reward:
    """An object of a class of rewards."""
    parameters = inspect.signature(kind).parameters.values()
    if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
        check_options(kind, entry)
    try:
        return kind(**entry.options)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"reward_funcs {entry.name!r}: options {dict(entry.options)}: {error}; expected values for "
            f"{option_names(kind)}; correct them."
        ) from error


def with_options(function: Reward, entry: Entry) -> Reward:
    """A reward function whose options are set, with the function's name and declaration."""
    if not inspect.isroutine(function):
        raise ValueError(
            f"reward_funcs {entry.name!r}: is an object, made before its options {dict(entry.options)} could be told; "
            "expected a function or a class; name its class, or drop the options."
        )
    check_options(function, entry)
    bound = functools.partial(function, **entry.options)
    bound.__name__ = function.__name__  # type: ignore[attr-defined]
    bound.declaration = declaration_of(function)  # type: ignore[attr-defined]
    return bound


def check_options(target: Callable[..., Any], entry: Entry) -> None:
    """Raise ValueError for options without a parameter of their name: `**columns` would swallow a mistyped one."""
    if unknown := sorted(set(entry.options) - set(option_names(target))):
        raise ValueError(
            f"reward_funcs {entry.name!r}: no such options {unknown}; expected some of {option_names(target)}; correct "
            "the spelling."
        )


def option_names(target: Callable[..., Any]) -> list[str]:
    """The keywords that a class or a reward function takes, less those that TRL fills."""
    parameters = inspect.signature(target).parameters.values()
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return [name for name in named if name not in RESERVED]


def check_names(rewards: Sequence[Any]) -> None:
    """Raise ValueError for two rewards that would write to the same columns of the log."""
    counts = Counter(get_callable_name(reward) for reward in rewards if callable(reward))
    if twice := [name for name, count in counts.items() if count > 1]:
        raise ValueError(
            f"reward_funcs: several rewards are called {twice}, so one would overwrite the other's rewards/<name>/mean "
            "in the log; expected different names; wrap one in a function of your own and give its dotted path."
        )


def choose_weights(
    rewards: Sequence[Any], own: Sequence[float | None], weights: Sequence[float] | None
) -> list[float] | None:
    """`reward_weights`, or the entries' own weights beside declared ones, or None if there is neither.

    Raises:
        ValueError: both are set, or `reward_weights` has the wrong length.
    """
    is_set = any(weight is not None for weight in own)
    if weights is None:
        return list(effective_weights(rewards, own)) if is_set else None
    if is_set:
        raise ValueError(
            f"reward_weights {list(weights)}: entries of reward_funcs set weights too; expected one of the two; drop "
            "reward_weights, or `weight` from the entries."
        )
    if len(weights) != len(rewards):
        raise ValueError(
            f"reward_weights {list(weights)}: {len(weights)} weights for {len(rewards)} rewards; expected one for each "
            "of reward_model_name_or_path (first, if set) and reward_funcs."
        )
    return list(weights)


def effective_weights(rewards: Sequence[Any], own: Sequence[float | None]) -> list[float]:
    """The weights that are set, and for the others the declared ones (1 for a reward model)."""
    return [
        declaration_of(reward).weight if weight is None else float(weight)
        for reward, weight in zip(rewards, own, strict=True)
    ]


def check_arguments(rewards: Sequence[Any], columns: Collection[str]) -> None:
    """Raise ValueError for a reward function that cannot be called, or cannot work, with the dataset's columns."""
    functions = [reward for reward in rewards if callable(reward)]
    if functions and (taken := sorted(set(columns) & set(RESERVED))):
        raise ValueError(
            f"dataset columns {taken}: TRL passes arguments of these names to reward functions; expected other names; "
            "rename or remove the columns."
        )
    given = dict.fromkeys({*TRL_ARGUMENTS, *columns} - {"prompt", "completion"})
    for reward in functions:
        check_call(reward, {**given, "turns": None} if declaration_of(reward).level == "turn" else given)
        if check := getattr(reward, "check_columns", None):
            try:
                check(columns)
            except ValueError as error:
                raise ValueError(f"{error} Rewards get the column that answer_column names as 'solution'.") from error
            except RuntimeError as error:  # what it needs beside the data is not there, such as a sandbox
                raise ValueError(str(error)) from error


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
