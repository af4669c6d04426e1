"""Watches the log of a run, and speaks when it turns bad."""

import logging
from collections.abc import Sequence
from typing import Any

from accelerate.utils import broadcast_object_list
from transformers import TrainerCallback

from .watches import REWARD, WATCHES, WatchOptions, judge

logger = logging.getLogger(__name__)


class WatchCallback(TrainerCallback):
    """Judges the log history at each log; warns on the main process when a watch sees something new.

    Args:
        options: which watches.
        stops: names of the watches that end the training.
    """

    def __init__(self, options: WatchOptions, stops: Sequence[str] = ()) -> None:
        self.options, self.stops = options, frozenset(stops)
        self.active: frozenset[str] = frozenset()

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Look at the training logs so far, those before a resume too."""
        if REWARD not in (state.log_history[-1] if state.log_history else {}):
            return  # of an evaluation, or the summary at the end
        found = judge([log for log in state.log_history if REWARD in log], self.options)
        if state.is_world_process_zero:
            for finding in found:
                if finding.name not in self.active:
                    logger.warning("%s", finding)
        self.active = frozenset(finding.name for finding in found)
        if self.stops:  # the main process decides for all, or some would wait for others that have stopped
            (ends,) = broadcast_object_list([sorted(self.active & self.stops)])
            if ends:
                control.should_training_stop = True
                if state.is_world_process_zero:
                    logger.warning("watches %s end the training at step %d (watch_stop).", ends, state.global_step)


def stops_of(watch_stop: Any) -> list[str]:
    """The names that `watch_stop` says.

    Raises:
        ValueError: an unknown watch.
    """
    names = [watch_stop] if isinstance(watch_stop, str) else list(watch_stop or ())
    if unknown := sorted(set(names) - set(WATCHES)):
        raise ValueError(f"watch_stop {watch_stop!r}: no such watches {unknown}; expected some of {list(WATCHES)}.")
    return names
