"""The multiplier of A * grad log pi(y) on a token that is the mode, on and off policy."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.acpo import token_value_and_slope

from acpo_trl import ACPOLoss


def coefficient(rule, gate, delta, ratio, advantage, **options):
    """Multiplier of A * grad log pi(y) on a token that is the mode, read off the module's gradient."""
    logits = torch.tensor([[[math.log((1 - delta) / delta), 0.0]]], dtype=torch.float64, requires_grad=True)
    old = torch.log_softmax(logits.detach(), -1)[..., 0] - math.log(ratio)
    loss, _ = ACPOLoss(rule, gate, **options)(
        logits, old, torch.tensor([[0]]), torch.tensor([advantage], dtype=torch.float64), torch.ones(1, 1)
    )
    loss.backward()
    return (-logits.grad[0, 0, 0] / (advantage * delta)).item()  # d log pi(y) / d z_y = delta


@pytest.mark.parametrize(
    ("delta", "ratio", "positive", "negative"),
    [
        (0.01, 0.8, -0.190631, 2.471771),
        (0.01, 1.0, 0.03, 2.875714),
        (0.01, 2.0, 0.266528, 4.314637),
        (0.01, 3.0, -0.955511, 4.514651),
        (0.01, 5.0, -3.178734, 4.003913),
        (0.1, 0.8, 0.0427138, 2.247064),
    ],
)
def test_live_rule_under_sapo_reverses_updates_off_policy(delta, ratio, positive, negative):
    assert coefficient("acpo_live", "sapo", delta, ratio, 1.0) == pytest.approx(positive, abs=1e-5)
    assert coefficient("acpo_live", "sapo", delta, ratio, -1.0) == pytest.approx(negative, abs=1e-5)


@pytest.mark.parametrize(("ratio", "positive"), [(0.8, 0.0237616), (1.0, 0.03), (2.0, 0.0471869), (5.0, 0.0105976)])
def test_acpo_under_sapo_keeps_the_soft_trust_region(ratio, positive):
    assert coefficient("acpo", "sapo", 0.01, ratio, 1.0) == pytest.approx(positive, abs=1e-6)


@pytest.mark.parametrize(("delta", "threshold"), [(0.01, 2.300244), (0.1, 2.641709), (0.5, 3.924323), (0.9, 6.183605)])
def test_live_rule_under_sapo_turns_negative_at_the_worked_ratio(delta, threshold):
    if delta > 0.5:  # with two tokens the mode cannot have less than half; use the reference there
        logits = [math.log(1 - delta)] + [math.log(delta / 99)] * 99
        log_prob = math.log(1 - delta)
        slopes = [
            token_value_and_slope("acpo_live", logits, 0, 1.0, log_prob - math.log(r), "sapo")[1]
            for r in (threshold - 1e-3, threshold + 1e-3)
        ]
    else:
        slopes = [coefficient("acpo_live", "sapo", delta, r, 1.0) for r in (threshold - 1e-3, threshold + 1e-3)]
    assert slopes[0] > 0 > slopes[1]


def test_live_rule_leaks_through_the_clip_and_acpo_does_not():
    delta, up, down = 0.3, math.exp(0.5), math.exp(-0.5)
    assert coefficient("acpo_live", "clip", delta, up, 1.0) == pytest.approx(-1.2 * 0.7, abs=1e-9)
    assert coefficient("acpo_live", "clip", delta, down, -1.0) == pytest.approx(0.8 * 0.7, abs=1e-9)
    assert coefficient("acpo", "clip", delta, up, 1.0) == 0.0
    assert coefficient("acpo", "clip", delta, down, -1.0) == 0.0


@settings(max_examples=100, deadline=None)
@given(st.floats(0.001, 0.5), st.floats(0.1, 10), st.sampled_from([1.0, -1.0]), st.sampled_from(["clip", "sapo"]))
def test_acpo_never_reverses_an_update_off_policy(delta, ratio, advantage, gate):
    assert coefficient("acpo", gate, delta, ratio, advantage) >= 0


@settings(max_examples=50, deadline=None)
@given(st.floats(0.001, 0.5), st.sampled_from([1.0, -1.0]), st.sampled_from(["clip", "sapo"]))
def test_acpo_equals_the_live_rule_at_ratio_one(delta, advantage, gate):
    live = coefficient("acpo_live", gate, delta, 1.0, advantage)
    assert coefficient("acpo", gate, delta, 1.0, advantage) == pytest.approx(live, rel=1e-9)
