"""GSPO-token: value of the sequence ratio, gradient of each token's own advantage."""

import pytest
import torch
from torch.testing import assert_close

from acpo_trl.ratio import gspo_token_old_log_probs

LOG_PROBS = [[-1.0, -2.0, -0.5], [-0.7, -0.3, -1.1]]
OLD = [[-1.001, -2.0005, -0.4995], [-0.7, -0.3003, -1.1]]
MASK = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
SEGMENTS = torch.tensor([[0, 0, 0], [0, 0, -1]])


def clip_loss(log_probs, old, advantages, mask, low, high):
    """Mean over rows of token means of PPO's clipped objective."""
    ratio = torch.exp(log_probs - old)
    value = torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)
    return -((value * mask).sum(-1) / mask.sum(-1)).mean()


@pytest.mark.parametrize(
    ("advantages", "epsilons", "loss", "gradient"),
    [
        (
            [[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]],
            (0.0003, 0.0004),
            -9.16888e-05,
            [[-0.166722, -0.166722, -0.166722], [0.250038, 0.250038, 0.0]],
        ),
        (
            [[1.0, -0.5, 0.5], [-1.0, 0.3, 0.0]],
            (0.5, 0.5),
            None,
            [[-0.166722, 0.0833611, -0.0833611], [0.250038, -0.0750113, 0.0]],
        ),
    ],
)
def test_value_and_gradient_match_worked_numbers(advantages, epsilons, loss, gradient):
    log_probs = torch.tensor(LOG_PROBS, dtype=torch.float64, requires_grad=True)
    old = gspo_token_old_log_probs(log_probs, torch.tensor(OLD, dtype=torch.float64), SEGMENTS)
    value = clip_loss(log_probs, old, torch.tensor(advantages, dtype=torch.float64), MASK, *epsilons)
    value.backward()
    if loss is not None:
        assert value.item() == pytest.approx(loss, abs=1e-8)
    assert_close(log_probs.grad, torch.tensor(gradient, dtype=torch.float64), rtol=1e-4, atol=1e-6)


def test_a_clipped_sequence_stops_one_sign_only():
    log_probs = torch.tensor([[-1.0, -2.0, -0.5, -0.4, -0.9]], dtype=torch.float64, requires_grad=True)
    old = torch.tensor([[-1.01, -2.0, -0.49, -0.4, -0.905]], dtype=torch.float64)
    mask = torch.tensor([[1.0, 1.0, 0.0, 1.0, 1.0]])
    advantages = torch.tensor([[0.8, 0.8, 0.0, -0.4, -0.4]], dtype=torch.float64)
    value = clip_loss(
        log_probs, gspo_token_old_log_probs(log_probs, old, mask.long() - 1), advantages, mask, 3e-4, 4e-4
    )
    value.backward()
    assert value.item() == pytest.approx(-0.199409, abs=1e-6)
    assert log_probs.grad[0].tolist() == pytest.approx([0.0, 0.0, 0.0, 0.100376, 0.100376], abs=1e-6)


def test_environment_tokens_do_not_move_the_sequence_ratio():
    log_probs, old = torch.tensor([[-1.0, -2.0]]), torch.tensor([[-1.5, 7.0]])
    got = gspo_token_old_log_probs(log_probs, old, torch.tensor([[0, -1]]))
    assert (log_probs - got)[0, 0].item() == pytest.approx(0.5)


def test_a_row_without_action_tokens_has_ratio_one():
    log_probs = torch.tensor([[-1.0, -2.0]])
    got = gspo_token_old_log_probs(log_probs, torch.tensor([[-5.0, -5.0]]), torch.full((1, 2), -1))
    assert got.tolist() == log_probs.tolist()


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("mean", [1.023608, 1.023608, 1.0, 1.023608, 1.221403, 1.221403]),
        ("sum", [1.072508, 1.072508, 1.0, 1.072508, 1.491825, 1.491825]),
    ],
)
def test_turns_have_ratios_of_their_own(reduction, expected):
    log_ratio = torch.tensor([[0.1, -0.05, 9.0, 0.02, 0.3, 0.1]], dtype=torch.float64)
    turn_ids = torch.tensor([[0, 0, -1, 0, 2, 2]])  # turn 1 has no token
    log_probs = torch.full_like(log_ratio, -1.0)
    ratio = torch.exp(log_probs - gspo_token_old_log_probs(log_probs, log_probs - log_ratio, turn_ids, reduction))
    assert ratio[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_clipped_turn_stops_no_other_turn():
    log_probs = torch.tensor([[-1.0, -2.0, -0.5, -0.4, -0.9]], dtype=torch.float64, requires_grad=True)
    old = torch.tensor([[-1.01, -2.0, -0.49, -0.4, -0.9]], dtype=torch.float64)
    turn_ids, mask = torch.tensor([[0, 0, -1, 1, 1]]), torch.tensor([[1.0, 1.0, 0.0, 1.0, 1.0]])
    advantages = torch.tensor([[0.8, 0.8, 0.0, 0.4, 0.4]], dtype=torch.float64)
    clip_loss(log_probs, gspo_token_old_log_probs(log_probs, old, turn_ids), advantages, mask, 3e-4, 4e-4).backward()
    assert log_probs.grad[0].tolist() == pytest.approx([0.0, 0.0, 0.0, -0.1, -0.1], abs=1e-9)


SEGMENT_LOG_PROBS = [[-1.0, -2.0, -0.5, -0.4, -0.9, -0.2], [-0.7, -0.3, -1.1, -0.6, -0.8, -1.3]]
SEGMENT_LOG_RATIOS = [[0.1, -0.05, 9.0, 0.02, 0.3, 0.1], [-0.2, 0.05, 0.1, 9.0, 0.3, 0.1]]
SEGMENT_IDS = torch.tensor([[0, 0, -1, 0, 2, 2], [0, 0, 0, -1, 1, 1]])  # turn 1 of the first row has no token
TURN_ADVANTAGES = [(0, 0, 0.8), (0, 2, 0.5), (1, 0, -0.4), (1, 1, -1.2)]
TOKEN_ADVANTAGES = [[0.8, 0.8, 0.0, 0.8, 0.5, 0.5], [-0.4, -0.4, -0.4, 0.0, -1.2, -1.2]]


def clipped_terms(ratio, advantages):
    return torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)


def token_terms(reduction, over):
    """Value and gradient of the clipped token terms, added up or averaged over each turn, added up over turns."""
    log_probs = torch.tensor(SEGMENT_LOG_PROBS, dtype=torch.float64, requires_grad=True)
    old = log_probs.detach() - torch.tensor(SEGMENT_LOG_RATIOS, dtype=torch.float64)
    advantages = torch.tensor(TOKEN_ADVANTAGES, dtype=torch.float64)
    terms = clipped_terms(
        torch.exp(log_probs - gspo_token_old_log_probs(log_probs, old, SEGMENT_IDS, reduction)), advantages
    )
    value = sum(over(terms[row, SEGMENT_IDS[row] == turn]) for row, turn, _ in TURN_ADVANTAGES)
    value.backward()
    return value.item(), log_probs.grad


def turn_terms(over, divide):
    """Value and gradient of the sum over turns of their clipped terms, with the ratio exp(over(log-ratios))."""
    log_probs = torch.tensor(SEGMENT_LOG_PROBS, dtype=torch.float64, requires_grad=True)
    log_ratio = log_probs - (log_probs.detach() - torch.tensor(SEGMENT_LOG_RATIOS, dtype=torch.float64))
    value = 0.0
    for row, turn, advantage in TURN_ADVANTAGES:
        of_turn = log_ratio[row, SEGMENT_IDS[row] == turn]
        value += clipped_terms(torch.exp(over(of_turn)), advantage) / (len(of_turn) if divide else 1)
    value.backward()
    return value.item(), log_probs.grad


def test_token_terms_added_up_have_the_gradient_of_the_exact_turn_ratio():
    _, gradient = token_terms("sum", torch.sum)
    _, expected = turn_terms(torch.sum, divide=False)
    # a rise of an advantage above 0 is clipped, of one below 0 it is not
    assert (expected != 0).tolist() == [[True, True, False, True, False, False], [True, True, True, False, True, True]]
    assert_close(gradient, expected, rtol=0, atol=1e-12)


def test_token_terms_averaged_over_the_turn_have_the_value_of_the_exact_ratio_and_its_gradient_by_length():
    value, gradient = token_terms("sum", torch.mean)
    assert value == pytest.approx(turn_terms(torch.sum, divide=False)[0], abs=1e-12)
    assert_close(gradient, turn_terms(torch.sum, divide=True)[1], rtol=0, atol=1e-12)


def test_token_terms_averaged_over_the_turn_are_the_mean_ratio_in_value_and_gradient():
    value, gradient = token_terms("mean", torch.mean)
    expected_value, expected = turn_terms(torch.mean, divide=False)
    assert value == pytest.approx(expected_value, abs=1e-12)
    assert_close(gradient, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("reduction", "is_clipped"), [("sum", True), ("mean", False)])
def test_ratio_of_a_long_turn_leaves_the_gradient_finite(reduction, is_clipped):
    log_probs = torch.full((1, 1000), -0.5, requires_grad=True)
    old = gspo_token_old_log_probs(log_probs, torch.full((1, 1000), -0.6), torch.zeros(1, 1000).long(), reduction)
    clip_loss(log_probs, old, torch.ones(1, 1000), torch.ones(1, 1000), 0.2, 0.2).backward()
    expected = 0.0 if is_clipped else -torch.tensor(0.1).exp().item() / 1000
    assert log_probs.grad[0].tolist() == pytest.approx([expected] * 1000, rel=1e-4)


def test_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction 'max': no such choice; expected 'mean' or 'sum'"):
        gspo_token_old_log_probs(torch.zeros(1, 1), torch.zeros(1, 1), torch.zeros(1, 1).long(), "max")
