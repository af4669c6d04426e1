"""Something that an option names, a choice of a table or a dotted path, with options of its own."""

import inspect
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """A name, with what belongs to it."""

    label: str
    """What errors call it."""
    name: str
    weight: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def read_entry(entry: Any, option: str, keys: Sequence[str], example: str) -> Entry:
    """An entry of `option`: a name, or a mapping (on the command line as JSON) with `name` and others of `keys`.

    Raises:
        ValueError: it is neither, or has unknown keys or values of the wrong type.
    """
    given = read_json(entry, option, example)
    if isinstance(given, str):
        return Entry(f"{option} {given!r}", given)
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str) or not given.keys() <= set(keys):
        raise ValueError(
            f"{option} {entry!r}: is neither a name nor a mapping with `name` and no keys beside {list(keys)}; "
            f"expected a name, or e.g. {example}; its own arguments belong into `options`."
        )
    label, weight = f"{option} {given['name']!r}", given.get("weight")
    if weight is not None and not is_finite_number(weight):
        raise ValueError(f"{label}: weight {weight!r}: expected a finite number such as 0.1.")
    return Entry(label, given["name"], weight, as_options(given.get("options") or {}, f"{label}: options"))


def is_finite_number(value: Any) -> bool:
    """Whether `value` is a number, and neither infinite, NaN nor a truth value."""
    return type(value) in (int, float) and math.isfinite(value)


def read_json(value: Any, option: str, example: str) -> Any:
    """`value`, or what it says if it is the text of a JSON object."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        raise ValueError(f"{option} {value!r}: is no JSON ({error}); expected e.g. {example}.") from error


def as_options(value: Any, label: str) -> Mapping[str, Any]:
    """`value`; raises ValueError for anything but a mapping."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{label} {value!r}: is a {type(value).__name__}; expected a mapping from option to value.")
    return value


def make(target: Callable[..., T], entry: Entry) -> T:
    """What `target` gives for the options of an entry.

    Raises:
        ValueError: it does not take them, or cannot work here.
    """
    parameters = inspect.signature(target).parameters.values()
    if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
        check_options(target, entry)
    try:
        return target(**entry.options)
    except Exception as error:
        raise ValueError(
            f"{entry.label}: options {dict(entry.options)}: {reason_of(error)}; expected values for "
            f"{option_names(target)}; correct them."
        ) from error


def reason_of(error: Exception) -> str:
    """What an exception says, with its kind unless its text is enough."""
    is_enough = isinstance(error, TypeError | ValueError | RuntimeError | OSError)
    return text_of(error) if is_enough else describe(error)


def describe(error: BaseException) -> str:
    """Kind and text of an exception."""
    return f"{type(error).__name__}: {text_of(error)}"


def text_of(error: BaseException) -> str:
    """The text of an exception on one line; users' exceptions may fail to give one."""
    try:
        return " ".join(str(error).split())
    except Exception as second:
        return f"(no text: its __str__ raised {type(second).__name__})"


def check_options(target: Callable[..., Any], entry: Entry, filled: Collection[str] = ()) -> None:
    """Raise ValueError for options without a parameter of their name: `**columns` would swallow a mistyped one.

    Args:
        filled: parameters that others fill.
    """
    names = option_names(target, filled)
    if unknown := sorted(set(entry.options) - set(names)):
        raise ValueError(f"{entry.label}: no such options {unknown}; expected some of {names}; correct the spelling.")


def option_names(target: Callable[..., Any], filled: Collection[str] = ()) -> list[str]:
    """The keywords that a class or a function takes, less those that others fill."""
    parameters = inspect.signature(target).parameters.values()
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return [name for name in named if name not in filled]
