"""Multi-turn rollouts: episodes as plain data, and how they become batches."""

from .chat import suffix_ids
from .collate import split, to_rollout, to_tensors
from .episode import Episode, Segment, Turn, read_episodes, write_episodes
from .loop import MultiTurnRollout
from .tagged import episode_from_react, episode_from_tagged
from .template import TemplateCheck, check_template
from .transcript import episode_from_messages
from .view import TurnView, view_turns

__all__ = [
    "Episode",
    "MultiTurnRollout",
    "Segment",
    "TemplateCheck",
    "Turn",
    "TurnView",
    "check_template",
    "episode_from_messages",
    "episode_from_react",
    "episode_from_tagged",
    "read_episodes",
    "split",
    "suffix_ids",
    "to_rollout",
    "to_tensors",
    "view_turns",
    "write_episodes",
]
