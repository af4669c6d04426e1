"""Turns of a group that start from the same state: labels and statistics over them."""

from collections.abc import Sequence
from difflib import SequenceMatcher

import torch
from torch import Tensor

from .given import given
from .process import compared, rewards_to_go
from .table import EPSILON, TurnRewards, existing

NONE = -1  # keys are not negative: no state follows the last turn, a turn without tokens is no action


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is none of the choices.

    Raises:
        ValueError: names the option and the choices.
    """
    if value not in choices:
        raise ValueError(f"{option} {value!r}: no such choice; expected one of {list(choices)}.")


def prompts(turns: TurnRewards) -> Tensor:
    """(N,), the number of each completion's group."""
    return torch.arange(len(turns.values), device=turns.values.device) // turns.num_generations


def label(*columns: Tensor) -> Tensor:
    """Give a number to each place of columns of equal shape: equal ones where all the columns are equal."""
    labels = torch.zeros_like(columns[0], dtype=torch.long)
    for column in columns:
        place = column.unique(return_inverse=True)[1]
        labels = (labels * place.numel() + place).unique(return_inverse=True)[1]
    return labels


def state_labels(turns: TurnRewards) -> Tensor:
    """(N, K), equal for the turns of a group that start from the same state; those of other groups differ."""
    return label(prompts(turns).unsqueeze(1).expand_as(turns.values), given(turns, "state_keys"))


def comparable(turns: TurnRewards) -> TurnRewards:
    """The table without what stands behind a last turn, and without completions that nothing can be compared with."""
    return compared(existing(turns))


def acts(turns: TurnRewards) -> Tensor:
    """(N, K) bool: the turns to compare, those with tokens of a scored completion."""
    return turns.is_scored if turns.action_keys is None else turns.is_scored & (turns.action_keys != NONE)


def step_returns(turns: TurnRewards, gamma: float) -> Tensor:
    """(N, K) discounted rewards to go, NaN for turns that are not compared."""
    return rewards_to_go(turns, gamma).masked_fill(~acts(turns), torch.nan)


def count_alike(values: Tensor, labels: Tensor) -> Tensor:
    """How many of the scored entries have the label of an entry; of the shape of both."""
    return labels[~values.isnan()].bincount(minlength=labels.numel())[labels]


def normalize(
    values: Tensor, labels: Tensor, epsilon: float = EPSILON, *, by_std: bool = True, correction: int = 1
) -> Tensor:
    """Give (x - mean) / (std + epsilon) among the scored entries of equal label.

    Args:
        values: of any shape, NaN for unscored.
        labels: of the same shape, from 0.
        epsilon: added to the standard deviation.
        by_std: False gives x - mean.
        correction: of the standard deviation; 1 is Bessel's.

    Returns:
        Like `values`; 0 for unscored entries, for one alone with its label and for equal ones.
    """
    is_scored = ~values.isnan()
    scored, place = values[is_scored], labels[is_scored]
    zeros = scored.new_zeros(labels.numel())
    count = place.bincount(minlength=len(zeros))[place]
    # From the lowest on, so that equal values are 0: epsilon would blow up the rounding error of their mean.
    centered = scored - zeros.scatter_reduce(0, place, scored, "amin", include_self=False)[place]
    centered = centered - zeros.index_add(0, place, centered)[place] / count
    if by_std:
        squares = zeros.index_add(0, place, centered.square())[place]
        centered = centered / ((squares / (count - correction).clamp(min=1)).sqrt() + epsilon)
    return torch.zeros_like(values).masked_scatter(is_scored, centered.masked_fill(count < 2, 0))


def similar_keys(observations: Sequence[str], threshold: float = 0.95) -> list[int]:
    """Keys of states from what was shown: texts that are nearly equal get the same key.

    A text joins the first cluster whose first member is similar enough, as `difflib.SequenceMatcher.ratio` says. The
    result depends on the order of the texts, and two texts of a cluster may be less similar than `threshold`: give all
    processes the observations of a prompt's completions in the same order. In texts from 200 characters on, difflib
    does not look for frequent letters: it may find less in common than there is, and saves most of the time.

    Args:
        observations: of one group.
        threshold: of the ratio, from 0 to 1.

    Returns:
        The number of the cluster of each observation, from 0.
    """
    firsts: list[str] = []
    keys: dict[str, int] = {}
    for text in dict.fromkeys(observations):
        matcher = SequenceMatcher(None, "", text)  # it remembers the second text
        keys[text] = next(
            (key for key, first in enumerate(firsts) if _is_similar(matcher, first, threshold)), len(firsts)
        )
        if keys[text] == len(firsts):
            firsts.append(text)
    return [keys[text] for text in observations]


def _is_similar(matcher: SequenceMatcher, first: str, threshold: float) -> bool:
    matcher.set_seq1(first)
    ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)  # upper bounds, then the ratio itself
    return all(ratio() >= threshold for ratio in ratios)
