"""Trajectory GTPO: no blame for the tokens that failures share with successes, and none at all in great doubt."""

import math

import torch
from torch import Tensor

from .given import given
from .gtpo import policy_entropies
from .needs import needs
from .state import label, prompts
from .table import EPSILON, TokenTable, TurnRewards, existing, standardize


@needs("tokens")
def gtpo_trajectory(turns: TurnRewards, *, gamma: float = 0.1, entropy_limit: float = math.log(2)) -> Tensor:
    """Advantage of the completion within its group minus gamma times its mean entropy, doubled or 0 on conflict tokens.

    `conflicts` says which these are; there it counts twice in a completion with a positive advantage and not at all in
    one with a negative one. Completions above the entropy limit are left out, unless the policy began above it. The
    term of the entropy stays where a group has no spread, or one completion: there it is all there is, and makes every
    completion less likely, the more the policy hesitated.

    The paper also takes the mean over each completion's tokens and no KL term: `loss_type: grpo` and `beta: 0`.

    Args:
        turns: (N, K), with tokens.
        gamma: weight of the mean entropy.
        entropy_limit: in nats, of the mean over a completion, and of the policy's at the start of the run.

    Returns:
        (N, T), 0 for tokens of the environment and completions that nobody scored or that are left out.

    Raises:
        ValueError: no tokens.

    Source: arXiv:2508.03772, as winstonsmith1897/GTPO describes it; its program has 0.7 for the limit and counts a
        token that conflicts from both ends four times.
    """
    tokens: TokenTable = given(turns, "tokens")
    turns = existing(turns)
    advantages = standardize(turns.totals, turns.num_generations).unsqueeze(1)
    entropies = policy_entropies(tokens).nanmean(dim=1, keepdim=True).to(advantages)
    is_kept = (entropies <= entropy_limit) | (tokens.initial_entropy > entropy_limit)
    is_learned = (tokens.turn_ids >= 0) & is_kept & ~turns.totals.isnan().unsqueeze(1)
    signs = advantages.sign().masked_fill(advantages.abs() < EPSILON, 0)  # the rounding of the mean has no sign
    weights = 1 + signs * conflicts(tokens, signs, prompts(turns).unsqueeze(1))
    return torch.where(is_learned, (advantages - gamma * entropies) * weights, 0)


def conflicts(tokens: TokenTable, signs: Tensor, groups: Tensor) -> Tensor:
    """Where completions of a group with opposite advantages share tokens, from their start or from their end on.

    A token is shared if some completion of the other sign has the same one at the same place, counted among the tokens
    of the policy from the start or from the end. It is in conflict if all before it, or all behind it, are shared too.

    Args:
        tokens: (N, T).
        signs: (N, 1), of the advantages.
        groups: (N, 1), numbers of the groups.

    Returns:
        (N, T) bool.
    """
    is_action = tokens.turn_ids >= 0
    backwards = _shared_start(tokens.ids.flip(1), is_action.flip(1), signs, groups).flip(1)
    return _shared_start(tokens.ids, is_action, signs, groups) | backwards


def _shared_start(ids: Tensor, is_action: Tensor, signs: Tensor, groups: Tensor) -> Tensor:
    """(N, T) bool: the first tokens of the policy that are shared, up to one that is not."""
    labels = label(groups.expand_as(ids), is_action.cumsum(dim=1), ids)
    is_shared = is_action & (signs != 0)
    for sign in (1, -1):
        members = is_action & (signs == sign)
        is_shared &= (labels[members].bincount(minlength=labels.numel()) > 0)[labels]
    return is_shared & ((is_action & ~is_shared).cumsum(dim=1) == 0)
