"""ACPOTrainer in TRL's real loop, with the features that GRPOTrainer has."""

import pytest
import torch
from datasets import Dataset
from peft import LoraConfig
from tiny import distinct_bytes, make_batch, qwen2
from transformers import MixtralConfig, MixtralForCausalLM
from trl import GRPOConfig, GRPOTrainer

import acpo_trl
from acpo_trl import ACPOConfig, ACPOTrainer
from acpo_trl.credit import CREDIT_RULES


@pytest.fixture
def saved_model(tmp_path):
    """The tiny model as a folder: TRL loads its reference model from there."""
    qwen2().save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def weights(trainer):
    return {name: p.detach().clone() for name, p in trainer.model.named_parameters()}


def train(trainer):
    trainer.train()
    return weights(trainer)


def test_uniform_credit_trains_bit_identically_to_grpo(make_trainer):
    settings = {"max_steps": 3, "num_iterations": 2, "gradient_accumulation_steps": 2}
    ours = train(make_trainer(credit_rule="uniform", **settings))
    theirs = train(make_trainer(cls=GRPOTrainer, config_cls=GRPOConfig, **settings))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    start = dict(qwen2().named_parameters())
    assert not torch.equal(ours["model.norm.weight"], start["model.norm.weight"])


@pytest.mark.slow
def test_credit_changes_training(make_trainer):
    assert not torch.equal(
        train(make_trainer())["model.norm.weight"],
        train(make_trainer(credit_rule="uniform"))["model.norm.weight"],
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"num_iterations": 2, "steps_per_generation": 2, "gradient_accumulation_steps": 2},
        {"beta": 0.1},
        {"entropy_coef": 0.01, "top_entropy_quantile": 0.5, "off_policy_mask_threshold": 0.5, "num_iterations": 2},
        {"mask_truncated_completions": True},
        {"gradient_checkpointing": False},
        {"importance_sampling_level": "sequence", "loss_type": "luspo", "num_iterations": 2},
        {"multi_objective_aggregation": "normalize_then_sum"},
        {"pad_to_multiple_of": 8},
        {"cast_lm_head_to_fp32": True},
        {"bf16": True},
        {"credit_normalization": "sign", "credit_mix": 0.5},
        {"use_adaptive_entropy": True, "entropy_target": 2.0},
        {"delta": 1.5, "num_iterations": 2},
        {"beta": 0.1, "use_bias_correction_kl": True, "sync_ref_model": True},
        {"scale_rewards": "batch", "reward_weights": [0.5]},
        {"loss_type": "sapo", "num_iterations": 2},
        {"loss_type": "cispo", "epsilon_high": 5.0, "num_iterations": 2},
    ],
    ids=lambda s: ",".join(s),
)
def test_features_of_grpo_train_with_credit(make_trainer, saved_model, settings):
    trainer = make_trainer(model=saved_model, **settings)
    before = weights(trainer)
    trainer.train()
    logs = [log for log in trainer.state.log_history if "acpo/delta" in log]
    assert len(logs) == 2
    for log in logs:
        assert log["acpo/delta"] is None or 0 < log["acpo/delta"] < 1
        assert log["acpo/mode_rate"] is None or 0 <= log["acpo/mode_rate"] <= 1
    if not settings.get("mask_truncated_completions"):  # every completion of the random model is cut off
        assert not torch.equal(before["model.norm.weight"], trainer.model.model.norm.weight)


@pytest.mark.slow
def test_masking_all_truncated_completions_moves_nothing_without_decay(make_trainer):
    trainer = make_trainer(mask_truncated_completions=True, weight_decay=0.0)
    before = weights(trainer)
    trainer.train()
    assert trainer.state.log_history[0]["loss"] == 0.0
    if trainer.state.log_history[0]["completions/clipped_ratio"] == 1.0:
        assert all(torch.equal(before[n], p) for n, p in trainer.model.named_parameters())


@pytest.mark.slow
@pytest.mark.parametrize("use_dora", [False, True])
def test_an_adapter_trains_and_the_base_stays(make_trainer, use_dora):
    config = LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["q_proj", "down_proj"], use_dora=use_dora)
    trainer = make_trainer(peft_config=config, beta=0.1)
    before = weights(trainer)
    trainer.train()
    moved = {name for name, p in trainer.model.named_parameters() if not torch.equal(before[name], p)}
    assert any("lora_B" in name for name in moved)
    assert all("lora_" in name for name in moved)


@pytest.mark.slow
def test_mixture_of_experts_logs_its_auxiliary_loss(make_trainer):
    torch.manual_seed(0)
    config = MixtralConfig(
        vocab_size=264,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
        max_position_embeddings=512,
        pad_token_id=256,
        eos_token_id=258,
        bos_token_id=None,
        output_router_logits=True,
    )
    trainer = make_trainer(model=MixtralForCausalLM(config), router_aux_loss_coef=0.01)
    trainer.train()
    assert trainer.state.log_history[0]["aux_loss"] > 0
    assert trainer.state.log_history[0]["acpo/credit"] > 0


@pytest.mark.slow
def test_evaluation_works_before_and_without_training(make_trainer):
    trainer = make_trainer(
        eval_dataset=Dataset.from_dict({"prompt": ["1+1=", "2+2="]}), per_device_eval_batch_size=4, num_generations=2
    )
    metrics = trainer.evaluate()
    assert 0 < metrics["eval_acpo/delta"] < 1
    assert metrics["eval_rewards/distinct_bytes/mean"] > 0
    trainer.train()
    assert 0 < trainer.evaluate()["eval_acpo/mode_rate"] < 1


def test_default_arguments_name_the_run_after_model_and_method(tokenizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "tiny"
    qwen2().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    monkeypatch.setattr(
        "acpo_trl.trainer.trainer.ACPOConfig", lambda name: ACPOConfig(name, use_cpu=True, bf16=False, report_to="none")
    )
    trainer = ACPOTrainer(str(folder), distinct_bytes, train_dataset=Dataset.from_dict({"prompt": ["a"] * 8}))
    assert trainer.args.output_dir.endswith("tiny-ACPO")
    assert trainer.args.credit_rule == "acpo"


@pytest.mark.slow
def test_a_plain_grpo_config_is_taken_with_the_defaults_of_acpo(make_trainer):
    trainer = make_trainer(config_cls=GRPOConfig)
    assert trainer.args.credit_rule == "acpo"
    trainer.train()
    assert 0 < trainer.state.log_history[0]["acpo/credit"] < 3
    with pytest.raises(ValueError, match="loss_type 'dappo'"):
        make_trainer(config_cls=GRPOConfig, loss_type="dappo")


def test_model_card_names_method_paper_settings_and_versions(make_trainer, tmp_path):
    make_trainer(credit_mix=0.5).create_model_card("my-model")
    card = (tmp_path / "run" / "README.md").read_text()
    assert "trained with ACPO, a method introduced in" in card
    assert "papers/2607.03126" in card
    assert "`credit_rule=acpo`, `credit_mix=0.5`, `credit_normalization=none`; loss `dapo`" in card
    assert f"- acpo_trl: {acpo_trl.__version__}" in card
    assert "fine-tuned version of a local model" in card
    assert "None" not in card
    assert "- acpo\n" in card.split("---")[1]


@pytest.mark.slow
def test_credit_that_does_not_reach_the_loss_stops_the_run(make_trainer):
    class ReadsTooEarly(ACPOTrainer):
        def _compute_loss(self, model, inputs):
            advantages = inputs["advantages"]
            loss = super()._compute_loss(model, inputs)
            return loss + 0 * advantages.sum()

    class NeverForwards(ACPOTrainer):
        def _compute_loss(self, model, inputs):
            return inputs["advantages"].sum() * next(model.parameters()).sum()

    for cls, message in [(ReadsTooEarly, "before credit was given"), (NeverForwards, "before credit was given")]:
        with pytest.raises(RuntimeError, match=message):
            make_trainer(cls=cls).train()


@pytest.mark.slow
def test_a_head_that_is_not_trls_kernel_stops_the_run(make_trainer, monkeypatch):
    trainer = make_trainer()

    def full_logits(self, model, input_ids, attention_mask, logits_to_keep, **kwargs):
        logits = model(input_ids, attention_mask=attention_mask).logits[:, -logits_to_keep - 1 : -1]
        log_all = logits.log_softmax(-1)
        log_probs = log_all.gather(-1, input_ids[:, -logits_to_keep:].unsqueeze(-1)).squeeze(-1)
        return log_probs, -(log_all.exp() * log_all).sum(-1), None

    monkeypatch.setattr(GRPOTrainer, "_get_per_token_logps_and_entropies", full_logits)
    with pytest.raises(RuntimeError, match="no mode probability was read"):
        trainer.train()


def test_a_rule_sees_action_tokens_and_the_gate(make_trainer, monkeypatch):
    seen = []

    def spy(stats, advantages):
        seen.append((stats, advantages))
        return CREDIT_RULES["acpo"](stats, advantages)

    monkeypatch.setitem(CREDIT_RULES, "spy", spy)
    trainer = make_trainer(credit_rule="spy", loss_type="sapo")
    inputs = make_batch(trainer.model)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    trainer.compute_loss(trainer.model, inputs)
    stats, advantages = seen[0]
    assert stats.gate == (2.0, 2 / 1.05)
    assert torch.equal(stats.action_mask.long(), inputs["completion_mask"] * inputs["tool_mask"])
    assert advantages.shape == stats.log_probs.shape == stats.delta.shape == (4, 5)


@pytest.mark.slow
def test_unscored_completions_get_no_advantage_and_the_others_their_own_mean(make_trainer):
    def partly(completions, **kwargs):
        return [None, 0.0, 1.0, 1.0]

    trainer = make_trainer(reward_funcs=partly, num_generations=4, max_steps=1)
    batches = []
    generate = trainer._generate_and_score_completions
    trainer._generate_and_score_completions = lambda inputs: batches.append(generate(inputs)) or batches[0]
    trainer.train()
    advantages = batches[0]["advantages"]
    assert advantages[0] == 0.0
    assert advantages[1:].sum().abs() < 1e-5
    assert trainer.state.log_history[0]["reward"] == pytest.approx(2 / 3)
