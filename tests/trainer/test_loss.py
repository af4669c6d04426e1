"""The trainer's loss: GRPO where credit is uniform, the naive reference elsewhere."""

import copy

import pytest
import torch
from reference.acpo import loss_and_gradient
from tiny import loss_and_gradients, make_batch, qwen2
from torch.testing import assert_close
from trl import GRPOConfig, GRPOTrainer

from acpo_trl.credit import CREDIT_RULES

LOSSES = ["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo"]
RULES = ["acpo", "acpo_live", "acpo_as_written", "uniform"]


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("loss_type", LOSSES)
def test_uniform_credit_is_bit_identical_to_grpo(make_trainer, loss_type, level):
    settings = {"loss_type": loss_type, "importance_sampling_level": level, "beta": 0.0}
    inputs = make_batch(qwen2())
    ours = loss_and_gradients(make_trainer(credit_rule="uniform", **settings), inputs)
    theirs = loss_and_gradients(make_trainer(cls=GRPOTrainer, config_cls=GRPOConfig, **settings), inputs)
    assert ours[0].item() == theirs[0].item() != 0.0
    assert ours[1].keys() == theirs[1].keys()
    assert all(torch.equal(ours[1][name], theirs[1][name]) for name in theirs[1])


def test_credit_mix_zero_is_bit_identical_to_grpo(make_trainer):
    inputs = make_batch(qwen2())
    ours = loss_and_gradients(make_trainer(credit_mix=0.0), inputs)
    theirs = loss_and_gradients(make_trainer(cls=GRPOTrainer, config_cls=GRPOConfig), inputs)
    assert all(torch.equal(ours[1][name], theirs[1][name]) for name in theirs[1])


def reference_loss_and_gradients(rule, inputs, loss_type, temperature, credit_mix=1.0):
    """The naive loss on float64 full logits, its gradient pushed through a float64 copy of the model."""
    model = qwen2().double().train()
    length = inputs["completion_ids"].size(1)
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
    mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
    logits = model(ids, attention_mask=mask).logits[:, -length - 1 : -1]
    action_mask = (inputs["completion_mask"] * inputs["tool_mask"]).tolist()
    lists = [inputs[name].tolist() for name in ("completion_ids", "advantages")]
    old = inputs["old_per_token_logps"].tolist() if "old_per_token_logps" in inputs else None
    gate = "sapo" if loss_type == "sapo" else "clip"
    if loss_type == "sapo":  # mean over a row's tokens, then over rows
        rows = [
            loss_and_gradient(rule, [z], [y], [a], [m], None if old is None else [o], gate, temperature, credit_mix)
            for z, y, a, m, o in zip(logits.tolist(), *lists, action_mask, old or lists[0], strict=True)
        ]
        loss = sum(value for value, _ in rows) / len(rows)
        gradient = torch.tensor([g[0] for _, g in rows], dtype=torch.float64) / len(rows)
    else:
        loss, g = loss_and_gradient(rule, logits.tolist(), *lists, action_mask, old, gate, temperature, credit_mix)
        gradient = torch.tensor(g, dtype=torch.float64)
    logits.backward(gradient)
    return loss, {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("loss_type", ["dapo", "sapo"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("rule", RULES)
def test_loss_and_gradient_equal_the_naive_float64_reference(make_trainer, rule, temperature, loss_type):
    inputs = make_batch(qwen2(), temperature=temperature)
    trainer = make_trainer(credit_rule=rule, temperature=temperature, loss_type=loss_type)
    loss, gradients = loss_and_gradients(trainer, inputs)
    expected, reference = reference_loss_and_gradients(rule, inputs, loss_type, temperature)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert_close_to_norm(gradients, reference, 1e-5)


def assert_close_to_norm(gradients, reference, rtol):
    """Largest deviation of any entry, relative to the norm of the whole gradient."""
    norm = torch.stack([g.norm() for g in reference.values()]).norm()
    for name, expected in reference.items():
        assert (gradients[name].double() - expected.double()).abs().max() <= rtol * norm, name


def test_credit_mix_equals_the_naive_reference(make_trainer):
    inputs = make_batch(qwen2())
    loss, gradients = loss_and_gradients(make_trainer(credit_mix=0.3), inputs)
    expected, reference = reference_loss_and_gradients("acpo", inputs, "dapo", 1.0, credit_mix=0.3)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert_close_to_norm(gradients, reference, 1e-5)


@pytest.mark.parametrize("loss_type", ["dapo", "sapo"])
def test_acpo_and_acpo_live_have_the_same_gradient_at_ratio_one(make_trainer, loss_type):
    inputs = make_batch(qwen2(), old=None)
    _, closed = loss_and_gradients(make_trainer(loss_type=loss_type), inputs)
    _, live = loss_and_gradients(make_trainer(credit_rule="acpo_live", loss_type=loss_type), inputs)
    _, uniform = loss_and_gradients(make_trainer(credit_rule="uniform", loss_type=loss_type), inputs)
    assert_close_to_norm(live, closed, 1e-6)
    with pytest.raises(AssertionError):  # the comparison can tell rules apart
        assert_close_to_norm(uniform, closed, 1e-2)


def test_sign_normalization_makes_mean_credit_one_per_sign(make_trainer):
    trainer = make_trainer(credit_normalization="sign")
    loss_and_gradients(trainer, make_batch(trainer.model))
    assert trainer._metrics["train"]["acpo/credit_positive"][0] == pytest.approx(1.0, abs=1e-6)
    assert trainer._metrics["train"]["acpo/credit_negative"][0] == pytest.approx(1.0, abs=1e-6)


def test_the_sign_of_each_token_decides_its_branch(make_trainer):
    """A row with mixed signs equals two rows that carry one sign each and zeros elsewhere."""
    trainer = make_trainer()
    advantages = torch.tensor([[1.0, -1.0, 0.5, -0.5, 2.0]] * 4)
    inputs = make_batch(trainer.model, advantages=advantages)
    whole, whole_gradients = loss_and_gradients(trainer, inputs)
    parts = [
        loss_and_gradients(trainer, {**inputs, "advantages": advantages.clamp(**limit)})
        for limit in ({"min": 0.0}, {"max": 0.0})
    ]
    assert whole.item() == pytest.approx(sum(loss.item() for loss, _ in parts), rel=1e-5)
    added = {name: parts[0][1][name] + parts[1][1][name] for name in whole_gradients}
    assert_close_to_norm(whole_gradients, added, 1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_the_buffered_batch_is_not_written_to(make_trainer, rule):
    trainer = make_trainer(credit_rule=rule)
    inputs = make_batch(trainer.model)
    before = copy.deepcopy(inputs)
    losses = [loss_and_gradients(trainer, inputs)[0].item() for _ in range(3)]
    assert losses[0] == losses[1] == losses[2]
    assert inputs.keys() == before.keys()
    assert all(torch.equal(inputs[name], before[name]) for name in before)


def test_environment_tokens_add_nothing_to_the_loss(make_trainer):
    """Advantages on masked positions must not matter, whatever they are."""
    trainer = make_trainer()
    advantages = torch.tensor([[1.0, -1.0, 0.5, -0.5, 2.0]] * 4)
    inputs = make_batch(trainer.model, advantages=advantages)
    mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
    other = torch.where(mask, advantages, torch.full_like(advantages, 1e6))
    first = loss_and_gradients(trainer, inputs)
    second = loss_and_gradients(trainer, {**inputs, "advantages": other})
    assert first[0].item() == second[0].item()
    assert all(torch.equal(first[1][n], second[1][n]) for n in first[1])


def test_environment_token_that_nobody_reads_on_from_changes_nothing(make_trainer):
    """The last token of a row is seen by no other, so its own loss is all it could change."""
    trainer = make_trainer()
    inputs = make_batch(trainer.model)
    inputs["tool_mask"][2, -1] = 0
    other = {**inputs, "completion_ids": inputs["completion_ids"].clone()}
    other["completion_ids"][2, -1] = (other["completion_ids"][2, -1] + 1) % 256
    first, second = loss_and_gradients(trainer, inputs), loss_and_gradients(trainer, other)
    assert first[0].item() == second[0].item()
    assert all(torch.equal(first[1][n], second[1][n]) for n in first[1])


def test_gradient_at_environment_and_padding_tokens_is_exactly_zero(make_trainer):
    trainer = make_trainer()
    inputs = make_batch(trainer.model, advantages=torch.tensor([[1.0, -1.0, 0.5, -0.5, 2.0]] * 4))
    seen = []
    inner = trainer._get_per_token_logps_and_entropies

    def keep(*args, **kwargs):
        log_probs, *rest = inner(*args, **kwargs)
        log_probs.retain_grad()
        seen.append(log_probs)
        return (log_probs, *rest)

    trainer._get_per_token_logps_and_entropies = keep
    loss_and_gradients(trainer, inputs)
    mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
    assert (seen[0].grad[~mask] == 0).all()
    assert seen[0].grad[mask].abs().sum() > 0


@pytest.mark.parametrize("extra", [1, 4])
def test_padding_does_not_change_loss_or_metrics(make_trainer, extra):
    trainer = make_trainer()
    inputs = make_batch(trainer.model)
    pad = torch.nn.functional.pad
    fill = {"completion_ids": 256, "completion_mask": 0, "tool_mask": 1, "old_per_token_logps": 0.0}
    longer = {k: pad(v, (0, extra), value=fill[k]) if k in fill else v for k, v in inputs.items()}
    loss, gradients = loss_and_gradients(trainer, inputs)
    padded_loss, padded_gradients = loss_and_gradients(trainer, longer)
    assert loss.item() == pytest.approx(padded_loss.item(), rel=1e-6)
    assert_close_to_norm(padded_gradients, gradients, 1e-5)
    for name in ("acpo/delta", "acpo/credit", "acpo/mode_rate"):
        assert trainer._metrics["train"][name][0] == pytest.approx(trainer._metrics["train"][name][1], abs=1e-6)


def test_order_of_rows_does_not_change_the_loss(make_trainer):
    trainer = make_trainer()
    inputs = make_batch(trainer.model)
    shuffled = {k: v[torch.tensor([2, 0, 3, 1])] if v.dim() else v for k, v in inputs.items()}
    assert_close(loss_and_gradients(trainer, inputs)[0], loss_and_gradients(trainer, shuffled)[0])


def test_a_batch_without_action_tokens_has_loss_exactly_zero(make_trainer):
    trainer = make_trainer()
    inputs = make_batch(trainer.model)
    inputs["tool_mask"] = torch.zeros_like(inputs["tool_mask"])
    inputs["num_items_in_batch"] = torch.tensor(0)
    loss, gradients = loss_and_gradients(trainer, inputs)
    assert loss.item() == 0.0
    assert all((g == 0).all() for g in gradients.values())


def test_a_completion_of_one_token_is_credited(make_trainer):
    trainer = make_trainer()
    inputs = make_batch(trainer.model, length=5)
    one = {
        k: v[:, :1] if k in ("completion_ids", "completion_mask", "tool_mask", "old_per_token_logps") else v
        for k, v in inputs.items()
    }
    one["num_items_in_batch"] = one["completion_mask"].sum()
    loss, _ = loss_and_gradients(trainer, one)
    assert loss.item() == pytest.approx(reference_loss_and_gradients("acpo", one, "dapo", 1.0)[0], rel=1e-5)


def test_gspo_token_is_used_for_sequence_ratios_and_keeps_credit_per_token(make_trainer, caplog):
    inputs = make_batch(qwen2(), advantages=torch.tensor([[1.0, 0.5, -0.5, 1.0, 2.0]] * 4))
    trainer = make_trainer(importance_sampling_level="sequence", loss_type="grpo", credit_rule="acpo_as_written")
    assert "GSPO-token form is used" in caplog.text
    _, credited = loss_and_gradients(trainer, inputs)
    averaged = {**inputs, "advantages": inputs["advantages"].mean(1, keepdim=True).expand(4, 5)}
    _, flat = loss_and_gradients(trainer, averaged)
    with pytest.raises(AssertionError):
        assert_close_to_norm(credited, flat, 1e-2)


def test_gspo_token_equals_gspo_when_credit_is_constant(make_trainer, monkeypatch):
    monkeypatch.setitem(CREDIT_RULES, "ones", lambda stats, advantages: torch.ones_like(advantages))
    inputs = make_batch(qwen2())
    settings = {"importance_sampling_level": "sequence", "loss_type": "grpo", "epsilon": 0.3, "epsilon_high": 0.3}
    loss, gradients = loss_and_gradients(make_trainer(credit_rule="ones", **settings), inputs)
    expected, reference = loss_and_gradients(make_trainer(cls=GRPOTrainer, config_cls=GRPOConfig, **settings), inputs)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert_close_to_norm(gradients, reference, 1e-6)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda stats, advantages: advantages.sum(), r"returned shape \(\)"),
        (lambda stats, advantages: advantages, "gave credit -0.69.* to token 0 of row 1"),
        (lambda stats, advantages: torch.full_like(advantages, float("nan")), "gave credit nan"),
        (lambda stats, advantages: torch.full_like(advantages, float("inf")), "gave credit inf"),
    ],
)
def test_a_rule_that_returns_no_usable_credit_stops_the_run(make_trainer, monkeypatch, returned, message):
    monkeypatch.setitem(CREDIT_RULES, "mine", returned)
    trainer = make_trainer(credit_rule="mine")
    with pytest.raises(ValueError, match=f"credit_rule 'mine' {message}"):
        loss_and_gradients(trainer, make_batch(trainer.model))


def test_a_rule_may_return_anything_for_masked_tokens(make_trainer, monkeypatch):
    inputs = make_batch(qwen2())
    expected = loss_and_gradients(make_trainer(), inputs)[0].item()

    def rule(stats, advantages):
        return CREDIT_RULES["acpo"](stats, advantages).masked_fill(~stats.action_mask, -5.0)

    monkeypatch.setitem(CREDIT_RULES, "mine", rule)
    assert loss_and_gradients(make_trainer(credit_rule="mine"), inputs)[0].item() == expected


def test_turn_ratio_of_single_turns_is_the_sequence_ratio(make_trainer):
    inputs = make_batch(qwen2())
    inputs["tool_mask"] = torch.ones_like(inputs["tool_mask"])
    settings = {"loss_type": "grpo", "epsilon": 0.2}
    sequence = loss_and_gradients(make_trainer(ratio="gspo_token", **settings), inputs)
    turn = loss_and_gradients(make_trainer(ratio="gspo_token_turn", **settings), inputs)
    assert sequence[0].item() == turn[0].item()
    assert all(torch.equal(sequence[1][n], turn[1][n]) for n in turn[1])


def test_turn_ratio_clips_turns_apart(make_trainer):
    """Row 2 has two turns; its first one has moved up far, so that only a ratio of its own is clipped."""
    inputs = make_batch(qwen2(), advantages=torch.full((4, 5), 1.0))
    inputs["old_per_token_logps"][2, 0] -= 1.0
    settings = {"loss_type": "grpo", "credit_rule": "uniform", "epsilon": 0.3}
    losses = {
        ratio: loss_and_gradients(make_trainer(ratio=ratio, **settings), inputs)[0].item()
        for ratio in ("token", "gspo_token", "gspo_token_turn", "turn")
    }
    assert len(set(losses.values())) == 4


def test_the_ratio_of_a_turn_is_the_product_of_those_of_its_tokens(make_trainer):
    """One row of one turn, unclipped: the token-mean loss is -A exp(sum of log-ratios), its gradient 1 / T of that."""
    rows = make_batch(qwen2(), advantages=torch.full((4,), 0.5))
    inputs = {name: value if name == "num_items_in_batch" else value[:1] for name, value in rows.items()}
    inputs.pop("tool_mask")
    settings = {"loss_type": "grpo", "credit_rule": "uniform", "epsilon": 1e6, "epsilon_high": 1e6}
    trainer = make_trainer(ratio="turn", num_generations=2, **settings)
    loss, gradients = loss_and_gradients(trainer, inputs)
    model = qwen2()
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
    scores = model(ids).logits[:, 2:-1].log_softmax(-1).gather(-1, inputs["completion_ids"].unsqueeze(-1)).squeeze(-1)
    exact = -0.5 * (scores - inputs["old_per_token_logps"]).sum().exp()
    (exact / 5).backward()
    torch.testing.assert_close(loss, exact.detach(), rtol=1e-4, atol=1e-5)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-3, atol=1e-4)


def test_uniform_credit_with_turn_advantages_keeps_them_under_sequence_ratios(make_trainer):
    trainer = make_trainer(importance_sampling_level="sequence", credit_rule="uniform", turn_estimator="outcome")
    assert (trainer.ratio, trainer.importance_sampling_level) == ("gspo_token", "token")
    plain = make_trainer(importance_sampling_level="sequence", credit_rule="uniform")
    assert (plain.ratio, plain.importance_sampling_level) == ("gspo", "sequence")
