"""What the trainer logs about turns and tool calls, over all processes."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from accelerate.utils import gather_object

from ..rollouts.episode import STOP_REASONS
from ..rollouts.view import TurnView
from .environment import Judged
from .recording import RecordedRollout

# Buckets of the number of turns: name, lowest, highest.
BUCKETS = (("1", 0, 1), ("2", 2, 2), ("3_5", 3, 5), ("6_15", 6, 15), ("16_up", 16, math.inf))


def turn_metrics(recorded: RecordedRollout, judged: Sequence[Sequence[Judged]]) -> dict[str, float]:
    """Counts of turns, tokens and tool calls; NaN for a share of nothing.

    Args:
        recorded: the completions of this process.
        judged: what environments said about their turns, rewards by kind.
    """
    turns = [turn for views in recorded.views for turn in views]
    calls = [call for turn in turns for call in turn.tool_calls]
    facts = {
        "num_turns": recorded.num_turns,
        "tokens": [turn.span[1] - turn.span[0] for turn in turns],
        "invalid": [
            not is_valid(turn, rewards) for turn, rewards in zip(turns, chain.from_iterable(judged), strict=True)
        ],
        "calls": [sum(len(turn.tool_calls) for turn in views) for views in recorded.views],
        "tools": [call.get("name") for call in calls],
        "arguments": [json.dumps(call.get("arguments"), sort_keys=True, default=str) for call in calls],
        "action": [sum(row.action_mask) for row in recorded.rows],
        "length": [len(row.completion_ids) for row in recorded.rows],
        "stop": [reason for reason in recorded.stop_reasons if reason is not None],
    }
    everywhere = gather_object([facts])
    of = {name: [value for rank in everywhere for value in rank[name]] for name in facts}
    metrics = {
        "turns/count/mean": _mean(of["num_turns"]),
        "turns/count/min": min(of["num_turns"]),
        "turns/count/max": max(of["num_turns"]),
        "turns/tokens": _mean(of["tokens"]),
        "turns/invalid": _mean(of["invalid"]),
        "turns/action_share": sum(of["action"]) / sum(of["length"]),
        "tools/calls": _mean(of["calls"]),
    }
    if of["tools"]:
        metrics["tools/name_entropy"] = entropy(of["tools"])
        metrics["tools/argument_entropy"] = entropy(list(zip(of["tools"], of["arguments"], strict=True)))
    for name, lowest, highest in BUCKETS:
        metrics[f"turns/share/{name}"] = _mean([lowest <= count <= highest for count in of["num_turns"]])
    if of["stop"]:
        metrics |= {f"turns/stop/{reason}": of["stop"].count(reason) / len(of["stop"]) for reason in STOP_REASONS}
    return metrics


def is_valid(turn: TurnView, rewards: Judged) -> bool:
    """Whether a turn has neither a tool call that could not be read nor a format error."""
    return "<tool_call>" not in turn.text and (rewards.get("format") or 0) >= 0


def entropy(values: Sequence[Any]) -> float:
    """Entropy in nats of the distribution of one or more values."""
    shares = [count / len(values) for count in Counter(values).values()]
    return -sum(share * math.log(share) for share in shares)


def _mean(values: list[Any]) -> float:
    return sum(values) / len(values) if values else math.nan
