"""Episodes whose turns have exactly known credit, as tables that answer whatever a turn estimator asks."""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from acpo_trl.advantages import TokenTable, TurnRewards

GROUP_SIZE, PROBABILITY, NAN = 8, 0.6, float("nan")
OUTCOME, PROCESS = SCORINGS = ("outcome alone", "with process")
LEAST_CHANCE = 0.01  # beliefs are logarithms: without it a lost episode has none
ENTROPY = -PROBABILITY * math.log(PROBABILITY) - (1 - PROBABILITY) * math.log(1 - PROBABILITY)


class Episode(NamedTuple):
    """One completion, with one entry for each turn in every list."""

    rewards: dict[str, list[float]]
    """By scoring, NaN for unscored turns."""
    returns: dict[str, list[float]]
    """By scoring: what is to be expected from the turn on."""
    chances: list[float]
    """Of success, before the turn."""
    states: list[int]
    actions: list[int]
    entropies: list[float]
    """In nats."""
    credit: list[float] | None = None
    """By how much the turn changes the chance of success; None if nobody knows."""


def play(dice: random.Random, num_turns: int, deciding: list[int]) -> Episode:
    """One episode with the true credit of its turns."""
    states, actions, chances, process, wages = [], [], [], [], []
    left, past, failed = len(deciding), 0, False
    for turn in range(num_turns):
        good = dice.random() < PROBABILITY
        states.append(1000 * turn + past)
        actions.append(int(good))
        chances.append(0.0 if failed else PROBABILITY**left)
        wages.append(PROBABILITY * left)
        process.append(0.0)
        if turn in deciding:
            process[-1] = float(good)
            left -= 1
            failed = failed or not good
            past = 2 * past + int(good) + 1
    success = float(not failed)
    return Episode(
        {OUTCOME: [NAN] * (num_turns - 1) + [success], PROCESS: [*process[:-1], process[-1] + success]},
        {OUTCOME: chances, PROCESS: [chance + wage for chance, wage in zip(chances, wages, strict=True)]},
        chances,
        states,
        actions,
        [ENTROPY] * num_turns,
        [after - before for before, after in zip(chances, [*chances[1:], success], strict=True)],
    )


def play_groups(num_groups: int, seed: int) -> list[Episode]:
    """Groups of episodes, each with 3 to 6 turns, two of which decide; some of a group end one turn early."""
    dice = random.Random(seed)
    episodes = []
    for _ in range(num_groups):
        num_turns = dice.randint(3, 6)
        deciding = sorted(dice.sample(range(num_turns - 1), 2))
        for _ in range(GROUP_SIZE):
            episodes.append(play(dice, max(num_turns + dice.choice([-1, 0, 0]), deciding[-1] + 1), deciding))
    return episodes


def table(episodes: Sequence[Episode], scoring: str, size: int, noise: float = 0.0) -> TurnRewards:
    """Episodes as a table, each turn being one token.

    Args:
        episodes: of groups in order.
        scoring: which of their rewards.
        size: episodes in a group.
        noise: standard deviation of an error in what is said about chances and returns.
    """
    num_turns = torch.tensor([len(episode.states) for episode in episodes])
    exists = torch.arange(int(num_turns.max())) < num_turns.unsqueeze(1)

    def padded(rows: list[list[float]], fill: float = NAN, dtype: torch.dtype = torch.float64) -> Tensor:
        entries = torch.tensor([entry for row in rows for entry in row], dtype=dtype)
        return torch.full(exists.shape, fill, dtype=dtype).masked_scatter(exists, entries)

    keys = [padded([getattr(e, name) for e in episodes], -1, torch.long) for name in ("states", "actions")]
    entropies = padded([e.entropies for e in episodes])
    error = noise * torch.randn(exists.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    turn_ids = torch.where(exists, torch.arange(exists.size(1)), -1)
    turns = TurnRewards(
        padded([e.rewards[scoring] for e in episodes]),
        num_turns,
        size,
        *keys,
        num_tokens=exists.long(),
        is_valid=exists,
        is_truncated=torch.zeros(len(episodes), dtype=torch.bool),
        observations=[[str(state) for state in e.states] for e in episodes],
        beliefs=(padded([e.chances for e in episodes]) + error).clamp(LEAST_CHANCE, 1).log(),
        end_values=torch.zeros(len(episodes), dtype=torch.float64),
        tokens=TokenTable(turn_ids, keys[1], entropies, entropies.nanmean().item()),
    )
    return with_critic(turns, padded([e.returns[scoring] for e in episodes]) + error)


def with_critic(turns: TurnRewards, values: Tensor) -> TurnRewards:
    """The table with a critic's values of turns, of their tokens, and the contributions that follow from them.

    The contribution of turn k is r[k] + V[k + 1] - V[k] + V[0] / K, nothing being expected behind the last of K turns:
    they add up to the rewards of the episode, whatever the values.
    """
    has_next = turns.exists.roll(-1, dims=1)
    has_next[:, -1] = False
    change = values.roll(-1, dims=1).where(has_next, 0) - values
    contributions = turns.values.nan_to_num(nan=0.0) + change + values[:, :1] / turns.num_turns.unsqueeze(1)
    tokens = turns.tokens._replace(values=values)
    return turns._replace(state_values=values, contributions=contributions, tokens=tokens)
