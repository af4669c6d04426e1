"""IGPO: what a turn told about the gold answer, and at the last one the outcome."""

import torch
from torch import Tensor

from .given import given
from .needs import needs
from .process import rewards_to_go
from .state import check_choice, comparable, normalize, prompts
from .table import TurnRewards


@needs("beliefs")
def igpo(turns: TurnRewards, *, gain: str = "log", normalization: str = "separate", gamma: float = 1.0) -> Tensor:
    """Normalised gains in belief in the gold answer and the normalised outcome, summed from each turn on.

    The reward of the last turn is the outcome, that of every other one how much more the policy believes in the gold
    answer before the next turn than before this one. A gain that nobody knows is none and counts in no mean. A turn
    without tokens hands its gain to the last turn with tokens before it; without one, nobody earned it.

    The defaults keep scales apart. Log-probabilities gain nats without bound, an outcome is 0 or 1: normalised jointly,
    the gains drown it, and a right answer may be worth less than a good first search. Probabilities share the outcome's
    scale, but hardly move while the answer is unlikely, which is when a hint is needed; "prob" with "joint" is the
    paper's first form. In all forms a sum over more turns is larger: first turns of long completions weigh most.

    Args:
        turns: (N, K), with beliefs.
        gain: "log" (difference of mean log-probabilities) or "prob" (of their exponentials).
        normalization: over the group; "separate" compares gains with gains and outcomes with outcomes, "joint" all.
        gamma: discount for each turn, one without tokens too.

    Returns:
        (N, K), 0 for turns that do not exist, have no tokens, or belong to a completion that is unscored or the only
        scored one of its group.

    Raises:
        ValueError: no beliefs or numbers of tokens, or an unknown choice.

    Source: arXiv:2510.14967; separate normalisation and logarithms as later versions are said to have them.
    """
    check_choice("normalization", normalization, ("separate", "joint"))
    turns = comparable(turns)
    gains, is_last = information_gains(turns, gain), turns.is_last
    outcomes = turns.totals.unsqueeze(1)
    if normalization == "joint":
        rewards = _standardize(torch.where(is_last, outcomes, gains), turns)
    else:
        rewards = _standardize(gains, turns) + _standardize(outcomes, turns) * is_last
    returns = rewards_to_go(turns._replace(values=rewards), gamma)
    return torch.where(turns.is_scored & (given(turns, "num_tokens") > 0), returns, 0)


def information_gains(turns: TurnRewards, gain: str = "log") -> Tensor:
    """How much more the policy believes in the gold answer after a turn than before it.

    Args:
        turns: (N, K), with beliefs.
        gain: "log" or "prob".

    Returns:
        (N, K), NaN for last turns and those that do not exist, are unscored, have no tokens or an unknown gain.
    """
    check_choice("gain", gain, ("log", "prob"))
    beliefs = given(turns, "beliefs").to(turns.values)
    beliefs = beliefs if gain == "log" else beliefs.exp()
    gains = beliefs.roll(-1, dims=1) - beliefs
    gains = gains.masked_fill(~turns.is_scored | turns.is_last, torch.nan)
    return _move_to_tokens(gains, given(turns, "num_tokens") > 0)


def _move_to_tokens(gains: Tensor, has_tokens: Tensor) -> Tensor:
    """Add the gain of a turn without tokens to that of the last turn with tokens before it."""
    step = has_tokens.cumsum(dim=1)  # 0 before the first turn with tokens: its column is dropped
    size = gains.size(1) + 1
    known = ~gains.isnan()
    sums = gains.new_zeros(len(gains), size).scatter_add(1, step, gains.where(known, 0))
    counts = step.new_zeros(len(gains), size).scatter_add(1, step, known.long())
    is_unknown = ~has_tokens | (counts.gather(1, step) == 0)
    return sums.gather(1, step).masked_fill(is_unknown, torch.nan)


def _standardize(values: Tensor, turns: TurnRewards) -> Tensor:
    """Give (x - mean) / (sqrt(variance + 1e-8) + 1e-6) over the scored entries of each group, 0 elsewhere.

    The variance is that of the population. The first constant keeps gains far below 1e-4 small.
    """
    centered = normalize(values, prompts(turns).unsqueeze(1).expand_as(values), by_std=False)
    groups = centered.view(len(values) // turns.num_generations, -1)
    count = (~values.isnan()).view_as(groups).sum(dim=1, keepdim=True).clamp(min=1)
    variance = groups.square().sum(dim=1, keepdim=True) / count
    return (groups / ((variance + 1e-8).sqrt() + 1e-6)).view_as(values)
