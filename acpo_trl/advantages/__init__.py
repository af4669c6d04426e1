"""Turn-level credit: which turn gets how much."""

from .gae import step_ppo, turn_ppo
from .gigpo import gigpo
from .gtpo_turn import gtpo_turn, partial_credit
from .hgpo import hgpo
from .kevin import kevin
from .kinds import KIND_ESTIMATORS, combine, gdpo, mixed
from .milestone import milestone
from .mt_grpo import mt_grpo
from .needs import NEEDS, needs
from .outcome import outcome
from .process import discounted, local, process
from .salt import salt
from .state import similar_keys
from .table import TokenTable, TurnRewards, standardize, sum_scored
from .token_gae import bilevel_gae, ppo
from .turn_rtg import turn_rtg

TURN_ESTIMATORS = {
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
    "hgpo": hgpo,
    "salt": salt,
    "turn_ppo": turn_ppo,
    "step_ppo": step_ppo,
    "ppo": ppo,
    "bilevel_gae": bilevel_gae,
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
    "gtpo_turn",
    "hgpo",
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
    "standardize",
    "step_ppo",
    "sum_scored",
    "turn_ppo",
    "turn_rtg",
]
