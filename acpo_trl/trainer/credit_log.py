"""Sampled completions with their credit, noted when they are scored and when a loss uses them, and written down."""

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback

from ..credit import TokenStats
from ..records import FOLDER, Record, RewardEntry, TurnRewardEntry, write_records
from ..records.pieces import pieces_of
from ..records.store import drop_from, prune
from .keys import turn_keys
from .recorded_groups import CreditLogOptions, choose_groups
from .scoring import ScoredTurns
from .turn_table import show_turns

TOKEN_COLUMNS = ("log_probs", "delta", "is_mode", "entropy", "advantage", "credit", "ratio")
_ROW = "record_row"


class CreditLog(TrainerCallback):
    """Records sampled completions of a trainer, each when a loss first uses it.

    Args:
        trainer: of the completions.
        options: which ones.
    """

    def __init__(self, trainer: ScoredTurns, options: CreditLogOptions) -> None:
        self.trainer, self.options = trainer, options
        self.folder = Path(str(trainer.args.output_dir)) / FOLDER
        self.staged: dict[int, dict[str, Any]] = {}
        """By row of the generation batch, what waits for a loss."""
        self.used: dict[int, Record] = {}
        """By row, what waits for the other rows."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Remove what an interrupted run recorded of steps that are still to do."""
        self.staged, self.used = {}, {}
        if state.is_world_process_zero:
            drop_from(self.folder, state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write what was used of a generation batch that was not trained to its end."""
        self._write()
        self._make_room()

    def stage(self, batch: dict[str, Any]) -> None:
        """Choose among the completions of a fresh batch, and number those of this process in it."""
        trainer, step = self.trainer, self.trainer.state.global_step
        if not trainer.model.training:
            return
        self._write()
        self.staged = {}
        batch[_ROW] = torch.full_like(batch["completion_mask"][:, 0], -1)
        if not self._is_due():
            return
        self._make_room()
        size, table = trainer.num_generations, trainer.reward_table
        totals = (table.rewards * table.weights).nansum(dim=1).masked_fill(table.rewards.isnan().all(dim=1), torch.nan)
        # A generator of its own, the same on all processes: recording leaves the run's random states alone.
        groups = choose_groups(totals.view(-1, size).tolist(), self.options, Random(f"{trainer.args.seed} {step}"))
        first = trainer._local_rows.start
        for row in range(len(batch[_ROW])):
            group, sample = divmod(first + row, size)
            if group in groups:
                batch[_ROW][row] = row
                number = step * (len(totals) // size) + group
                self.staged[row] = self._facts(row, step, number, sample, groups[group])

    def _is_due(self) -> bool:
        """Whether a multiple of `every` steps was reached since the generation batch before this one."""
        args, now = self.trainer.args, self.trainer._step
        before = now - args.steps_per_generation * self.trainer.num_iterations
        micro_steps = self.options.every * args.gradient_accumulation_steps
        return bool(now // micro_steps != before // micro_steps)

    def _facts(self, row: int, step: int, group: int, sample: int, chosen: str) -> dict[str, Any]:
        """What is known of a completion before a loss uses it."""
        trainer, recorded = self.trainer, self.trainer.recorded
        facts, num_turns = recorded.rows[row], recorded.num_turns[row]
        decode = trainer._tokenizer.decode
        states, actions = turn_keys([facts], [num_turns], [trainer.state_keys[row]])
        rewards = trainer.reward_table.rewards[trainer._local_rows.start + row].tolist()
        declared = list(zip(trainer.reward_table.kinds, trainer.reward_table.weights.tolist(), rewards, strict=True))
        return {
            "step": step,
            "group": group,
            "sample": sample,
            "chosen": chosen,
            "prompt": decode(list(facts.prompt_ids)),
            "stop_reason": recorded.stop_reasons[row],
            "is_truncated": recorded.is_truncated[row],
            "rewards": [
                RewardEntry(name, kind, weight, None if math.isnan(value) else value)
                for name, (kind, weight, value) in zip(trainer.reward_func_names, declared, strict=True)
            ],
            "turn_rewards": turn_rewards_of(declared, trainer.turn_scores[row], num_turns),
            "turn_estimator": trainer.args.turn_estimator,
            "credit_rule": trainer.args.credit_rule,
            "token_ids": list(facts.completion_ids),
            "pieces": pieces_of(facts.completion_ids, decode),
            "turn_ids": list(facts.turn_ids),
            "state_keys": states[0],
            "action_keys": actions[0],
        }

    def use(self, batch: Any, stats: TokenStats, advantages: Tensor, credit: Tensor, ratio: Tensor) -> None:
        """Note what a loss gave to the tokens of rows that it used for the first time, and write when all are there.

        Args:
            batch: of the loss.
            stats: (B, T), facts about the tokens.
            advantages: (B, T), before credit.
            credit: (B, T).
            ratio: (B, T), importance ratio.
        """
        columns = (stats.log_probs, stats.delta, stats.is_mode, stats.entropies, advantages, credit, ratio)
        for place, row in enumerate(batch[_ROW].tolist()):
            facts = self.staged.pop(row, None)
            if facts is not None:
                mask, length = stats.action_mask[place], len(facts["token_ids"])
                told = [tokens_of(values[place].detach(), mask, length) for values in columns]
                tokens: dict[str, Any] = dict(zip(TOKEN_COLUMNS, told, strict=True))
                means = turn_means(tokens["advantage"], facts["turn_ids"], len(facts["state_keys"]))
                self.used[row] = Record(**facts, **tokens, turn_advantages=means)
        if not self.staged:
            self._write()

    def _write(self) -> None:
        records, rank = [self.used[row] for row in sorted(self.used)], self.trainer.accelerator.process_index
        self.used = {}
        if records:
            write_records(self.folder, records[0].step, rank, records, self.options.file_format)
            self._make_room()
            if self.trainer.is_world_process_zero():
                show_turns(records, self.trainer.args.report_to or ())

    def _make_room(self) -> None:
        if self.trainer.is_world_process_zero():
            prune(self.folder, self.options.max_bytes)


def turn_rewards_of(
    declared: Sequence[tuple[str, float, float]], scores: dict[int, list[float | None]], num_turns: int
) -> list[TurnRewardEntry]:
    """Weighted rewards of each kind, turn by turn; a reward of the whole completion is one of its last turn.

    Args:
        declared: kind, weight and reward, NaN for unscored, of each reward function.
        scores: of the functions that score turns, by their place.
        num_turns: K.
    """
    found: dict[str, list[float | None]] = {}
    for place, (kind, weight, value) in enumerate(declared):
        values = found.setdefault(kind, [None] * num_turns)
        if num_turns == 0:
            continue
        whole = [None] * (num_turns - 1) + [None if math.isnan(value) else value]
        for turn, score in enumerate(scores.get(place, whole)):
            if score is not None and not math.isnan(value):
                values[turn] = (values[turn] or 0.0) + weight * score
    return [TurnRewardEntry(kind, values) for kind, values in found.items()]


def tokens_of(values: Tensor, mask: Tensor, length: int) -> list[Any]:
    """The first `length` values of a row (T,), None where the mask is False."""
    return [value if kept else None for value, kept in zip(values.tolist()[:length], mask.tolist(), strict=False)]


def turn_means(values: Sequence[float | None], turn_ids: Sequence[int], num_turns: int) -> list[float | None]:
    """Mean over the tokens of each turn, None for a turn without."""
    by_turn: list[list[float]] = [[] for _ in range(num_turns)]
    for value, turn in zip(values, turn_ids, strict=True):
        if turn >= 0 and value is not None:
            by_turn[turn].append(value)
    return [sum(each) / len(each) if each else None for each in by_turn]
