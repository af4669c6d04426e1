"""Which groups of completions are recorded."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ..records.store import FORMATS

CHOICES = ("random", "best", "worst", "zero_spread")


@dataclass(frozen=True)
class CreditLogOptions:
    """What is recorded, and how often.

    Raises:
        ValueError: a number or name that cannot be.
    """

    every: int = 10
    """Steps from one record to the next."""
    groups: int = 1
    """So many for each entry of `choose`; a group is all completions of a prompt."""
    choose: str | Sequence[str] = "random"
    """One or more of `CHOICES`: at random, by mean reward, or with equal rewards."""
    file_format: str = "parquet"
    """`parquet` or `jsonl`."""
    max_megabytes: float = 200.0
    """Of all files; the oldest make room."""

    def __post_init__(self) -> None:
        for name in ("every", "groups"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} {value!r}: expected a whole number, 1 or more.")
        if (
            not isinstance(self.choose, str | list | tuple)
            or not self.chosen
            or any(n not in CHOICES for n in self.chosen)
        ):
            raise ValueError(f"choose {self.choose!r}: expected one or more of {list(CHOICES)}.")
        if self.file_format not in FORMATS:
            raise ValueError(f"file_format {self.file_format!r}: expected one of {list(FORMATS)}.")
        size = self.max_megabytes
        if type(size) not in (int, float) or not 0 < size < math.inf:
            raise ValueError(f"max_megabytes {size!r}: expected a number above 0.")

    @property
    def chosen(self) -> list[str]:
        """`choose` as a list."""
        return [self.choose] if isinstance(self.choose, str) else list(self.choose)

    @property
    def max_bytes(self) -> int:
        """`max_megabytes` in bytes."""
        return int(self.max_megabytes * 2**20)


def choose_groups(rewards: Sequence[Sequence[float]], options: CreditLogOptions, random: Random) -> dict[int, str]:
    """Which groups are recorded, and why; a group that two entries choose counts for the first.

    Args:
        rewards: of each completion of each group, NaN for unscored.
        options: how many, and which.
        random: decides, also between equals.
    """
    order = list(range(len(rewards)))
    random.shuffle(order)
    scored = {group: [r for r in rewards[group] if not math.isnan(r)] for group in order}
    known = [group for group in order if scored[group]]

    def mean(group: int) -> float:
        return sum(scored[group]) / len(scored[group])

    def is_flat(group: int) -> bool:  # as near as the metric `zero_spread` asks
        return math.isclose(max(scored[group]), min(scored[group]), rel_tol=1e-5, abs_tol=1e-8)

    ways = {
        "random": order,
        "best": sorted(known, key=mean, reverse=True),
        "worst": sorted(known, key=mean),
        "zero_spread": [group for group in known if is_flat(group)],
    }
    chosen: dict[int, str] = {}
    for name in options.chosen:
        for group in ways[name][: options.groups]:
            chosen.setdefault(group, name)
    return chosen
