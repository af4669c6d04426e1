"""Episodes as a batch: TRL's rollout dictionary, or padded tensors."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .episode import Episode, Segment


def to_rollout(episodes: Sequence[Episode], eos_token_id: int | None = None) -> dict[str, Any]:
    """Give what a `rollout_func` of TRL returns.

    Beside TRL's keys (`prompt_ids`, `completion_ids`, `logprobs`, `env_mask`) it has fields for the trainer and for
    reward functions, one entry for each episode: `turn_ids` (T), `num_turns`, `num_spoken` (turns that have a token),
    `turn_rewards` (K dictionaries by kind), `episode_rewards` (by kind), `state_keys` (K), `observations` (K),
    `messages` (of the completion), `stop_reason`, `is_truncated`, `cut_turns` (K), `episode_info`.

    Args:
        episodes: N episodes.
        eos_token_id: closes, as a token that nobody sampled, episodes that have no token or that end with another one
            although no limit cut them off; TRL takes a completion without it for a truncated one.
    """
    if eos_token_id is not None:
        episodes = [_closed(episode, eos_token_id) for episode in episodes]
    log_probs = [episode.log_probs for episode in episodes]
    has_log_probs = any(row is not None for row in log_probs)
    return {
        "prompt_ids": [episode.prompt_ids for episode in episodes],
        "completion_ids": [episode.completion_ids for episode in episodes],
        "logprobs": [_or_nan(row, episode) for row, episode in zip(log_probs, episodes, strict=True)]
        if has_log_probs
        else None,
        "env_mask": [episode.action_mask for episode in episodes],
        "turn_ids": [episode.turn_ids for episode in episodes],
        "num_turns": [len(episode.turns) for episode in episodes],
        "num_spoken": [sum(bool(turn.token_ids) for turn in episode.turns) for episode in episodes],
        "turn_rewards": [[turn.rewards for turn in episode.turns] for episode in episodes],
        "episode_rewards": [episode.rewards for episode in episodes],
        "state_keys": [[turn.state_key for turn in episode.turns] for episode in episodes],
        "observations": [[turn.observation for turn in episode.turns] for episode in episodes],
        "messages": [episode.messages for episode in episodes],
        "stop_reason": [episode.stop_reason for episode in episodes],
        "is_truncated": [episode.is_truncated for episode in episodes],
        "cut_turns": [[turn.is_cut for turn in episode.turns] for episode in episodes],
        "episode_info": [episode.info for episode in episodes],
    }


def _closed(episode: Episode, eos_token_id: int) -> Episode:
    ids = episode.completion_ids
    if ids and (episode.is_truncated or ids[-1] == eos_token_id):
        return episode
    return dataclasses.replace(episode, segments=[*episode.segments, Segment("forced", [eos_token_id])])


def _or_nan(row: list[float] | None, episode: Episode) -> list[float]:
    return row if row is not None else [float("nan") if action else 0.0 for action in episode.action_mask]


class Row(NamedTuple):
    """One unpadded row of a batch."""

    prompt_ids: list[int]
    completion_ids: list[int]
    action_mask: list[int]
    turn_ids: list[int]
    log_probs: list[float] | None


def to_tensors(episodes: Sequence[Episode], pad_token_id: int, pad_to_multiple_of: int = 1) -> dict[str, Tensor]:
    """Give a padded batch: prompts padded on the left, completions on the right.

    Returns:
        `prompt_ids`, `prompt_mask` (B, P), padded on the left; `completion_ids`, `completion_mask`, `tool_mask`,
        `turn_ids` and, if an episode has log-probabilities, `sampling_per_token_logps` (B, T), padded on the right.
        `tool_mask` is 1 for action tokens; padding has mask 0, turn id -1, log-probability 0.
    """
    rollout = to_rollout(episodes)

    def padded(name: str, value: Any, dtype: torch.dtype, left: bool = False) -> Tensor:
        return _pad(rollout[name], value, dtype, left, pad_to_multiple_of)

    lengths = {side: [[1] * len(ids) for ids in rollout[f"{side}_ids"]] for side in ("prompt", "completion")}
    batch = {
        "prompt_ids": padded("prompt_ids", pad_token_id, torch.long, left=True),
        "prompt_mask": _pad(lengths["prompt"], 0, torch.long, True, pad_to_multiple_of),
        "completion_ids": padded("completion_ids", pad_token_id, torch.long),
        "completion_mask": _pad(lengths["completion"], 0, torch.long, False, pad_to_multiple_of),
        "tool_mask": padded("env_mask", 0, torch.long),
        "turn_ids": padded("turn_ids", -1, torch.long),
    }
    if rollout["logprobs"] is not None:
        batch["sampling_per_token_logps"] = padded("logprobs", 0.0, torch.float32)
    return batch


def split(batch: dict[str, Tensor]) -> list[Row]:
    """Give the rows of a batch of `to_tensors` without their padding."""
    rows = []
    log_probs = batch.get("sampling_per_token_logps")
    for index, (in_prompt, in_completion) in enumerate(
        zip(batch["prompt_mask"], batch["completion_mask"], strict=True)
    ):
        where = in_completion.bool()
        rows.append(
            Row(
                prompt_ids=batch["prompt_ids"][index][in_prompt.bool()].tolist(),
                completion_ids=batch["completion_ids"][index][where].tolist(),
                action_mask=batch["tool_mask"][index][where].tolist(),
                turn_ids=batch["turn_ids"][index][where].tolist(),
                log_probs=None if log_probs is None else log_probs[index][where].tolist(),
            )
        )
    return rows


def _pad(rows: Sequence[Sequence[Any]], value: Any, dtype: torch.dtype, left: bool, multiple: int) -> Tensor:
    width = -(-max(map(len, rows), default=0) // multiple) * multiple
    out = torch.full((len(rows), width), value, dtype=dtype)
    for row, values in zip(out, rows, strict=True):
        if values:
            where = slice(width - len(values), None) if left else slice(len(values))
            row[where] = torch.tensor(values, dtype=dtype)
    return out
