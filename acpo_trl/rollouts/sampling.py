"""What the policy says next, through TRL's generation, for any number of rows and on any number of processes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch


class Sample(NamedTuple):
    """What the policy sampled for one row."""

    token_ids: list[int]
    log_probs: list[float | None] | None
    """One for each token; None if the backend gives none."""


def sample(
    trainer: Any, contexts: Sequence[Sequence[int]], limits: Sequence[int], spare: Sequence[int]
) -> list[Sample] | None:
    """Let the policy continue each context.

    Args:
        trainer: of TRL.
        contexts: N lists of ids, none empty; N may be 0.
        limits: N numbers: so many tokens at most. They share one call, which runs up to the largest.
        spare: ids for calls that this process only takes part in.

    Returns:
        N samples; None if no process has any context.
    """
    size, limit = _agree(trainer, len(contexts), max(limits, default=0))
    if not size:
        return None
    asked = [list(context) for context in contexts] + [list(spare)] * (size - len(contexts))
    with _max_new_tokens(trainer, limit):
        token_ids, log_probs = trainer._generate_single_turn(asked, None, {}, num_generations=1)
    return [
        Sample(token_ids[row][:most], None if log_probs is None else log_probs[row][:most])
        for row, most in enumerate(limits)
    ]


def _agree(trainer: Any, size: int, limit: int) -> tuple[int, int]:
    """The largest size and limit of all processes, where generation is something that they do together.

    vLLM hands results out as if each process had asked for as many rows; FSDP and ZeRO-3 wait for each other.
    """
    together = trainer.use_vllm or trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    if trainer.accelerator.num_processes == 1 or not together:
        return size, limit
    own = torch.tensor([[size, limit]], device=trainer.accelerator.device)
    size, limit = trainer.accelerator.gather(own).amax(dim=0).tolist()
    return size, limit


@contextmanager
def _max_new_tokens(trainer: Any, limit: int) -> Iterator[None]:
    """Set the number of tokens of a generation call, which TRL takes from its configuration."""
    if trainer.use_vllm:
        holder, name = trainer.vllm_generation, "max_completion_length"
    else:
        holder, name = trainer.generation_config, "max_new_tokens"
    usual = getattr(holder, name)
    setattr(holder, name, limit)
    try:
        yield
    finally:
        setattr(holder, name, usual)
