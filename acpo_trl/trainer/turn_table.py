"""The turns of recorded completions as a table, for trackers that can show one."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from ..records import Record

TRACKERS = ("wandb", "trackio", "mlflow")
NAME = "credit/turns"


def turn_rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    """A row for each turn: what was said, its rewards by kind, advantage and mean credit; None where nobody knows."""
    rows = []
    for record in records:
        for turn, advantage in enumerate(record.turn_advantages):
            own = [place for place, of in enumerate(record.turn_ids) if of == turn]
            credits = [credit for place in own if (credit := record.credit[place]) is not None]
            rows.append(
                {
                    "step": record.step,
                    "group": record.group,
                    "sample": record.sample,
                    "turn": turn,
                    "text": "".join(record.pieces[place] for place in own),
                    **{f"reward_{entry.kind}": entry.values[turn] for entry in record.turn_rewards},
                    "advantage": advantage,
                    "credit": sum(credits) / len(credits) if credits else None,
                    "tokens": len(own),
                }
            )
    return rows


def show_turns(records: Sequence[Record], report_to: Sequence[str]) -> None:
    """Hand the table to each tracker of the run that can show one, as TRL does with its table of completions."""
    rows = turn_rows(records)
    for name in (name for name in TRACKERS if name in report_to and rows):
        tracker = import_module(name)
        table = pd.DataFrame(rows)
        if name == "mlflow":
            tracker.log_table(table, artifact_file=f"{NAME}.json")
        elif name == "trackio" or tracker.run is not None:
            tracker.log({NAME: tracker.Table(dataframe=table)})
