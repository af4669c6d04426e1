"""Multi-turn rollouts: episodes as plain data, and how they become batches."""

from .collate import split, to_rollout, to_tensors
from .episode import Episode, Segment, Turn, read_episodes, write_episodes
from .view import TurnView, view_turns

__all__ = [
    "Episode",
    "Segment",
    "Turn",
    "TurnView",
    "read_episodes",
    "split",
    "to_rollout",
    "to_tensors",
    "view_turns",
    "write_episodes",
]
