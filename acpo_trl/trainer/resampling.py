"""Dynamic sampling: groups that teach nothing make room for groups of other prompts (DAPO, arXiv:2503.14476)."""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import chain, cycle, islice
from random import Random
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor
from torch.nn.functional import pad

from .completions import show_rows, shown_columns
from .recording import RecordedRollout
from .scoring import ScoredTurns

# What stands where a row is shorter than the longest: as TRL pads, and as its head scores what is padded.
PADDING = {
    "prompt_mask": 0,
    "completion_mask": 0,
    "tool_mask": 1,
    "turn_ids": -1,
    "advantages": 0.0,
    "old_per_token_logps": 0.0,
    "ref_per_token_logps": 0.0,
    "sampling_per_token_logps": 0.0,
    "importance_sampling_ratio": 1.0,
}
# What the trainer keeps about the rows of its last generation batch, beside the batch.
NOTES = ("recorded", "reward_table", "state_keys", "rollout_rows", "_judged", "turn_scores")
NOISE = 1e-6  # what rounding leaves of a reward minus the mean of its equals


class Resampled(ScoredTurns):
    """GRPOTrainer that replaces groups which teach nothing, in at most `dynamic_sampling` rounds a generation batch."""

    def __init__(self, *, args: Any, train_dataset: Any, **kwargs: Any) -> None:
        if args.dynamic_sampling:
            check_can_draw(train_dataset)
        super().__init__(args=args, train_dataset=train_dataset, **kwargs)

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        if not self.args.dynamic_sampling or not self.model.training:
            return super()._generate_and_score_completions(inputs)
        prompts = self._other_prompts(set(gather_object([repr(row) for row in inputs])))
        batch = self._sample(inputs)
        is_useless = self._teaches_nothing(batch)
        useless = left = self._share(is_useless)
        rounds = 0
        while left > 0 and rounds < self.args.dynamic_sampling:
            rounds += 1
            before = {name: getattr(self, name) for name in NOTES}, shown_columns(self)
            fresh = self._sample(self._draw(prompts, len(inputs)))
            source = fill(is_useless, ~self._teaches_nothing(fresh), self.num_generations)
            self._merge_notes(*before, source)
            batch = self._merge(batch, fresh, source)
            is_useless = self._teaches_nothing(batch)
            left = self._share(is_useless)
        shares = {"useless": useless, "replaced": useless - left, "rounds": float(rounds)}
        self._log({f"dynamic_sampling/{name}": value for name, value in shares.items()})
        return batch

    def _sample(self, inputs: Any) -> dict[str, Any]:
        batch = super()._generate_and_score_completions(inputs)
        immovable = sorted(batch.keys() - {*PADDING, "prompt_ids", "completion_ids", "num_items_in_batch"})
        if immovable:
            raise ValueError(
                f"dynamic_sampling {self.args.dynamic_sampling}: the generation batch has {immovable}, such as images, "
                f"whose rows cannot be moved to another batch; expected some of {list(PADDING)}; set "
                "dynamic_sampling=0."
            )
        return batch

    def _teaches_nothing(self, batch: dict[str, Any]) -> Tensor:
        """(groups,) bool of this process, for the batch that was scored last."""
        advantages = batch["advantages"]
        is_action = batch["completion_mask"].bool() & (batch["turn_ids"] >= 0)
        advantages = (advantages if advantages.dim() == 2 else advantages.unsqueeze(1)) * is_action
        teaches = advantages.abs().view(-1, self.num_generations * is_action.size(1)).amax(dim=1) > NOISE
        if self.turn_credit is None:  # TRL divides rounding errors by 1e-4
            totals = (self.reward_table.rewards * self.reward_table.weights).nansum(dim=1)
            totals[self.reward_table.rewards.isnan().all(dim=1)] = torch.nan
            groups = totals[self._local_rows].view(-1, self.num_generations)
            teaches &= groups.nan_to_num(nan=-torch.inf).amax(dim=1) > groups.nan_to_num(nan=torch.inf).amin(dim=1)
        return ~teaches

    def _share(self, groups: Tensor) -> float:
        """Of the groups of all processes that are True."""
        return self.accelerator.gather(groups).float().mean().item()

    def _other_prompts(self, held: set[str]) -> Iterator[Any]:
        """Rows of the dataset without end, those not in `held` first; the same on all processes and after a resume."""
        dataset = self._train_sampler.data_source
        order = list(range(len(dataset)))
        Random(f"{self.args.seed} {self._step}").shuffle(order)
        kept = []
        for index in order:
            row = dataset[index]
            if repr(row) in held:
                kept.append(index)
            else:
                yield row
        yield from (dataset[index] for index in chain(kept, cycle(order)))

    def _draw(self, prompts: Iterator[Any], num_rows: int) -> list[dict[str, Any]]:
        """Rows for a generation batch of this process; all processes take theirs from one stream."""
        num_groups = num_rows // self.num_generations
        drawn = list(islice(prompts, num_groups * self.accelerator.num_processes))
        own = drawn[num_groups * self.accelerator.process_index :][:num_groups]
        return [dict(row) for row in own for _ in range(self.num_generations)]

    def _merge(self, batch: dict[str, Any], fresh: dict[str, Any], source: Tensor) -> dict[str, Any]:
        merged = merge_batches(batch, fresh, source, self._tokenizer.pad_token_id)
        mask = merged["completion_mask"] * merged.get("tool_mask", 1)
        merged["num_items_in_batch"] = self.accelerator.gather(mask.sum()).sum()
        return merged

    def _merge_notes(self, before: dict[str, Any], columns: dict[tuple[str, str], list[Any]], source: Tensor) -> None:
        """Make the trainer's notes and the completions table those of the merged batch."""
        rows = source.tolist()
        for name in ("state_keys", "rollout_rows", "_judged", "turn_scores"):
            setattr(self, name, choose(before[name], getattr(self, name), rows))
        self.recorded = merge_recorded(before["recorded"], self.recorded, rows)
        # Rows of a table over all processes: a process's rows of the first batch stand there, those of the second
        # behind all of the first.
        everywhere = self.accelerator.gather(source)
        total, local = len(everywhere), len(source)
        process = torch.arange(total, device=source.device) // local
        everywhere = everywhere + process * local + (everywhere >= local) * (total - local)
        rewards = torch.cat([before["reward_table"].rewards, self.reward_table.rewards])[everywhere]
        self.reward_table = self.reward_table._replace(rewards=rewards)
        show_rows(self, columns, everywhere.tolist())


def check_can_draw(dataset: Any) -> None:
    """Raise ValueError for a dataset whose rows cannot be looked up, or hold images."""
    if dataset is not None and not hasattr(dataset, "__len__"):
        raise ValueError(
            "dynamic_sampling with a streaming train_dataset: other prompts cannot be looked up; expected a dataset "
            "with a length; load it without streaming, or set dynamic_sampling=0."
        )
    images = {"image", "images"} & set(getattr(dataset, "column_names", None) or ())
    if images:
        raise ValueError(
            f"dynamic_sampling with the columns {sorted(images)} of train_dataset: tensors of images cannot be moved "
            "to another batch by row; expected text only; set dynamic_sampling=0."
        )


def fill(is_open: Tensor, is_good: Tensor, size: int) -> Tensor:
    """(rows,): which row of a batch, or of a second one counted on behind it, each row of the merged batch is.

    Args:
        is_open: (groups,) bool, which groups of the first batch make room.
        is_good: (groups,) bool, which groups of the second can take a place; those left over take none.
        size: rows in a group.
    """
    rows = torch.arange(len(is_open) * size, device=is_open.device).view(-1, size)
    places, found = is_open.nonzero().flatten(), is_good.nonzero().flatten()
    count = min(len(places), len(found))
    source = rows.clone()
    source[places[:count]] = rows[found[:count]] + rows.numel()
    return source.flatten()


def merge_batches(first: dict[str, Any], second: dict[str, Any], source: Tensor, pad_id: int) -> dict[str, Any]:
    """Batch whose rows are those of two, cut as `source` says; `first` itself if it keeps all of its own."""
    if bool((source < len(first["prompt_ids"])).all()):
        return dict(first)
    merged = {}
    for name in (name for name in first if name != "num_items_in_batch"):
        parts = [first[name], second[name]]
        if parts[0].dim() > 1:
            width = max(part.size(1) for part in parts)
            parts = [widen(part, width, PADDING.get(name, pad_id), name.startswith("prompt")) for part in parts]
        merged[name] = torch.cat(parts)[source]
    return merged


def widen(rows: Tensor, width: int, value: float, is_prompt: bool) -> Tensor:
    """(B, width): prompts are filled up on the left, all else on the right."""
    missing = width - rows.size(1)
    return pad(rows, (missing, 0) if is_prompt else (0, missing), value=value)


def merge_recorded(first: RecordedRollout, second: RecordedRollout, source: list[int]) -> RecordedRollout:
    """What was recorded of the rows of a merged batch."""
    size = len(source)
    told = {
        name: choose(first.fields[name], values, source)
        for name, values in second.fields.items()
        if all(isinstance(part, list) and len(part) == size for part in (first.fields.get(name), values))
    }
    names = [field.name for field in dataclasses.fields(RecordedRollout) if field.name != "fields"]
    return RecordedRollout(
        **{name: choose(getattr(first, name), getattr(second, name), source) for name in names}, fields=told
    )


def choose(first: Sequence[Any], second: Sequence[Any], source: list[int]) -> list[Any]:
    """Entries of the two one after the other, by their place."""
    both = [*first, *second]
    return [both[row] for row in source]
