"""ACPOLoss against the naive reference and worked numbers."""

import pytest
import torch
from reference.acpo import loss_and_gradient
from torch.testing import assert_close

from acpo_trl import ACPOLoss
from acpo_trl.credit import CREDIT_RULES, Gate
from acpo_trl.credit.acpo import acpo

RULES = ["acpo", "acpo_live", "acpo_as_written", "uniform"]


def random_batch(seed, vocab_size=7):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, 4, vocab_size, generator=generator, dtype=torch.float64) * 2
    tokens = torch.where(
        torch.rand(3, 4, generator=generator) < 0.5,
        logits.argmax(-1),
        torch.randint(0, vocab_size, (3, 4), generator=generator),
    )
    log_probs = logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    old = log_probs + 0.3 * torch.randn(3, 4, generator=generator, dtype=torch.float64)
    advantages = torch.tensor([1.3, -0.6, 0.8], dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 1]])
    return logits.requires_grad_(), tokens, old, advantages, mask


@pytest.mark.parametrize("gate", ["clip", "sapo"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("rule", RULES)
def test_loss_and_gradient_equal_the_naive_reference(rule, temperature, gate):
    logits, tokens, old, advantages, mask = random_batch(0)
    loss, _ = ACPOLoss(rule, gate, temperature=temperature)(logits, old, tokens, advantages, mask)
    loss.backward()
    expected, gradient = loss_and_gradient(
        rule, logits.tolist(), tokens.tolist(), advantages.tolist(), mask.tolist(), old.tolist(), gate, temperature
    )
    assert loss.item() == pytest.approx(expected, rel=1e-9)
    assert_close(logits.grad, torch.tensor(gradient, dtype=torch.float64), rtol=1e-7, atol=1e-12)


# All four branches with clipping active; worked out by hand in double precision.
LOGITS = [
    [[0.2, 0.0, 3.6, 2.8, 2.2], [3.8, 1.2, 1.4, -1.6, -1.6], [1.6, 1.0, 4.0, 0.8, 1.2], [-2.0, 0.2, -0.6, 1.0, 3.4]],
    [
        [3.0, 3.8, -2.8, 1.4, -2.0],
        [1.6, 1.8, -1.6, 0.4, 1.0],
        [-1.4, 1.6, -0.8, -4.0, 0.2],
        [1.6, 1.4, -0.6, -3.4, -0.8],
    ],
]
OLD = [
    [-0.5633931706, -2.6604377547, -0.6167852104, -2.5435048222],
    [-6.1846580442, -0.4353204924, -0.3298790128, -1.0065518412],
]


@pytest.mark.parametrize(
    ("rule", "norm", "row1_token1"),
    [
        ("acpo_live", 0.5615427494, [-0.0201767879, 0.038149626, -0.0008224503, -0.0060771317, -0.011073256]),
        ("acpo_as_written", 0.5738469264, [0.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_listing_matches_worked_numbers_with_and_without_gradient_through_delta(rule, norm, row1_token1):
    logits = torch.tensor(LOGITS, dtype=torch.float64, requires_grad=True)
    loss, delta = ACPOLoss(rule)(
        logits,
        torch.tensor(OLD, dtype=torch.float64),
        torch.tensor([[2, 1, 2, 3], [4, 1, 1, 0]]),
        torch.tensor([1.5, -1.2], dtype=torch.float64),
        torch.tensor([[1, 1, 1, 0], [1, 1, 0, 1]]),
    )
    loss.backward()
    assert loss.item() == pytest.approx(-0.8012162801, abs=1e-9)
    assert logits.grad.norm().item() == pytest.approx(norm, abs=1e-9)
    assert logits.grad[1, 1].tolist() == pytest.approx(row1_token1, abs=1e-9)
    mean = (0.43072586 + 0.14822916 + 0.19489712 + 0.35251396 + 0.60753994 + 0.50665761) / 6
    assert delta.item() == pytest.approx(mean, abs=1e-8)


FULL_LOGITS = [
    [[2.0, 0.5, -1.0, 0.0], [0.2, 0.1, 0.0, -0.3], [1.0, 3.0, 0.0, -1.0]],
    [[0.0, 1.5, 0.3, -0.5], [2.5, 0.0, -0.5, 0.1], [0.0, 0.0, 0.0, 0.0]],
]
FULL_OLD = [[-0.34235, -1.403002, -0.135182], [-0.406613, -3.500972, -1.386294]]


def closed_form_everywhere(stats, advantages):
    """3 delta / 3 (1 - delta) on every token, whatever the loss."""
    return acpo(type(stats)(**{**stats.__dict__, "gate": Gate(2.0, 2.0)}), advantages)


@pytest.mark.parametrize(
    ("rule", "gate", "loss", "first", "routed", "last"),
    [
        (
            "acpo_live",
            "sapo",
            -0.772136,
            [-0.0336168, 0.0183733, 0.00409963, 0.0111439],
            [0.0926295, -0.224651, 0.0758386, 0.0561826],
            [-0.392979, -0.0322577, 0.460887, -0.0356502],
        ),
        (
            "closed_form",
            "clip",
            0.252581,
            [-0.0336168, 0.0183733, 0.00409963, 0.0111439],
            [0.0928858, -0.225272, 0.0760485, 0.0563381],
            [-0.406386, -0.0333582, 0.476611, -0.0368665],
        ),
    ],
)
def test_end_to_end_vectors_from_logits_to_gradient(monkeypatch, rule, gate, loss, first, routed, last):
    monkeypatch.setitem(CREDIT_RULES, "closed_form", closed_form_everywhere)
    logits = torch.tensor(FULL_LOGITS, dtype=torch.float64, requires_grad=True)
    module, total = ACPOLoss(rule, gate), 0.0
    for row, mask in [(0, [1, 1, 1]), (1, [1, 1, 0])]:  # the vectors are a mean of per-row token means
        value, _ = module(
            logits[row : row + 1],
            torch.tensor(FULL_OLD[row : row + 1], dtype=torch.float64),
            torch.tensor([[0, 1, 1], [1, 2, 0]])[row : row + 1],
            torch.tensor([0.8, -0.6], dtype=torch.float64)[row : row + 1],
            torch.tensor([mask]),
        )
        total = total + value / 2
    total.backward()
    assert total.item() == pytest.approx(loss, abs=1e-5)
    assert logits.grad[0, 0].tolist() == pytest.approx(first, abs=1e-5)
    assert logits.grad[0, 1].tolist() == pytest.approx(routed, abs=1e-5)
    assert logits.grad[1, 1].tolist() == pytest.approx(last, abs=1e-5)
    assert logits.grad[1, 2].tolist() == [0.0] * 4


def test_confident_tokens_do_not_jump_below_a_clamp_floor():
    # A clamp of delta at 1e-6 would give 2.000001 here.
    logits = torch.tensor([[[16.0, 0.0, 0.0, 0.0]]], dtype=torch.float64, requires_grad=True)
    loss, delta = ACPOLoss("acpo_live", "sapo")(logits, None, torch.tensor([[0]]), torch.ones(1), torch.ones(1, 1))
    loss.backward()
    assert delta.item() == pytest.approx(3.376054e-07, rel=1e-6)
    assert (-logits.grad[0, 0, 0] / delta).item() == pytest.approx(1.01282e-06, rel=1e-4)


def test_every_token_of_a_tie_counts_as_the_mode():
    logits = torch.full((1, 1, 4), 0.5, dtype=torch.float64)
    for token in range(4):
        loss, _ = ACPOLoss("acpo_as_written")(logits, None, torch.tensor([[token]]), torch.ones(1), torch.ones(1, 1))
        assert loss.item() == pytest.approx(-2.75)


def test_old_logits_and_old_log_probabilities_give_the_same_loss():
    logits, tokens, _, advantages, mask = random_batch(3)
    old_logits = logits.detach() + torch.linspace(-1, 1, 7)
    old = (old_logits / 0.7).log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    module = ACPOLoss(temperature=0.7)
    assert_close(module(logits, old_logits, tokens, advantages, mask), module(logits, old, tokens, advantages, mask))


def test_advantages_per_token_decide_the_branch_per_token():
    logits, tokens, old, _, mask = random_batch(4)
    advantages = torch.tensor([[1.0, -1.0, 0.5, -0.5]] * 3, dtype=torch.float64)
    loss, _ = ACPOLoss()(logits, old, tokens, advantages, mask)
    args = (logits.tolist(), tokens.tolist(), advantages.tolist(), mask.tolist(), old.tolist())
    assert loss.item() == pytest.approx(loss_and_gradient("acpo", *args, "clip")[0], rel=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_padding_does_not_change_the_loss(rule):
    logits, tokens, old, advantages, mask = random_batch(5)
    pad = torch.nn.functional.pad
    longer = pad(logits.detach(), (0, 0, 0, 3), value=9.0), pad(old, (0, 3), value=-50.0), pad(tokens, (0, 3), value=2)
    module = ACPOLoss(rule)
    assert_close(
        module(longer[0], longer[1], longer[2], advantages, pad(mask, (0, 3))),
        module(logits.detach(), old, tokens, advantages, mask),
    )


def test_a_batch_without_action_tokens_has_loss_zero_and_gradient_zero():
    logits, tokens, old, advantages, mask = random_batch(6)
    loss, delta = ACPOLoss()(logits, old, tokens, advantages, torch.zeros_like(mask))
    loss.backward()
    assert (loss.item(), delta.item(), logits.grad.abs().sum().item()) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gate": "ppo"}, "gate 'ppo'"),
        ({"credit_rule": "acop"}, "did you mean 'acpo'"),
        ({"temperature": 0.0}, "temperature 0.0"),
        ({"sapo_temperature_neg": -1.0}, "sapo_temperature_neg -1.0"),
    ],
)
def test_wrong_options_are_refused_with_the_option_named(change, message):
    with pytest.raises(ValueError, match=message):
        ACPOLoss(**change)


def test_shapes_that_do_not_fit_are_refused_with_the_argument_named():
    logits, tokens, old, _, mask = random_batch(7)
    with pytest.raises(ValueError, match=r"advantages of shape \(4,\)"):
        ACPOLoss()(logits, old, tokens, torch.ones(4), mask)
    with pytest.raises(ValueError, match=r"old of shape \(3, 5\)"):
        ACPOLoss()(logits, torch.zeros(3, 5), tokens, torch.ones(3), mask)
