"""The form of chat messages, checked before a template meets it."""

from collections.abc import Mapping, Sequence
from typing import Any


def check_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError, which names the message, unless each has a role, a text and tool calls with names."""
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise ValueError(
                f"message {index}, {message!r}: has no role; expected a dictionary with 'role' and 'content'."
            )
        try:
            content_text(message)
        except ValueError as error:
            raise ValueError(f"message {index}: {error}") from error
        calls = message.get("tool_calls")
        if not isinstance(calls, list | tuple | None) or not all(map(_is_call, calls or [])):
            raise ValueError(
                f"message {index}: tool_calls {calls!r} are no calls; expected a list of "
                "{'type': 'function', 'function': {'name': ..., 'arguments': ...}}."
            )


def content_text(message: Mapping[str, Any]) -> str:
    """Give the content of a message as one string, empty if it has none.

    Raises:
        ValueError: it, or a part of it, is no text.
    """
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list | tuple) or not all(map(_is_text, content)):
        raise ValueError(f"content {content!r}: only text can be encoded; expected a string or parts of type 'text'.")
    return "".join(part["text"] for part in content)


def function_of(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give name and arguments of a tool call, which some datasets write without a wrapper."""
    return call.get("function") or call


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _is_call(call: Any) -> bool:
    if not isinstance(call, Mapping) or not isinstance(function_of(call), Mapping):
        return False
    return isinstance(function_of(call).get("name"), str)
