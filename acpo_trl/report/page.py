"""One self-contained page of a run."""

import base64
import json
import sys
from array import array
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any

from ..records import Record
from .load import Run

STATIC = files(__package__) / "static"
SCRIPTS = ("formulas.js", "data.js", "charts.js", "group.js", "tokens.js", "main.js")
COLUMNS = ("log_probs", "delta", "entropy", "advantage", "credit", "ratio")
_NAN = float("nan")


def render(run: Run) -> str:
    """The page as text; it loads nothing from anywhere.

    Args:
        run: what it shows.
    """
    style, body = (STATIC / "page.css").read_text("utf-8"), (STATIC / "page.html").read_text("utf-8")
    script = "\n".join((STATIC / name).read_text("utf-8") for name in SCRIPTS)
    parts = {"STYLE": style, "DATA": embed(payload(run)), "SCRIPT": f"(() => {{\n{script}\n}})();"}
    for name, text in parts.items():
        body = body.replace(f"<!--{name}-->", text, 1)
    return body


def embed(content: Any) -> str:
    """JSON that can stand within a script element: nothing in it can end the element or begin another."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def payload(run: Run) -> dict[str, Any]:
    """What the page computes from."""
    in_order = sorted(run.records, key=lambda record: (record.step, record.group, record.sample))
    groups = groupby(in_order, key=lambda record: (record.step, record.group))
    return {"title": run.title, "charts": run.charts, "groups": [_group(list(records)) for _, records in groups]}


def _group(records: Sequence[Record]) -> dict[str, Any]:
    states = _short(key for record in records for key in record.state_keys)
    actions = _short(key for record in records for key in record.action_keys)
    first = records[0]
    return {
        "step": first.step,
        "group": first.group,
        "chosen": first.chosen,
        "prompt": first.prompt,
        "completions": [_completion(record, states, {**actions, -1: -1}) for record in records],
    }


def _short(keys: Iterable[int]) -> dict[int, int]:
    """Small numbers for keys of 63 bits, which JavaScript would round."""
    return {key: number for number, key in enumerate(dict.fromkeys(keys))}


def _completion(record: Record, states: dict[int, int], actions: dict[int, int]) -> dict[str, Any]:
    numbers = array("f")
    for column in COLUMNS:
        numbers.extend(_NAN if value is None else value for value in getattr(record, column))
    return {
        "sample": record.sample,
        "stop": record.stop_reason,
        "truncated": record.is_truncated,
        "rewards": [[each.name, each.kind, each.weight, each.value] for each in record.rewards],
        "kinds": {each.kind: each.values for each in record.turn_rewards},
        "estimator": record.turn_estimator,
        "rule": record.credit_rule,
        "ids": record.token_ids,
        "pieces": record.pieces,
        "turns": record.turn_ids,
        "modes": "".join("?" if is_mode is None else "01"[is_mode] for is_mode in record.is_mode),
        "numbers": base64.b64encode(_little_endian(numbers)).decode(),
        "turnAdvantages": record.turn_advantages,
        "states": [states[key] for key in record.state_keys],
        "actions": [actions[key] for key in record.action_keys],
    }


def _little_endian(numbers: "array[float]") -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
