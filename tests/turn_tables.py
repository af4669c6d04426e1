"""Rewards of turns as tables, lists and hypothesis strategies. None is unscored."""

import pytest
import torch
from hypothesis import strategies as st

from acpo_trl.advantages import TurnRewards


def table(rewards, size=None, extra=0):
    """Rewards as a padded table in float64."""
    width = max(map(len, rewards), default=0) + extra
    values = torch.full((len(rewards), width), torch.nan, dtype=torch.float64)
    for row, turns in zip(values, rewards, strict=True):
        row[: len(turns)] = torch.tensor([torch.nan if r is None else r for r in turns], dtype=torch.float64)
    return TurnRewards(values, torch.tensor([len(turns) for turns in rewards]), size or len(rewards))


def as_lists(advantages, rewards):
    for row, turns in zip(advantages, rewards, strict=True):
        assert (row[len(turns) :] == 0).all()  # turns that do not exist
    return [row[: len(turns)].tolist() for row, turns in zip(advantages, rewards, strict=True)]


def close(expected, **tolerance):
    return [pytest.approx(row, **({"rel": 1e-9, "abs": 1e-9} | tolerance)) for row in expected]


reward_tables = st.integers(1, 4).flatmap(
    lambda size: st.tuples(
        st.lists(
            st.lists(st.none() | st.floats(-2, 2).map(lambda x: round(x, 3)), max_size=4), min_size=size, max_size=size
        ).flatmap(lambda one: st.permutations(one).map(lambda other: [*one, *other])),
        st.just(size),
    )
)
