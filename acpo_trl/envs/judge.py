"""What all tool environments ask about a turn: which calls it makes, whether they can be carried out, who is right."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..resolve import resolve
from ..rewards import REWARDS
from ..rewards.format import tool_call_attempts
from ..rollouts.view import TurnView


def tools_of(environment: object) -> dict[str, Callable[..., Any]]:
    """Give the tools of an environment by name, as TRL sees them."""
    names = [name for name, _ in inspect.getmembers(type(environment), inspect.isfunction)]
    return {
        name: getattr(environment, name) for name in names if name[0] != "_" and name not in ("reset", "get_reward")
    }


def carry_out(tools: Mapping[str, Callable[..., Any]], call: Mapping[str, Any]) -> str:
    """Give the result of a tool call, or its error, in the words that TRL's tool loop uses."""
    try:
        if call["name"] not in tools:
            raise ValueError(f"Tool {call['name']} not found.")
        return str(tools[call["name"]](**call["arguments"]))
    except Exception as error:
        return str({"error": str(error)})


def valid_calls(tools: Mapping[str, Callable[..., Any]], turn: TurnView) -> list[Mapping[str, Any]]:
    """Give the calls of a turn that name a tool and have arguments that it takes."""
    return [call for call in turn.tool_calls if call.get("name") in tools and _takes(tools[call["name"]], call)]


def num_attempts(turn: TurnView) -> int:
    """Give the number of calls that a turn attempts, whether they can be read or not."""
    return len(tool_call_attempts({"content": turn.text, "tool_calls": [{"function": c} for c in turn.tool_calls]}))


def format_score(tools: Mapping[str, Callable[..., Any]], turn: TurnView) -> float:
    """Give 0.0 if every call that a turn attempts can be carried out, else -1.0."""
    return 0.0 if len(valid_calls(tools, turn)) == num_attempts(turn) else -1.0


def progress_score(has_progressed: bool, is_left: bool) -> float | None:
    """Give 1.0 for progress, 0.0 for none although something was left to do, and None where nothing was."""
    return float(has_progressed) if is_left else None


def outcome_scores(
    reward: Callable[..., Sequence[float | None]], row: Mapping[str, Any], turns: Sequence[TurnView]
) -> list[float | None]:
    """Give what a reward says about the text of the last turn, behind a None for each turn before it."""
    if not turns:
        return []
    columns = {name: [value] for name, value in row.items() if name != "prompt"}
    completion = [{"role": "assistant", "content": turns[-1].text}]
    return [None] * (len(turns) - 1) + list(reward(completions=[completion], **columns))


def outcome_reward(reward: str | Callable[..., Any]) -> Callable[..., Any]:
    """Give the reward function that judges final answers: the one of this name with its default options, or itself."""
    found: Callable[..., Any] = resolve(reward, REWARDS, "outcome") if isinstance(reward, str) else reward
    found = found() if isinstance(found, type) else found
    if not callable(found):
        raise TypeError(
            f"outcome {reward!r}: is a {type(found).__name__}, which judges nothing; expected the name of a reward, a "
            "dotted path, or a reward function."
        )
    return found


def check_outcome_columns(reward: Callable[..., Any], columns: Collection[str]) -> None:
    """Raise ValueError for a dataset without a column that the reward needs, if the reward says so."""
    check = getattr(reward, "check_columns", None)
    if check is not None:
        check(columns)


def _takes(tool: Callable[..., Any], call: Mapping[str, Any]) -> bool:
    """Give whether a tool takes the arguments of a call; their types count where the signature names a class."""
    if not isinstance(call.get("arguments"), Mapping):
        return False
    signature = _signature(tool)
    try:
        given = signature.bind(**call["arguments"]).arguments
    except TypeError:
        return False
    types = {name: signature.parameters[name].annotation for name in given}
    return all(isinstance(given[name], kind) for name, kind in types.items() if inspect.isclass(kind))


def _signature(tool: Callable[..., Any]) -> inspect.Signature:
    return _of_method(tool.__func__) if inspect.ismethod(tool) else inspect.signature(tool, eval_str=True)


@functools.cache
def _of_method(method: Callable[..., Any]) -> inspect.Signature:
    """Give the signature of a method without `self`; kept, because every turn of every episode asks for it."""
    signature = inspect.signature(method, eval_str=True)
    return signature.replace(parameters=list(signature.parameters.values())[1:])
