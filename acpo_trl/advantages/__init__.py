"""Turn-level credit: which turn gets how much."""

from collections.abc import Callable

from .gae import step_ppo, turn_ppo
from .gigpo import gigpo
from .gigpo_similar import gigpo_similar
from .gtpo import grpo_s, gtpo
from .gtpo_trajectory import gtpo_trajectory
from .gtpo_turn import gtpo_turn, partial_credit
from .hgpo import hgpo
from .igpo import igpo
from .kevin import kevin
from .kinds import KIND_ESTIMATORS, combine, gdpo, mixed
from .milestone import milestone
from .mt_grpo import mt_grpo
from .needs import NEEDS, Estimate, needs
from .outcome import outcome
from .process import discounted, local, process
from .salt import salt
from .spa_rl import spa_rl
from .state import similar_keys
from .table import TokenTable, TurnRewards, standardize, sum_scored
from .token_gae import bilevel_gae, ppo
from .turn_rtg import turn_rtg

TURN_ESTIMATORS: dict[str, Callable[..., Estimate]] = {
    "outcome": outcome,
    "discounted": discounted,
    "process": process,
    "milestone": milestone,
    "local": local,
    "mt_grpo": mt_grpo,
    "kevin": kevin,
    "gtpo_turn": gtpo_turn,
    "turn_rtg": turn_rtg,
    "gigpo": gigpo,
    "gigpo_similar": gigpo_similar,
    "hgpo": hgpo,
    "salt": salt,
    "spa_rl": spa_rl,
    "igpo": igpo,
    "turn_ppo": turn_ppo,
    "step_ppo": step_ppo,
    "ppo": ppo,
    "bilevel_gae": bilevel_gae,
    "gtpo": gtpo,
    "grpo_s": grpo_s,
    "gtpo_trajectory": gtpo_trajectory,
}

__all__ = [
    "KIND_ESTIMATORS",
    "NEEDS",
    "TURN_ESTIMATORS",
    "TokenTable",
    "TurnRewards",
    "bilevel_gae",
    "combine",
    "discounted",
    "gdpo",
    "gigpo",
    "gigpo_similar",
    "grpo_s",
    "gtpo",
    "gtpo_trajectory",
    "gtpo_turn",
    "hgpo",
    "igpo",
    "kevin",
    "local",
    "milestone",
    "mixed",
    "mt_grpo",
    "needs",
    "outcome",
    "partial_credit",
    "ppo",
    "process",
    "salt",
    "similar_keys",
    "spa_rl",
    "standardize",
    "step_ppo",
    "sum_scored",
    "turn_ppo",
    "turn_rtg",
]
