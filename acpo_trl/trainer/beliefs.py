"""How much the policy believes in the gold answer before each of its turns."""

from collections.abc import Sequence
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor
from trl import GRPOConfig
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import pad

from .turn_choices import BeliefOptions, options_of


def gold_answers(rows: Sequence[dict[str, Any]], column: str) -> list[list[str]]:
    """The texts that are right for each row of the dataset; none where its gold answer is None.

    Raises:
        ValueError: the column is missing or holds something else; names the row.
    """
    answers = []
    for index, row in enumerate(rows):
        gold = row.get(column)
        texts = gold if isinstance(gold, list | tuple) else [] if gold is None else [gold]
        if column not in row or not all(isinstance(text, str | int | float) for text in texts):
            raise ValueError(
                f"column {column!r} of row {index} {repr(row.get(column))[:200]}: the belief in it cannot be asked; "
                "expected a text, a number, or a list of them; set belief_options={'column': ...}."
            )
        answers.append([str(text) for text in texts])
    return answers


def check_gold_column(args: GRPOConfig, dataset: Any) -> None:
    """Raise ValueError for a dataset that lacks the column with the gold answers."""
    column = options_of(args, "belief_options", BeliefOptions).column
    columns = getattr(dataset, "column_names", None)
    if isinstance(columns, list) and column not in columns:
        raise ValueError(
            f"belief_options column {column!r}: train_dataset has the columns {columns}, so the belief in the gold "
            "answer cannot be asked; expected one of them; set belief_options={'column': ...}."
        )


@torch.no_grad()
def beliefs_of(trainer: Any, options: BeliefOptions) -> list[list[float | None]]:
    """Mean log-probability of the gold answer's tokens before each turn, of the likeliest if several are right.

    The answer is put behind all that the turn was sampled from and the prefix of `options`, and scored by TRL's own
    head at the temperature of the run.

    Returns:
        For each local completion and turn; None where there is no gold answer.
    """

    def encode(text: str) -> list[int]:
        return list(trainer._tokenizer(text, add_special_tokens=False)["input_ids"])

    prefix = encode(options.prefix) if options.prefix else []
    golds = [[encode(text) for text in texts] for texts in gold_answers(trainer.rollout_rows, options.column)]
    jobs = []
    beliefs: list[list[float | None]] = []
    for index, (row, views) in enumerate(zip(trainer.recorded.rows, trainer.recorded.views, strict=True)):
        beliefs.append([None] * len(views))
        for turn, view in enumerate(views):
            context = [*row.prompt_ids, *row.completion_ids[: view.span[0]], *prefix]
            jobs += [(index, turn, context, gold) for gold in golds[index] if gold]
    jobs.sort(key=lambda job: len(job[2]) + len(job[3]))
    with disable_gradient_checkpointing(trainer.model, trainer.args.gradient_checkpointing_kwargs):
        scores = _score(trainer, [job[2:] for job in jobs])
    for (index, turn, _, _), score in zip(jobs, scores, strict=True):
        known = beliefs[index][turn]
        beliefs[index][turn] = score if known is None else max(known, score)
    return beliefs


def _score(trainer: Any, pairs: Sequence[tuple[list[int], list[int]]]) -> list[float]:
    """Mean log-probability of each second list behind the first."""
    size = trainer.args.per_device_train_batch_size
    chunks = [pairs[start : start + size] for start in range(0, len(pairs), size)]
    scores: list[float] = []
    # A sharded model's forward is one of all processes: those with fewer chunks go along with what they have.
    for index in range(max(gather_object([len(chunks)]))):
        chunk = chunks[index] if index < len(chunks) else [([0], [0])]
        means = _score_chunk(trainer, chunk)
        scores += means if index < len(chunks) else []
    return scores


def _score_chunk(trainer: Any, chunk: Sequence[tuple[list[int], list[int]]]) -> list[float]:
    device, lengths = trainer.accelerator.device, [len(gold) for _, gold in chunk]
    texts = [torch.tensor(context + gold, device=device) for context, gold in chunk]
    ids = pad(texts, padding_value=trainer._tokenizer.pad_token_id, padding_side="left")
    mask = pad([torch.ones_like(text) for text in texts], padding_value=0, padding_side="left")
    log_probs, _, _ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, mask, max(lengths))
    rows: list[Tensor] = [row[-length:] for row, length in zip(log_probs, lengths, strict=True)]
    return [row.float().mean().item() for row in rows]
