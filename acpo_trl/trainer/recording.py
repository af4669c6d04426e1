"""What was generated, turn by turn, before TRL pads it: recorded, checked, and carried along in the batch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from ..rollouts.check import RolloutError, RolloutRow, Sampled, check_count, check_form
from ..rollouts.episode import STOP_REASONS
from ..rollouts.view import TurnView, view_turns
from .resume import ExactResume

# Fields of a rollout that only the trainer reads; all others reach reward functions as columns.
OWN_FIELDS = ("turn_ids", "num_turns", "num_spoken", "messages", "cut_turns")


@dataclass
class RecordedRollout:
    """The completions of one generation batch of this process, with their turns."""

    rows: list[RolloutRow]
    num_turns: list[int]
    views: list[list[TurnView]]
    """What judges of turns see."""
    is_truncated: list[bool]
    """Whether a limit of tokens ended the completion; TRL asks the last token only."""
    stop_reasons: list[str | None]
    """What ended the completion, one of `STOP_REASONS`; None if a `rollout_func` does not say. After `error`, of the
    environment, nothing is known about it, and nobody scores it."""
    fields: dict[str, list[Any]] = field(default_factory=dict)
    """What a `rollout_func` returned beside TRL's keys."""


class RecordedRollouts(ExactResume):
    """GRPOTrainer that knows the turns of its completions and stops at a rollout that breaks the contract."""

    rollout_rows: list[dict[str, Any]]
    """Rows of the dataset for the generation batch at hand; TRL gives a `rollout_func` their prompts only."""
    recorded: RecordedRollout

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        self.rollout_rows = inputs
        batch = super()._generate_and_score_completions(inputs)
        batch["turn_ids"] = _padded([row.turn_ids for row in self.recorded.rows], batch["completion_ids"])
        if self.mask_truncated_completions:
            self._mask_truncated(batch)
        return batch

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        with recording(self) as sampled:
            output = super()._generate(prompts)
        prompt_ids, completion_ids, tool_mask, completions, log_probs, extra_fields, *images = output
        fields = dict(extra_fields)
        check_fields(fields, len(completion_ids))
        for name in OWN_FIELDS:
            extra_fields.pop(name, None)
        messages = fields.get("messages")
        if messages is not None and all(row is not None for row in messages):
            completions = messages
        self.recorded = record(
            prompt_ids,
            completion_ids,
            tool_mask,
            completions,
            log_probs,
            fields,
            self._tokenizer.decode,
            self._stop_reason if self.rollout_func is None else None,
        )
        self._check(sampled)
        return (prompt_ids, completion_ids, tool_mask, completions, log_probs, extra_fields, *images)

    def _check(self, sampled: Sampled) -> None:
        if not sampled.calls and self.rollout_func is None:
            raise RuntimeError(
                "TRL generated without `_generate_single_turn`: what the policy sampled was not recorded."
            )
        vocab_size = self.model.config.get_text_config().vocab_size
        for index, row in enumerate(self.recorded.rows):
            check_form(row, index, vocab_size)
            if sampled.calls:  # a `rollout_func` with a sampler of its own vouches for itself
                sampled.check(row, index, self._tokenizer.decode)
            check_count(row, index)

    def _stop_reason(self, messages: Sequence[dict[str, Any]], ids: Sequence[int], num_turns: int) -> str:
        """What ended a completion of TRL's own loop."""
        if messages[-1].get("tool_calls"):  # nobody answered: too many calls, or no room for the results
            return "turns" if num_turns > self.max_tool_calling_iterations else "tokens"
        return "done" if ids[-1] in (*self.eos_token_ids, self._tokenizer.pad_token_id) else "tokens"

    def _mask_truncated(self, batch: dict[str, Any]) -> None:
        """Take out completions that a limit ended behind an EOS, such as one whose tool result did not fit."""
        keep = ~torch.tensor(self.recorded.is_truncated, device=batch["completion_mask"].device).unsqueeze(1)
        for name in {"completion_mask", "tool_mask"} & batch.keys():
            batch[name] = batch[name] * keep
        mask = batch["completion_mask"] * batch.get("tool_mask", 1)
        batch["num_items_in_batch"] = self.accelerator.gather(mask.sum()).sum()


@contextmanager
def recording(trainer: RecordedRollouts) -> Iterator[Sampled]:
    """Record what the policy samples, whoever asks it: TRL's loop, a subclass or a `rollout_func`."""
    sampled = Sampled()
    generate: Callable[..., Any] = trainer._generate_single_turn

    def recorded(prompt_ids: Sequence[Sequence[int]], *args: Any, **kwargs: Any) -> Any:
        completion_ids, log_probs = generate(prompt_ids, *args, **kwargs)
        sampled.record(prompt_ids, completion_ids)
        return completion_ids, log_probs

    trainer._generate_single_turn = recorded
    try:
        yield sampled
    finally:
        del trainer._generate_single_turn


def record(
    prompt_ids: Sequence[Sequence[int]],
    completion_ids: Sequence[Sequence[int]],
    action_masks: Sequence[Sequence[int]] | None,
    completions: Sequence[Any],
    log_probs: Sequence[Sequence[float]] | None,
    fields: dict[str, list[Any]],
    decode: Callable[..., str],
    stop_reason: Callable[..., str] | None,
) -> RecordedRollout:
    """Read the turns of completions from what their rollout recorded, else from their masks and messages.

    `stop_reason` tells what ended a completion of TRL's own loop, which has a message for each turn with tokens; it is
    None for a `rollout_func`, whose messages TRL makes up by decoding.
    """
    has_messages = stop_reason is not None or "messages" in fields
    rows, num_turns, views = [], [], []
    stop_reasons: list[str | None] = fields.get("stop_reason", [None] * len(completion_ids))
    for index, ids in enumerate(completion_ids):
        told = {name: fields[name][index] for name in OWN_FIELDS if name in fields}
        mask = [1] * len(ids) if action_masks is None else action_masks[index]
        turn_ids = told.get("turn_ids") or runs_of(mask)
        messages = as_messages(completions[index]) if has_messages else messages_of_runs(ids, turn_ids, decode)
        said = sum(message["role"] == "assistant" for message in messages)
        # TRL appends no message for a last turn that had no room for a token.
        unsaid = stop_reason is not None and messages[-1]["role"] != "assistant"
        row_log_probs = None if log_probs is None else log_probs[index]
        rows.append(
            RolloutRow(
                *(prompt_ids[index], ids, mask, turn_ids, row_log_probs),
                cut_turns=told.get("cut_turns", []),
                num_spoken=told.get("num_spoken", said),
            )
        )
        num_turns.append(told.get("num_turns", said + unsaid))
        try:
            views.append(view_turns(messages, turn_ids, num_turns[-1]))
        except ValueError as error:
            raise RolloutError(f"completion {index}: {error}") from error
        if stop_reason is not None:
            stop_reasons[index] = stop_reason(messages, ids, num_turns[-1])
    is_truncated = fields.get("is_truncated") or [reason == "tokens" for reason in stop_reasons]
    return RecordedRollout(rows, num_turns, views, is_truncated, stop_reasons, fields)


def check_fields(fields: dict[str, Any], size: int) -> None:
    """Raise RolloutError for fields of a `rollout_func` that the trainer would read wrongly."""
    for name in (*OWN_FIELDS, "stop_reason", "is_truncated", "turn_rewards", "episode_rewards", "state_keys"):
        values = fields.get(name, [])
        if name in fields and (not isinstance(values, list) or len(values) != size):
            raise RolloutError(
                f"rollout_func returned {name!r} = {repr(values)[:200]}; expected a list with one entry for each of "
                f"the {size} completions, or no such field."
            )
    for index, reason in enumerate(fields.get("stop_reason", [])):
        if reason is not None and reason not in STOP_REASONS:
            raise RolloutError(
                f"completion {index}: stop_reason {reason!r}; expected one of {list(STOP_REASONS)} or None."
            )
    for index, messages in enumerate(fields.get("messages", [])):
        is_list = isinstance(messages, list) and all(isinstance(m, dict) and "role" in m for m in messages)
        if messages is not None and not (is_list and messages):
            raise RolloutError(
                f"completion {index}: messages {repr(messages)[:200]}; expected a list of chat messages with a role, "
                "or None."
            )


def runs_of(mask: Sequence[int]) -> list[int]:
    """Number the runs of ones from 0; -1 elsewhere."""
    turn_ids, turn = [], -1
    for position, action in enumerate(mask):
        if action and (position == 0 or not mask[position - 1]):
            turn += 1
        turn_ids.append(turn if action else -1)
    return turn_ids


def messages_of_runs(ids: Sequence[int], turn_ids: Sequence[int], decode: Callable[..., str]) -> list[dict[str, Any]]:
    """Turns as assistant messages, what stands between them as user messages."""
    runs = groupby(zip(ids, turn_ids, strict=False), itemgetter(1))  # lengths are checked later
    return [
        {
            "role": "user" if turn < 0 else "assistant",
            "content": decode([token for token, _ in run], skip_special_tokens=True),
        }
        for turn, run in runs
    ]


def as_messages(completion: Any) -> list[dict[str, Any]]:
    """A completion as chat messages, also if it is text."""
    return completion if isinstance(completion, list) else [{"role": "assistant", "content": completion}]


def _padded(rows: Sequence[Sequence[int]], like: Tensor) -> Tensor:
    out = torch.full_like(like, -1)
    for row, values in zip(out, rows, strict=True):
        row[: len(values)] = torch.tensor(values, device=like.device)
    return out
