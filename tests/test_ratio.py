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


def test_turns_have_ratios_of_their_own():
    log_ratio = torch.tensor([[0.1, -0.05, 9.0, 0.02, 0.3, 0.1]], dtype=torch.float64)
    turn_ids = torch.tensor([[0, 0, -1, 0, 2, 2]])  # turn 1 has no token
    log_probs = torch.full_like(log_ratio, -1.0)
    ratio = torch.exp(log_probs - gspo_token_old_log_probs(log_probs, log_probs - log_ratio, turn_ids))
    expected = [1.023608, 1.023608, 1.0, 1.023608, 1.221403, 1.221403]
    assert ratio[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_clipped_turn_stops_no_other_turn():
    log_probs = torch.tensor([[-1.0, -2.0, -0.5, -0.4, -0.9]], dtype=torch.float64, requires_grad=True)
    old = torch.tensor([[-1.01, -2.0, -0.49, -0.4, -0.9]], dtype=torch.float64)
    turn_ids, mask = torch.tensor([[0, 0, -1, 1, 1]]), torch.tensor([[1.0, 1.0, 0.0, 1.0, 1.0]])
    advantages = torch.tensor([[0.8, 0.8, 0.0, 0.4, 0.4]], dtype=torch.float64)
    clip_loss(log_probs, gspo_token_old_log_probs(log_probs, old, turn_ids), advantages, mask, 3e-4, 4e-4).backward()
    assert log_probs.grad[0].tolist() == pytest.approx([0.0, 0.0, 0.0, -0.1, -0.1], abs=1e-9)
