"""TRL computes the token methods that our configs name as their papers do: worked numbers, through TRL's loss."""

import pytest
import torch
from trl import GRPOConfig, GRPOTrainer


def scripted(make_trainer, log_probs, entropies=None, **settings):
    """A trainer whose forward returns the given (B, T) log-probabilities."""
    trainer = make_trainer(cls=GRPOTrainer, config_cls=GRPOConfig, **settings)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    entropies = torch.zeros_like(log_probs) if entropies is None else entropies
    trainer._get_per_token_logps_and_entropies = lambda *args, **kwargs: (log_probs, entropies, None)
    return trainer


def batch(old, advantages, mask, num_items=None):
    mask = torch.tensor(mask)
    return {
        "prompt_ids": torch.zeros(len(mask), 1, dtype=torch.long),
        "prompt_mask": torch.ones(len(mask), 1, dtype=torch.long),
        "completion_ids": torch.zeros_like(mask),
        "completion_mask": mask,
        "advantages": torch.tensor(advantages),
        "old_per_token_logps": torch.tensor(old),
        "num_items_in_batch": mask.sum() if num_items is None else torch.tensor(num_items),
    }


@pytest.mark.parametrize(
    ("ratio", "positive", "negative"),
    [
        (0.2, (1.240102, 0.171128), (1.148704, 0.168489)),
        (0.5, (1.510163, 0.470007), (1.415938, 0.46707)),
        (0.8, (1.800664, 0.792053), (1.705494, 0.791244)),
        (1.0, (2.0, 1.0), (1.904762, 1.0)),
        (1.2, (2.199336, 1.18808), (2.10403, 1.186867)),
        (2.0, (2.924234, 1.572895), (2.822, 1.53622)),
        (5.0, (3.928055, 0.353254), (3.753242, 0.291115)),
    ],
)
def test_sapo_gate_and_its_gradient(make_trainer, ratio, positive, negative):
    for advantage, (value, slope) in [(1.0, positive), (-1.0, negative)]:
        log_probs = torch.zeros(1, 1, requires_grad=True)
        trainer = scripted(make_trainer, log_probs, loss_type="sapo")
        old = (-torch.log(torch.tensor([[ratio]]))).tolist()
        loss = trainer._compute_loss(trainer.model, batch(old, [advantage], [[1]]))
        loss.backward()
        assert loss.item() == pytest.approx(-advantage * value, rel=1e-5)
        assert log_probs.grad.item() == pytest.approx(-advantage * slope, rel=1e-4)


def test_cispo_clamps_the_weight_at_epsilon_high_itself(make_trainer):
    log_probs = torch.tensor([[-1.0, -2.0, -0.5], [-0.7, -0.3, -1.1]], requires_grad=True)
    trainer = scripted(make_trainer, log_probs, loss_type="cispo", epsilon_high=5.0)
    old = [[-1.0, -4.0, -0.2], [-0.6, -0.7, -1.1]]
    loss = trainer._compute_loss(trainer.model, batch(old, [1.0, -1.0], [[1, 1, 1], [1, 1, 0]]))
    loss.backward()
    assert loss.item() == pytest.approx(2.057895, abs=1e-5)
    assert log_probs.grad[0].tolist() == pytest.approx([-0.2, -1.0, -0.148164], abs=1e-5)
    assert log_probs.grad[1].tolist() == pytest.approx([0.180967, 0.298365, 0.0], abs=1e-5)


GSPO_LOG_PROBS = [[-1.0, -2.0, -0.5], [-0.7, -0.3, -1.1]]
GSPO_OLD = [[-1.001, -2.0005, -0.4995], [-0.7, -0.3003, -1.1]]


@pytest.mark.parametrize(
    ("advantages", "epsilons", "expected"),
    [
        ([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], (3e-4, 4e-4), [[-0.166722] * 3, [0.250038, 0.250038, 0.0]]),
        ([[1.0, -0.5, 0.5], [-1.0, 0.3, 0.0]], (0.5, 0.5), [[-0.0555741] * 3, [0.0875131, 0.0875131, 0.0]]),
    ],
    ids=["constant", "varying"],
)
def test_gspo_gives_all_tokens_of_a_sequence_the_same_gradient(make_trainer, advantages, epsilons, expected):
    log_probs = torch.tensor(GSPO_LOG_PROBS, requires_grad=True)
    low, high = epsilons
    settings = {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": low, "epsilon_high": high}
    trainer = scripted(make_trainer, log_probs, **settings)
    trainer._compute_loss(trainer.model, batch(GSPO_OLD, advantages, [[1, 1, 1], [1, 1, 0]])).backward()
    assert log_probs.grad.tolist() == [pytest.approx(row, abs=1e-5) for row in expected]


@pytest.mark.parametrize(
    ("advantage", "expected"), [(1.0, [-0.5, -0.9, -1.0, -1.1, -1.2, -1.2]), (-1.0, [0.8, 0.9, 1.0, 1.1, 1.5, 3.0])]
)
def test_delta_is_the_second_bound_of_dual_clip(make_trainer, advantage, expected):
    trainer = scripted(make_trainer, torch.zeros(1, 1), loss_type="grpo", delta=3.0)
    losses = [
        trainer._compute_loss(
            trainer.model, batch((-torch.tensor([[ratio]]).log()).tolist(), [advantage], [[1]])
        ).item()
        for ratio in (0.5, 0.9, 1.0, 1.1, 1.5, 4.0)
    ]
    assert losses == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("loss_type", "expected"), [("grpo", -0.5), ("sapo", -1.0), ("dapo", -1.0)])
def test_row_without_model_tokens_adds_nothing_but_counts_in_a_mean_of_rows(make_trainer, loss_type, expected):
    log_probs = torch.zeros(2, 2)
    trainer = scripted(make_trainer, log_probs, loss_type=loss_type)
    inputs = batch(log_probs.tolist(), [1.0, 1.0], [[1, 1], [0, 0]])
    assert trainer._compute_loss(trainer.model, inputs).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("loss_type", "expected"),
    [("grpo", 3.0), ("sapo", 3.0), ("bnpo", 2.5), ("dr_grpo", 0.625), ("dapo", 1.0), ("cispo", 1.0)],
)
def test_losses_aggregate_tokens_as_documented(make_trainer, loss_type, expected):
    # Token losses 1, 2, 3 and 4 through per-token advantages; at ratio 1 each loss passes them on times a constant.
    constant = {"sapo": 2.0, "cispo": 1.0}.get(loss_type, 1.0)
    log_probs = torch.full((2, 4), -1.0)
    settings = {"sapo_temperature_neg": 1.0} if loss_type == "sapo" else {}
    settings |= {"epsilon_high": 5.0} if loss_type == "cispo" else {}
    trainer = scripted(make_trainer, log_probs, loss_type=loss_type, max_completion_length=8, **settings)
    advantages = torch.tensor([[1.0, 2.0, 3.0, 0.0], [4.0, 0.0, 0.0, 0.0]]) / -constant
    if loss_type == "cispo":
        advantages = -advantages  # its value is -A log pi, and log pi is -1
    inputs = batch(log_probs.tolist(), advantages.tolist(), [[1, 1, 1, 0], [1, 0, 0, 0]], num_items=10)
    assert trainer._compute_loss(trainer.model, inputs).item() == pytest.approx(expected, rel=1e-6)


def test_high_entropy_mask_keeps_the_top_fifth(make_trainer):
    trainer = make_trainer(cls=GRPOTrainer, config_cls=GRPOConfig)
    entropies = torch.tensor([[0.1, 0.9, 0.2, 1.5, 0.0], [0.05, 2.0, 0.3, 0.0, 0.7]])
    mask = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 0, 1]])
    kept = trainer.get_high_entropy_mask(entropies, mask, 0.8)
    assert kept.int().tolist() == [[0, 0, 0, 1, 0], [0, 1, 0, 0, 0]]


@pytest.mark.slow
@pytest.mark.parametrize(("scale_rewards", "expected"), [("group", (1.619835, -0.539945)), ("none", (0.75, -0.25))])
def test_group_advantages_use_the_unbiased_deviation(make_trainer, scale_rewards, expected):
    def reward(completions, **kwargs):
        return [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]

    trainer = make_trainer(
        reward_funcs=reward, num_generations=8, per_device_train_batch_size=8, scale_rewards=scale_rewards, max_steps=1
    )
    batches = []
    generate = trainer._generate_and_score_completions
    trainer._generate_and_score_completions = lambda inputs: batches.append(generate(inputs)) or batches[0]
    trainer.train()
    good, bad = expected
    assert batches[0]["advantages"].tolist() == pytest.approx([good, bad, bad, good, bad, bad, bad, bad], abs=1e-5)
