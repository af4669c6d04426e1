"""What a reward says about itself and its verdicts."""

from typing import NamedTuple


class Verdict(NamedTuple):
    """A score with its evidence."""

    score: float | None
    """None: not scored, which is not the same as wrong."""
    reason: str
