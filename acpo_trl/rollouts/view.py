"""The turns of a completion as a judge sees them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .check import turn_spans


class TurnView(NamedTuple):
    """One turn of the policy and what came back."""

    text: str
    """What the policy wrote beside its tool calls."""
    tool_calls: list[dict[str, Any]]
    """`{"name": ..., "arguments": ...}` for each call that could be read."""
    results: list[str]
    """What tools, users or the environment answered before the next turn."""
    span: tuple[int, int]
    """First completion token of the turn and the one behind its last; equal if it has none."""


def view_turns(messages: Sequence[Mapping[str, Any]], turn_ids: Sequence[int], num_turns: int) -> list[TurnView]:
    """Cut a completion into its turns.

    Args:
        messages: the completion as chat messages, one assistant message for each turn; the last turns may lack theirs
            if they have no token.
        turn_ids: T numbers, -1 for tokens that the policy did not produce.
        num_turns: K.

    Returns:
        K views.

    Raises:
        ValueError: more assistant messages than turns, or a turn with tokens but without message.
    """
    spans = _spans(turn_ids, num_turns)
    views: list[TurnView] = []
    for message in messages:
        if message["role"] == "assistant":
            span = spans[len(views)] if len(views) < num_turns else (0, 0)
            views.append(TurnView(_text(message), _calls(message), [], span))
        elif views:
            views[-1].results.append(_text(message))
    missing = range(len(views), num_turns)
    if len(views) > num_turns or any(spans[turn][0] < spans[turn][1] for turn in missing):
        raise ValueError(
            f"the completion has {num_turns} turns by its tokens, but {len(views)} assistant messages; expected one "
            "message for each turn."
        )
    return views + [TurnView("", [], [], spans[turn]) for turn in missing]


def _spans(turn_ids: Sequence[int], num_turns: int) -> list[tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for turn, start, end in turn_spans(turn_ids):
        found[turn] = (found.get(turn, (start, end))[0], end)
    spans, at = [], 0
    for turn in range(num_turns):
        spans.append(found.get(turn, (at, at)))
        at = spans[-1][1]
    return spans


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [call["function"] for call in message.get("tool_calls") or [] if "function" in call]
