"""Credit rules against worked numbers and properties."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from acpo_trl.credit import CREDIT_RULES, Gate, TokenStats
from acpo_trl.credit.blend import mix, normalize_by_sign
from acpo_trl.credit.stats import surrogate
from acpo_trl.credit.surrogate import entropy_bounds

DELTAS = [0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9]


def stats_of(delta, on_mode, gate=Gate()):  # noqa: B008
    delta = torch.tensor([delta], dtype=torch.float64)
    mode = torch.log1p(-delta)
    # Off the mode the sampled token has some smaller probability; the rules must not look at it.
    log_probs = (mode.clone() if on_mode else mode - 1.0).requires_grad_()
    is_mode = torch.full(delta.shape, on_mode)
    return TokenStats(log_probs, mode, is_mode, torch.zeros_like(mode), torch.ones_like(is_mode), gate)


def credit(rule, delta, on_mode, advantage, gate=Gate()):  # noqa: B008
    return CREDIT_RULES[rule](stats_of(delta, on_mode, gate), torch.full((1, len(delta)), advantage))[0].tolist()


@pytest.mark.parametrize(
    ("on_mode", "advantage", "expected"),
    [
        (True, 1.0, [2.0, 2.01, 2.1, 2.3, 2.5, 2.7, 2.9]),
        (True, -1.0, [1.0, 0.99, 0.9, 0.7, 0.5, 0.3, 0.1]),
        (False, 1.0, [0.0, 0.03, 0.3, 0.9, 1.5, 2.1, 2.7]),
        (False, -1.0, [3.0, 2.97, 2.7, 2.1, 1.5, 0.9, 0.3]),
    ],
)
@pytest.mark.parametrize("rule", ["acpo_as_written", "acpo_live"])
def test_listed_branches_have_the_listed_values(rule, on_mode, advantage, expected):
    assert credit(rule, DELTAS, on_mode, advantage) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("gate", "on_mode", "advantage", "expected"),
    [
        (Gate(1, 1), True, 1.0, [1.1, 1.6, 2.6]),  # clip: 1 + 2 delta
        (Gate(1, 1), True, -1.0, [1.9, 1.4, 0.4]),  # clip: 2 (1 - delta)
        (Gate(2, 2), True, 1.0, [0.15, 0.9, 2.4]),  # sapo, tau 1: 3 delta
        (Gate(2, 2), True, -1.0, [2.85, 2.1, 0.6]),  # sapo, tau 1: 3 (1 - delta)
        (Gate(2, 2 / 1.05), True, -1.0, [2.759524, 2.033333, 0.580952]),  # sapo, tau 1.05
        (Gate(1, 1), False, 1.0, [0.15, 0.9, 2.4]),
        (Gate(1, 1), False, -1.0, [2.85, 2.1, 0.6]),
    ],
)
def test_acpo_has_the_on_policy_coefficient_of_the_configured_gate(gate, on_mode, advantage, expected):
    assert credit("acpo", [0.05, 0.3, 0.8], on_mode, advantage, gate) == pytest.approx(expected, abs=1e-6)


def test_acpo_is_zero_rather_than_negative_under_a_sharp_sapo_gate():
    assert credit("acpo", [0.0, 0.1], True, 1.0, Gate(4.0, 4.0)) == [0.0, 0.0]


def test_advantage_zero_takes_the_non_positive_branch():
    assert credit("acpo_as_written", [0.3], True, 0.0) == pytest.approx([0.7])


@pytest.mark.parametrize(("rule", "carries"), [("acpo", False), ("acpo_as_written", False), ("acpo_live", True)])
def test_only_the_live_rule_carries_gradient(rule, carries):
    stats = stats_of([0.3], True)
    assert CREDIT_RULES[rule](stats, torch.ones(1, 1)).requires_grad is carries


def test_live_delta_moves_with_the_sampled_token_on_the_mode_only():
    for on_mode, expected in [(True, -0.7), (False, 0.0)]:
        stats = stats_of([0.3], on_mode)
        CREDIT_RULES["acpo_live"](stats, torch.ones(1, 1)).sum().backward()
        assert stats.log_probs.grad.item() == pytest.approx(expected)


@given(st.floats(0, 0.999), st.floats(-3, 3), st.booleans(), st.floats(1.0, 4.0))
def test_every_rule_gives_non_negative_credit(delta, advantage, on_mode, gate):
    for rule in CREDIT_RULES:
        assert credit(rule, [delta], on_mode, advantage, Gate(gate, gate))[0] >= 0


def test_surrogate_keeps_digits_that_one_minus_exp_loses():
    assert surrogate(torch.tensor([-3.376054e-07])).item() == pytest.approx(3.376053e-07, rel=1e-6)
    assert surrogate(torch.tensor([-1e-3], dtype=torch.bfloat16)).dtype == torch.float32
    assert surrogate(torch.tensor([1e-6])).item() == 0.0  # rounding above log 1


@pytest.mark.parametrize(
    ("p", "delta", "lower", "upper"),
    [
        ([0.7, 0.1, 0.1, 0.1], 0.3, 0.356675, 0.940448),
        ([0.5, 0.5, 0.0, 0.0], 0.5, 0.693147, 1.242453),
        ([0.25, 0.25, 0.25, 0.25], 0.75, 1.386294, 1.386294),
        ([0.97, 0.01, 0.01, 0.01], 0.03, 0.0304592, 0.167701),
        ([1.0, 0.0, 0.0, 0.0], 0.0, 0.0, 0.0),
        ([0.4, 0.3, 0.2, 0.1], 0.6, 0.916291, 1.332179),
    ],
)
def test_entropy_bounds_match_worked_numbers(p, delta, lower, upper):
    got = entropy_bounds(torch.tensor(delta, dtype=torch.float64), len(p))
    assert [x.item() for x in got] == pytest.approx([lower, upper], abs=1e-6)


@settings(max_examples=50)
@given(st.integers(0, 2**31), st.sampled_from([2, 3, 10, 1000]), st.floats(0.05, 5))
def test_entropy_lies_within_its_bounds(seed, vocab_size, concentration):
    torch.manual_seed(seed)
    p = torch.distributions.Dirichlet(torch.full((vocab_size,), concentration, dtype=torch.float64)).sample((20,))
    entropy = -torch.special.xlogy(p, p).sum(-1)
    lower, upper = entropy_bounds((1 - p.amax(-1)).clamp(min=0), vocab_size)
    assert (entropy >= lower - 1e-9).all()
    assert (entropy <= upper + 1e-9).all()


def test_entropy_bounds_refuse_a_vocabulary_of_one():
    with pytest.raises(ValueError, match="expected at least 2"):
        entropy_bounds(torch.tensor(0.0), 1)


def test_mix_interpolates_between_uniform_and_the_rule():
    assert_close(mix(torch.tensor([0.0, 3.0]), 0.25), torch.tensor([0.75, 1.5]))
    rule = torch.tensor([0.1, 2.9])
    assert mix(rule, 1.0) is rule


def test_sign_normalization_makes_the_mean_of_each_sign_one_and_ignores_masked_tokens():
    credit = torch.tensor([[1.0, 3.0, 50.0], [0.5, 1.5, 7.0]])
    advantages = torch.tensor([[1.0, 1.0, 1.0], [-2.0, -2.0, 0.0]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    got = normalize_by_sign(credit, advantages, mask, lambda x: x)
    assert_close(got, torch.tensor([[0.5, 1.5, 50.0], [0.5, 1.5, 7.0]]))


def test_sign_normalization_uses_the_tokens_of_all_ranks():
    credit = torch.tensor([[1.0, 3.0]])
    advantages = torch.ones(1, 2)
    mask = torch.ones(1, 2, dtype=torch.bool)
    other_rank = torch.tensor([[16.0, 2.0], [0.0, 0.0]])  # two tokens of credit 8
    got = normalize_by_sign(credit, advantages, mask, lambda x: x + other_rank)
    assert_close(got, torch.tensor([[0.2, 0.6]]))


def test_sign_normalization_leaves_a_sign_without_credit_alone():
    credit = torch.zeros(1, 2)
    got = normalize_by_sign(credit, torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool), lambda x: x)
    assert_close(got, credit)
