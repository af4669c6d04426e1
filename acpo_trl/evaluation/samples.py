"""Samples on disk: one JSON line each, written batch by batch, so that a run that was killed loses a batch at most."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """One response and its verdict."""

    benchmark: str
    problem_id: str
    sample_index: int
    """0 to k - 1, which sample of the problem it is."""
    response: str
    answer: str | None
    """What was taken for the answer; None if there is none."""
    verdict: float | None
    """1.0 right, 0.0 wrong; None: the judge failed."""
    reason: str
    num_tokens: int
    is_truncated: bool
    """The limit of tokens ended it."""
    seconds: float
    """Its share of the time that generating and checking its batch took."""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.benchmark, self.problem_id, self.sample_index


class SampleStore:
    """The samples of an evaluation in a folder: a part for each process while it runs, one sorted file in the end.

    Args:
        folder: made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def final(self) -> Path:
        return self.folder / "samples.jsonl"

    def part(self, rank: int) -> Path:
        """Where the process of this rank writes."""
        return self.folder / f"samples.part-{rank}.jsonl"

    def collect(self, sizes: Mapping[int, int]) -> dict[int, list[Sample]]:
        """Bring the finished batches of all parts into the first, and give them by number; one process calls it.

        A batch that a kill cut short is dropped.

        Args:
            sizes: how many samples each batch has.

        Raises:
            ValueError: a line that is no sample and not the last of its file.
        """
        found: dict[int, dict[tuple[str, str, int], Sample]] = {}
        parts = sorted(self.folder.glob("samples.part-*.jsonl"))
        for path in parts:
            for number, sample in _read(path):
                found.setdefault(number, {})[sample.key] = sample
        whole = {n: list(batch.values()) for n, batch in sorted(found.items()) if len(batch) == sizes.get(n)}
        lines = [_line(number, sample) for number, batch in whole.items() for sample in batch]
        write_whole(self.part(0), "".join(lines))
        for path in parts:
            if path != self.part(0):
                path.unlink()
        return whole

    def append(self, rank: int, number: int, samples: Iterable[Sample]) -> None:
        """Write a finished batch through to the disk."""
        with self.part(rank).open("a", encoding="utf-8", errors="surrogatepass") as file:
            file.write("".join(_line(number, sample) for sample in samples))
            file.flush()
            os.fsync(file.fileno())

    def finish(self, samples: Sequence[Sample]) -> None:
        """Write all samples, in the given order, into the one file, and remove the parts."""
        write_whole(self.final, "".join(json.dumps(sample._asdict(), ensure_ascii=False) + "\n" for sample in samples))
        for path in self.folder.glob("samples.part-*.jsonl"):
            path.unlink()


def read_samples(path: Path) -> list[Sample]:
    """The samples of a finished evaluation.

    Raises:
        ValueError: no such file, or a line that is no sample.
    """
    if not path.is_file():
        raise ValueError(f"{str(path)!r}: no such file; expected the samples.jsonl that a finished evaluation writes.")
    samples = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            content = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{str(path)!r}, line {number}: is no sample ({error}); evaluate anew.") from error
        samples.append(_sample(content, path, number))
    return samples


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there as a whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _line(number: int, sample: Sample) -> str:
    return json.dumps({"batch": number, **sample._asdict()}, ensure_ascii=False) + "\n"


def _read(path: Path) -> Iterable[tuple[int, Sample]]:
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):  # what stands behind the last line break was cut short
        try:
            content = json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{str(path)!r}, line {number}: is no sample ({error}); expected what an evaluation wrote; remove the "
                "line, and its batch is drawn anew."
            ) from error
        yield content.pop("batch"), _sample(content, path, number)


def _sample(content: Any, path: Path, number: int) -> Sample:
    if not isinstance(content, dict) or set(content) != set(Sample._fields):
        raise ValueError(
            f"{str(path)!r}, line {number}: is no sample; expected the keys {list(Sample._fields)}; was it written by "
            "another version?"
        )
    return Sample(**content)
