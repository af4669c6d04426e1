"""Turn estimators, credit rules, ratios and losses go together, but for the combinations that docs/concepts name."""

import copy
import itertools

import pytest
import torch
from tiny import make_batch, qwen2

from acpo_trl import ACPOConfig
from acpo_trl.advantages import TURN_ESTIMATORS
from acpo_trl.credit import CREDIT_RULES
from acpo_trl.trainer.choices import CLIP_LOSSES, LOG_PROB_LOSSES, RATIOS, check_credit

LOSSES = (*CLIP_LOSSES, *LOG_PROB_LOSSES, "sapo")
OWN_RATIOS = [ratio for ratio in RATIOS if ratio != "gspo"]


def is_refused(rule, ratio, loss):
    return ratio == "gspo" or (rule == "acpo_live" and loss in LOG_PROB_LOSSES) or (ratio, loss) == ("turn", "vespo")


@pytest.mark.slow
def test_every_estimator_goes_with_every_rule_ratio_and_loss_but_for_the_documented_ones(tmp_path):
    args = ACPOConfig(str(tmp_path), use_cpu=True, bf16=False, report_to="none")
    refused, expected = set(), set()
    for combination in itertools.product(TURN_ESTIMATORS, CREDIT_RULES, RATIOS, LOSSES):
        changed = copy.copy(args)
        changed.turn_estimator, changed.credit_rule, changed.ratio, changed.loss_type = combination
        if is_refused(*combination[1:]):
            expected.add(combination)
        try:
            check_credit(changed)
        except ValueError:
            refused.add(combination)
    assert refused == expected
    assert len(expected) < 0.4 * len(TURN_ESTIMATORS) * len(CREDIT_RULES) * len(RATIOS) * len(LOSSES)


@pytest.mark.parametrize(
    ("rule", "ratio", "loss"),
    [each for each in itertools.product(CREDIT_RULES, OWN_RATIOS, LOSSES) if not is_refused(*each)],
)
def test_every_token_moves_the_way_its_own_advantage_says(make_trainer, rule, ratio, loss):
    """On policy, with advantages of both signs within each completion."""
    generator = torch.Generator().manual_seed(4)
    advantages = torch.randn(4, 5, generator=generator)
    inputs = make_batch(qwen2(), old=None, advantages=advantages)
    inputs["turn_ids"] = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, -1, -1], [0, -1, 1, 1, 1], [0, 0, 0, 0, 0]])
    settings = {"loss_type": loss, "credit_rule": rule, "ratio": ratio}
    trainer = make_trainer(**settings, epsilon=10.0, epsilon_high=10.0)
    original, kept = trainer._get_per_token_logps_and_entropies, []

    def keep(*args, **kwargs):
        log_probs, *rest = original(*args, **kwargs)
        log_probs.retain_grad()
        kept.append(log_probs)
        return (log_probs, *rest)

    trainer._get_per_token_logps_and_entropies = keep
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    trainer.compute_loss(trainer.model, inputs)
    inputs["old_per_token_logps"] = kept.pop().detach()
    trainer.compute_loss(trainer.model, inputs).backward()
    mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
    push = -kept[0].grad
    assert (push[~mask] == 0).all()
    assert (push[mask] != 0).sum() > 0.6 * mask.sum()
    agrees = push[mask].sign() == advantages[mask].sign()
    assert (agrees | (push[mask] == 0)).all()


def test_the_mask_of_off_policy_completions_is_refused_beside_the_ratio_of_turns(tmp_path):
    with pytest.raises(ValueError, match=r"off_policy_mask_threshold 0\.5.*gspo_token_turn"):
        ACPOConfig(str(tmp_path), use_cpu=True, bf16=False, ratio="turn", off_policy_mask_threshold=0.5)
