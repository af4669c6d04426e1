"""A word to those whose completions have more or fewer turns than their estimator is meant for."""

import logging
from collections.abc import Sequence

from ..advantages.tiers import hint_of

logger = logging.getLogger(__name__)

ENOUGH = 100  # completions, by then their mean number of turns is worth speaking of


class TurnHint:
    """Measures turns, and speaks once at most.

    Args:
        estimator: name of the turn estimator.
        is_heard: False on processes that keep quiet.
    """

    def __init__(self, estimator: str | None, is_heard: bool = True) -> None:
        self.estimator, self.is_heard = estimator, is_heard
        self._counts: list[int] = []

    def measure(self, counts: Sequence[int]) -> None:
        """Take in the numbers of turns of a generation batch; warn if their mean is outside the estimator's tier."""
        if self.estimator is None or len(self._counts) >= ENOUGH:
            return
        self._counts += counts
        if len(self._counts) >= ENOUGH and self.is_heard:
            hint = hint_of(self.estimator, sum(self._counts) / len(self._counts))
            if hint is not None:
                logger.warning(hint)
