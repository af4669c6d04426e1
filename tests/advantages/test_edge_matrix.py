"""Every estimator in the edge cases: group of one, zero spread, no turn, turn without tokens.

The numbers follow from the formulas by hand; `z` and `whiten` are those of the naive references. The other columns of
the matrix, single turn and truncated, are in test_edge_matrix_lengths.py; the rows of methods that are ratios, losses
or rules in test_ratio.py, trainer/test_token_methods.py and credit/.
"""

import pytest
import torch
from fact_tables import Completion, Token, Turn, credit, facts, standardized
from reference.gae import whiten
from reference.turns import z
from turn_tables import close, table

from acpo_trl.advantages import TURN_ESTIMATORS, gdpo
from acpo_trl.advantages.needs import advantages_of, needs_of
from acpo_trl.turns import spread_turns

by_estimator = pytest.mark.parametrize("name", TURN_ESTIMATORS)
UP = 0.5 / (0.5**0.5 + 1e-4)  # z of two values one apart: 0.707007


def covers_all(cells):
    assert set(cells) == set(TURN_ESTIMATORS)
    return pytest.mark.parametrize("name", TURN_ESTIMATORS)


def mirrored(row):
    """The first of two completions and its opposite."""
    return [row, [-a for a in row]]


def whitened(rows, copies=1):
    flat = iter(whiten([(value, copies) for row in rows for value in row]))
    return [[next(flat) for _ in row] for row in rows]


# Group of one: a completion of two turns with the rewards 0.25 and 1, four tokens, and a critic that expects nothing.

OF_ONE = {
    **{name: [[0.0, 0.0]] for name in TURN_ESTIMATORS},
    "local": [[0.25, 1.0]],
    "process": standardized([[0.25 + 0.95, 1.0]]),  # against its own turns, as Kevin
    "kevin": standardized([[0.25 + 0.4, 1.0]]),
    "turn_ppo": whitened([[0.25 + 0.99 * 0.9, 1.0]], copies=2),  # a critic needs no group
    "step_ppo": whitened([[0.25 + 0.99, 1.0]]),
    "ppo": whitened([[0.95 * (0.25 + 0.95**2), 0.25 + 0.95**2, 0.95, 1.0]]),
    "bilevel_gae": whitened([[0.25 + 0.95, 0.25 + 0.95, 1.0, 1.0]]),
    "gtpo": [[0.0] * 4],  # of one polarity, and each token the mean of its column
    "grpo_s": [[0.0] * 4],
    "gtpo_trajectory": [[-0.1 * 0.5] * 4],  # the term of the entropy
}


@covers_all(OF_ONE)
def test_group_of_one(name):
    assert credit(name, [Completion((Turn(0.25), Turn(1.0)))]) == close(OF_ONE[name], abs=1e-6)


# Zero spread: two completions of two turns, from states a and b, with the outcome 1.

OF_EQUALS = {
    **{name: [[0.0, 0.0]] * 2 for name in TURN_ESTIMATORS},
    "local": [[0.0, 1.0]] * 2,
    "discounted": standardized([[0.95, 1.0]] * 2),  # discounted before it is compared: no spread of returns only at K=1
    "process": standardized([[0.95, 1.0]] * 2),
    "kevin": standardized([[0.4, 1.0]] * 2),
    "gtpo_turn": standardized([[0.9, 1.0]] * 2),
    "turn_ppo": whitened([[0.891, 1.0]] * 2, copies=2),
    "step_ppo": whitened([[0.99, 1.0]] * 2),
    "ppo": whitened([[0.95**3, 0.95**2, 0.95, 1.0]] * 2),
    "bilevel_gae": whitened([[0.95, 0.95, 1.0, 1.0]] * 2),
    "gtpo": [[0.0] * 4] * 2,
    "grpo_s": [[0.0] * 4] * 2,
    "gtpo_trajectory": [[-0.05] * 4] * 2,
}


@covers_all(OF_EQUALS)
def test_zero_spread(name):
    completions = [Completion((Turn(), Turn(1.0, state="b", action=action))) for action in "XY"]
    assert credit(name, completions) == close(OF_EQUALS[name], abs=1e-6)


@by_estimator
def test_zero_spread_of_single_turns_is_nothing_whatever_the_rounding(name):
    """Exactly nothing where it is divided by a deviation; the rounding of a mean, where it is not."""
    advantages = credit(name, [Completion((Turn(0.1, (Token(),)),))] * 7)
    expected = {"local": 0.1, "gtpo_trajectory": -0.05}.get(name, 0.0)
    assert advantages == close([[expected]] * 7, abs=1e-15 if name == "milestone" else 0.0)


def test_constant_kind_adds_nothing_to_gdpo():
    tables = {"outcome": table([[1.0], [0.0]]), "format": table([[0.1], [0.1]])}
    weights = {"outcome": 1.0, "format": 1.0}
    assert torch.equal(gdpo(tables, weights)[0], gdpo({"outcome": tables["outcome"]}, weights)[0])


def test_group_of_one_has_no_advantage_in_gdpo():
    assert (gdpo({"outcome": table([[1.0]])}, {"outcome": 1.0})[0] == 0).all()


# No turn, or no token


@by_estimator
def test_group_without_turns_gives_nothing(name):
    assert credit(name, [Completion()] * 2) == [[], []]


@by_estimator
@pytest.mark.parametrize("end", [None, 0.7], ids=["ended", "cut off"])
def test_completion_without_turns_is_left_out(name, end):
    others = [Completion((Turn(0.25), Turn(1.0, action="Y"))), Completion((Turn(0.5), Turn(0.0)))]
    assert credit(name, [*others, Completion((), end)]) == [*close(credit(name, others), rel=1e-12), []]


@by_estimator
def test_completions_without_a_token_teach_nothing(name):
    turns = facts([Completion((Turn(1.0, ()),)), Completion((Turn(0.0, ()),))])
    advantages = advantages_of(TURN_ESTIMATORS[name](turns))
    if "tokens" not in needs_of(TURN_ESTIMATORS[name]):
        advantages = spread_turns(advantages, turns.tokens.turn_ids)
    assert (advantages == 0).all()


# Turn without tokens: the second of the first completion. Rewards 0, 0.5 and 1 against 0, 0 and 0, from states a, b, c.

THREE_STATES = tuple("abc")
TOTAL, HALF = z([1.5, 0.0])[0], z([0.5, 0.0])[0]
HALF_DISCOUNT = {"gamma": 0.5}
AS_IT_IS = {"normalization": "none"}
OF_SILENCE = {
    "outcome": (HALF_DISCOUNT, mirrored([TOTAL / 4, TOTAL / 2, TOTAL])),  # the exponent counts it
    "discounted": (HALF_DISCOUNT, standardized([[0.5, 1.0, 1.0], [0.0] * 3])),
    "process": (HALF_DISCOUNT, standardized([[0.5, 1.0, 1.0], [0.0] * 3])),
    "milestone": (HALF_DISCOUNT, mirrored([0.25, 0.5, 0.5])),
    "local": ({}, [[0.0, 0.5, 1.0], [0.0] * 3]),
    "mt_grpo": ({}, mirrored([UP + HALF, UP + HALF, UP])),  # what it earned reaches the turn before it
    "kevin": (HALF_DISCOUNT, standardized([[0.5, 1.0, 1.0], [0.0] * 3])),
    "gtpo_turn": (HALF_DISCOUNT, standardized([[0.5, 1.0, 1.0], [0.0] * 3])),
    "turn_rtg": (HALF_DISCOUNT, mirrored([HALF, UP, UP])),
    "gigpo": ({}, [[TOTAL, 0.0, TOTAL + UP], [-TOTAL, -TOTAL, -TOTAL - UP]]),  # nobody is compared with it at b
    "gigpo_similar": ({}, [[TOTAL, 0.0, TOTAL + UP], [-TOTAL, -TOTAL, -TOTAL - UP]]),
    "hgpo": ({}, mirrored([0.68875 / 0.68885, 0.0, 0.5 / 0.5001])),
    "salt": ({}, mirrored([0.0, TOTAL, 0.0])),  # a transition like any: it alone differs
    "spa_rl": ({"rescale": True}, mirrored([TOTAL, 0.0, z([0.9, 0.0])[0]])),  # 0.2 and 0.3 absorb 0.5, times 3
    "igpo": ({"gamma": 0.0}, [[2 / 2**0.5, 0.0, 1.0], [-1 / 2**0.5, -1 / 2**0.5, -1.0]]),  # gains 3, and 0 and 0
    "turn_ppo": (AS_IT_IS, [[0.5 + 0.891, 0.0, 1.0], [0.0] * 3]),  # its reward goes to the turn before
    "step_ppo": (AS_IT_IS, [[0.5 + 0.99, 0.0, 1.0], [0.0] * 3]),
    "ppo": (AS_IT_IS, [[0.95 * 1.4025, 0.5 + 0.95**2, 0.95, 1.0], [0.0] * 6]),
    "bilevel_gae": (AS_IT_IS, [[0.5 + 0.95, 0.5 + 0.95, 1.0, 1.0], [0.0] * 6]),
    "gtpo": ({}, [[1.5**0.5] * 4, [-(1.5**-0.5)] * 6]),
    "grpo_s": ({}, [[1.0] * 4, [-1.0] * 6]),
    "gtpo_trajectory": ({}, [[2 * (TOTAL - 0.05)] * 4, [0.0] * 6]),  # all tokens are shared, across the gap too
}


@covers_all(OF_SILENCE)
def test_turn_without_tokens(name):
    options, expected = OF_SILENCE[name]
    silent = Turn(0.5, (), "b", belief=-3.0, contribution=0.5)
    first = Turn(belief=-4.0, contribution=0.2), silent, Turn(1.0, state="c", contribution=0.3)
    second = Turn(belief=-4.0), Turn(0.0, state="b", belief=-4.0), Turn(0.0, state="c", belief=-4.0)
    advantages = credit(name, [Completion(first), Completion(second)], **options)
    assert advantages == close(expected, abs=1e-5)


@pytest.mark.parametrize(("form", "silent"), [("paper", UP + HALF), ("code", UP)])
def test_what_the_first_turns_earn_without_tokens_falls_on_the_next_in_mt_grpo(form, silent):
    first = Turn(0.5, ()), Turn(1.0)
    advantages = credit("mt_grpo", [Completion(first), Completion((Turn(0.0), Turn(0.0)))], form=form)
    assert advantages == close([[silent, UP + HALF], [-UP - HALF, -UP]], abs=1e-6)


def test_advantage_of_a_turn_without_tokens_reaches_none():
    turn_ids = torch.tensor([[0, 0, -1, -1, 2, 2, -1], [0, 0, 0, -1, -1, -1, -1]])
    advantages = torch.tensor([[0.5, 9.0, -0.3], [1.2, 0.0, 0.0]], dtype=torch.float64)
    expected = [[0.5, 0.5, 0.0, 0.0, -0.3, -0.3, 0.0], [1.2, 1.2, 1.2, 0.0, 0.0, 0.0, 0.0]]
    assert spread_turns(advantages, turn_ids).tolist() == expected
