"""Play an episode with a policy that is known beforehand: for tests, and for transcripts to learn from."""

from collections.abc import Mapping, Sequence
from typing import Any

from .base import ToolEnvironment
from .judge import carry_out, tools_of


def call_message(name: str, **arguments: Any) -> dict[str, Any]:
    """Give the message of an assistant that calls one tool."""
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def play(
    environment: ToolEnvironment, row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Give the completion of an episode: the assistant's messages, with the results of its tool calls behind each.

    Args:
        environment: is reset with `row`, and can judge the episode afterwards.
        row: a row of the dataset.
        messages: what the assistant says, one message for each turn.
    """
    environment.reset(**row)
    tools, completion = tools_of(environment), []
    for message in messages:
        completion.append(dict(message))
        for call in message.get("tool_calls") or []:
            function = call["function"]
            completion.append({"role": "tool", "name": function["name"], "content": carry_out(tools, function)})
    return completion
