"""TRL's completions table, with the advantages that the loss used."""

from collections import deque
from typing import Any

import torch
from torch import Tensor
from trl import GRPOTrainer

_ROW = "completion_row"
_COLUMN = "token_advantages"


class TokenAdvantages(list[float]):
    """One number per completion token; prints short, because TRL prints every column of the table."""

    def __str__(self) -> str:
        return f"{len(self)} tokens"


def keep_extra_columns(trainer: GRPOTrainer, num_local: int) -> None:
    """Give a column that no reward logged for this batch None, where TRL would show the values of an earlier batch."""
    for column in trainer._logs["extra"]:
        if column != _COLUMN and column not in trainer._pending_extra_logs:
            trainer._pending_extra_logs[column] = [None] * num_local


def align_extra_columns(trainer: GRPOTrainer) -> None:
    """Give a column that was first logged for this batch None for earlier rows; TRL's table needs equal lengths."""
    num_rows = len(trainer._logs["prompt"])
    for column, values in trainer._logs["extra"].items():
        if column != _COLUMN:
            values.extendleft([None] * (num_rows - len(values)))


def number_rows(trainer: GRPOTrainer, batch: dict[str, Any], num_generated: int) -> int:
    """Number the local rows of a fresh batch so that they can be found after TRL has shuffled them.

    Their advantage in the table is NaN until a loss has used it.

    Args:
        num_generated: completions of all processes before this batch.

    Returns:
        Completions of all processes including this batch.
    """
    local = batch["advantages"].size(0)
    total = local * trainer.accelerator.num_processes
    first = num_generated + local * trainer.accelerator.process_index
    batch[_ROW] = torch.arange(first, first + local, device=batch["advantages"].device)
    table = trainer._logs["advantages"]
    for position in range(max(len(table) - total, 0), len(table)):
        table[position] = float("nan")
    trainer._logs["extra"][_COLUMN].extend([None] * total)
    return num_generated + total


def forget_rows(batches: list[dict[str, Any]]) -> None:
    """Take stored rollouts out of the numbering: the table of the run that made them is gone."""
    for batch in batches:
        if _ROW in batch:
            batch[_ROW] = torch.full_like(batch[_ROW], -(2**40))


def write_used(trainer: GRPOTrainer, batch: dict[str, Any], action_mask: Tensor, num_generated: int) -> None:
    """Put the (B, T) advantages of a loss into the table: their mean over action tokens, and each of them."""
    used = batch["advantages"].detach() * action_mask
    columns = [
        batch[_ROW].unsqueeze(1),
        batch["completion_mask"].sum(1, keepdim=True),
        action_mask.sum(1, keepdim=True),
    ]
    facts = trainer.accelerator.gather(torch.cat(columns, dim=1))
    used = trainer.accelerator.gather(trainer.accelerator.pad_across_processes(used, dim=1))
    table, tokens = trainer._logs["advantages"], trainer._logs["extra"][_COLUMN]
    for (row, length, num_actions), values in zip(facts.tolist(), used.tolist(), strict=True):
        position = len(table) - (num_generated - row)
        if 0 <= position < len(table):  # an evaluation may have pushed the row out
            table[position] = sum(values) / max(num_actions, 1)
            tokens[position] = TokenAdvantages(values[:length])


def shown_columns(trainer: GRPOTrainer) -> dict[tuple[str, str], list[Any]]:
    """The table's rows of the latest generation batch, over all processes, by column."""
    return {name: list(column) for name, column in _columns(trainer).items()}


def show_rows(trainer: GRPOTrainer, before: dict[tuple[str, str], list[Any]], source: list[int]) -> None:
    """Put rows of two generation batches into the table in place of the latter's.

    Args:
        before: columns of the first batch; a column that it lacks was not logged then.
        source: for each row of the table which of the first batch's rows it is, then of the latter's.
    """
    for name, column in _columns(trainer).items():
        both = [*before.get(name, [None] * len(column)), *column]
        column.clear()
        column.extend(both[row] for row in source)


def _columns(trainer: GRPOTrainer) -> dict[tuple[str, str], deque[Any]]:
    logs = trainer._logs
    columns = {("", name): logs[name] for name in ("prompt", "completion", "advantages")}
    columns |= {("rewards", name): column for name, column in logs["rewards"].items()}
    return columns | {("extra", name): column for name, column in logs["extra"].items() if name != _COLUMN}
