"""Which samples an evaluation draws, in batches that are the same whoever draws them, and whenever."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple


class Request(NamedTuple):
    """One sample to draw."""

    benchmark: str
    problem_id: str
    sample_index: int
    """0 to k - 1, which sample of the problem it is."""
    prompt_ids: tuple[int, ...]


class Batch(NamedTuple):
    """Requests that are answered together."""

    number: int
    seed: int
    requests: tuple[Request, ...]


def make_batches(
    benchmark: str,
    prompts: Sequence[tuple[str, Sequence[int]]],
    num_samples: int,
    batch_size: int,
    seed: int,
    first: int,
) -> list[Batch]:
    """The samples of one benchmark in batches, prompts of like length together.

    What a batch samples depends on its seed and its content, never on the process that runs it or on those before it:
    so two processes give what one does, and a run that was killed goes on as if it had not been.

    Args:
        benchmark: name.
        prompts: id and token ids of each problem.
        num_samples: k, for each problem.
        batch_size: requests in a batch, the last may have fewer.
        seed: of the evaluation.
        first: number of the first batch.
    """
    order = sorted(prompts, key=lambda prompt: (len(prompt[1]), prompt[0]))
    requests = [Request(benchmark, name, index, tuple(ids)) for name, ids in order for index in range(num_samples)]
    starts = range(0, len(requests), batch_size)
    return [
        Batch(number, seed_of(seed, benchmark, start), tuple(requests[start : start + batch_size]))
        for number, start in enumerate(starts, start=first)
    ]


def seed_of(seed: int, benchmark: str, start: int) -> int:
    """A seed of 63 bits that is the same on every machine."""
    digest = blake2b(f"{seed} {benchmark} {start}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
