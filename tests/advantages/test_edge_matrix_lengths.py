"""Every estimator in the edge cases of length: single turns, and a completion that was cut off.

The numbers follow from the formulas by hand. Other columns of the matrix are in test_edge_matrix.py.
"""

import pytest
import torch
from fact_tables import Completion, Token, Turn, by_turn, credit, facts, standardized
from reference.gae import whiten
from reference.turns import z
from turn_tables import close

from acpo_trl.advantages import TURN_ESTIMATORS, gigpo, kevin, mt_grpo, salt, standardize
from acpo_trl.advantages.needs import advantages_of

UP = 0.5 / (0.5**0.5 + 1e-4)  # z of two values one apart: 0.707007
AS_IT_IS = {"normalization": "none"}
CRITICS = ["turn_ppo", "step_ppo", "ppo", "bilevel_gae"]

# Single turn: four completions, each with another answer of one token and the value 0 before it.

OUTCOMES = [1.0, 0.5, 0.0, 0.0]
BY_Z = ["outcome", "discounted", "process", "mt_grpo", "kevin", "gtpo_turn", "turn_rtg", "spa_rl"]
BY_GROUP = ["gigpo", "gigpo_similar", "salt"]


def single_turns(outcomes):
    """Whose contributions are the outcomes."""
    return facts(
        [Completion((Turn(r, (Token(i),), action="WXYZ"[i], contribution=r),)) for i, r in enumerate(outcomes)]
    )


@pytest.mark.parametrize("outcomes", [OUTCOMES, [1.0, 0.1, 0.3, -0.7]])
@pytest.mark.parametrize("name", BY_Z + BY_GROUP)
def test_single_turn_is_grpo_with_its_epsilon(name, outcomes):
    turns = single_turns(outcomes)
    advantages, grpo = advantages_of(TURN_ESTIMATORS[name](turns)), standardize(turns.values, 4)
    assert grpo.flatten().tolist() == pytest.approx(z(outcomes), rel=1e-14)
    if name in BY_Z or outcomes is OUTCOMES:
        assert torch.equal(advantages, grpo)
    else:  # the mean is taken from the lowest value on: another order of the same sums
        assert torch.allclose(advantages, grpo, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("estimator", "options"), [(mt_grpo, {"form": "code"}), (kevin, {"mode": "max"}), (gigpo, {"statistics": "step"})]
)
def test_single_turn_is_grpo_in_other_forms_too(estimator, options):
    turns = single_turns(OUTCOMES)
    assert torch.equal(estimator(turns, **options), standardize(turns.values, 4))


def test_single_turn_of_gigpo_counts_twice_without_the_guard():
    turns = single_turns(OUTCOMES)
    assert torch.equal(gigpo(turns, guard_first_turn=False, omega=0.5), 1.5 * standardize(turns.values, 4))


def test_single_turns_with_one_answer_have_their_mean_in_salt():
    turns = single_turns(OUTCOMES)
    turns.action_keys[:2] = ord("W")
    grpo = z(OUTCOMES)
    assert salt(turns).flatten().tolist() == pytest.approx([(grpo[0] + grpo[1]) / 2] * 2 + grpo[2:], abs=1e-9)


DEVIATION = (0.6875 / 4) ** 0.5  # of the population
OF_SINGLE_TURNS = {
    "milestone": [0.625, 0.125, -0.375, -0.375],
    "local": OUTCOMES,
    "hgpo": [d / (DEVIATION + 1e-4) for d in (0.625, 0.125, -0.375, -0.375)],
    "igpo": [d / (DEVIATION + 1e-6) for d in (0.625, 0.125, -0.375, -0.375)],
    **dict.fromkeys(CRITICS, whiten([(r, 1) for r in OUTCOMES])),
    "gtpo": [1.0, 1.0, -1.0, -1.0],  # by polarity
    "grpo_s": [1.0, 1.0, -1.0, -1.0],
    "gtpo_trajectory": [a - 0.05 for a in z(OUTCOMES)],
}


@pytest.mark.parametrize("name", sorted(set(TURN_ESTIMATORS) - {*BY_Z, *BY_GROUP}))
def test_single_turn_is_what_the_matrix_says(name):
    turns = single_turns(OUTCOMES)
    advantages = by_turn(advantages_of(TURN_ESTIMATORS[name](turns)), turns)
    assert advantages == close([[a] for a in OF_SINGLE_TURNS[name]], abs=1e-6)


@pytest.mark.parametrize("name", CRITICS)
def test_single_turn_is_one_delta_of_a_critic(name):
    advantages = credit(name, [Completion((Turn(1.0, (Token(value=0.25),)),))], **AS_IT_IS)
    assert advantages == [[0.75]]


# Truncated: one completion went on to c and 1, the other was cut off at b with 0 and a critic that expects 0.5.

AHEAD = z([0.95, 0.0])[0]
OF_THE_CUT = {
    "outcome": [[UP] * 3, [-UP] * 2],  # judged at its last turn
    "discounted": standardized([[0.9025, 0.95, 1.0], [0.0] * 2]),
    "process": standardized([[0.9025, 0.95, 1.0], [0.0] * 2]),
    "milestone": [[0.45125, 0.475, 0.0], [-0.45125, -0.475]],
    "local": [[0.0, 0.0, 1.0], [0.0] * 2],
    "mt_grpo": [[UP] * 3, [-UP] * 2],
    "kevin": standardized([[0.16, 0.4, 1.0], [0.0] * 2]),
    "gtpo_turn": standardized([[0.81, 0.9, 1.0], [0.0] * 2]),
    "turn_rtg": [[UP, UP, 0.0], [-UP] * 2],
    "gigpo": [[UP, UP + AHEAD, UP], [-UP, -UP - AHEAD]],  # the return from the cut
    "gigpo_similar": [[UP, UP + AHEAD, UP], [-UP, -UP - AHEAD]],
    "hgpo": [[0.45125 / 0.45135, 0.475 / 0.4751, 0.0], [-0.45125 / 0.45135, -0.475 / 0.4751]],
    "salt": [[0.0, UP, UP], [0.0, -UP]],  # shared up to the cut
    "spa_rl": [[UP, UP, 0.0], [-UP, -UP]],
    "igpo": [[0.999998] * 3, [-0.999998] * 2],
    "turn_ppo": [[0.3874855, 0.4405, 0.5], [-0.009455, -0.005]],
    "step_ppo": [[0.4801, 0.49, 0.5], [-0.5, -0.5]],  # expects nothing behind it
    "ppo": [[0.5 * 0.95**k for k in (5, 4, 3, 2, 1, 0)], [0.0] * 4],
    "bilevel_gae": [[0.4025, 0.4025, 0.45, 0.45, 0.5, 0.5], [-0.04875, -0.04875, -0.025, -0.025]],
    "gtpo": [[1.5**-0.5] * 6, [-(1.5**0.5)] * 4],
    "grpo_s": [[1.0] * 6, [-1.0] * 4],
    "gtpo_trajectory": [[2 * (UP - 0.05)] * 6, [0.0] * 4],
}


@pytest.mark.parametrize("name", TURN_ESTIMATORS)
def test_truncated(name):
    tokens = (Token(value=0.5),) * 2
    full = Turn(None, tokens), Turn(None, tokens, "b"), Turn(1.0, tokens, "c", contribution=1.0)
    cut = Turn(None, tokens), Turn(0.0, tokens, "b")
    options = AS_IT_IS if name in CRITICS else {}
    advantages = credit(name, [Completion(full), Completion(cut, end=0.5)], **options)
    assert advantages == close(OF_THE_CUT[name], abs=1e-6)
