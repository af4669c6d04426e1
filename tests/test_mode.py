"""The distance to the mode against full logits, over the kinds of heads that models have."""

import math

import pytest
import torch
import trl.trainer.utils as trl_utils
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import LoraConfig, PromptTuningConfig
from tiny import make_batch, qwen2
from torch.testing import assert_close
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
)

import acpo_trl.mode
from acpo_trl.mode import mode_logit_gap, watch_mode

SMALL = {
    "vocab_size": 264,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    "pad_token_id": 256,
    "eos_token_id": 258,
    "bos_token_id": None,
}


def naive_gap(model, inputs, temperature):
    """log pi(v*) - log pi(y) from full logits in float64, zero outside the action tokens."""
    model = model.double().eval()
    with torch.no_grad():
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        length = inputs["completion_ids"].size(1)
        log_probs = (model(ids, attention_mask=mask).logits[:, -length - 1 : -1] / temperature).log_softmax(-1)
    gap = log_probs.amax(-1) - log_probs.gather(-1, inputs["completion_ids"].unsqueeze(-1)).squeeze(-1)
    return gap * inputs["completion_mask"] * inputs["tool_mask"]


def gap_in_loss(trainer, inputs):
    """What the trainer's loss read, and the model as it was without the trainer's casts."""
    seen = {}
    give = trainer._give_credit
    trainer._give_credit = lambda batch, reading, *rest: (seen.update(gap=reading.gap), give(batch, reading, *rest))
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    trainer.compute_loss(trainer.model, inputs)
    return seen["gap"]


MODELS = {
    "qwen2, tied": lambda: qwen2(tie_word_embeddings=True),
    "qwen2, untied": lambda: qwen2(tie_word_embeddings=False),
    "granite, logits scaled": lambda: GraniteForCausalLM(GraniteConfig(**SMALL, logits_scaling=0.5)),
    "cohere, logit scale": lambda: CohereForCausalLM(CohereConfig(**SMALL, logit_scale=0.25)),
    "gemma2, soft-cap": lambda: Gemma2ForCausalLM(Gemma2Config(**SMALL, head_dim=8, final_logit_softcapping=3.0)),
}


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("kind", MODELS)
def test_gap_equals_full_logits(make_trainer, kind, temperature):
    torch.manual_seed(0)
    model = MODELS[kind]()
    inputs = make_batch(model)
    gap = gap_in_loss(make_trainer(model=model, temperature=temperature), inputs)
    expected = naive_gap(model, inputs, temperature)
    assert_close(gap.double(), expected, rtol=1e-4, atol=2e-5)
    assert ((gap == 0) == (expected < 1e-12)).all()
    assert 0 < (expected > 0).sum() < expected.numel()


@pytest.mark.parametrize("use_dora", [False, True])
def test_gap_equals_full_logits_under_an_adapter(make_trainer, use_dora):
    config = LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["q_proj", "down_proj"], use_dora=use_dora)
    trainer = make_trainer(peft_config=config)
    for name, parameter in trainer.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    inputs = make_batch(trainer.model.get_base_model())
    gap = gap_in_loss(trainer, inputs)
    assert_close(gap.double(), naive_gap(trainer.model, inputs, 1.0), rtol=1e-4, atol=2e-5)


def test_gap_equals_full_logits_behind_virtual_prompt_tokens(make_trainer):
    config = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    trainer = make_trainer(peft_config=config, gradient_checkpointing=False)
    inputs = make_batch(trainer.model.get_base_model())
    gap = gap_in_loss(trainer, inputs)
    assert_close(gap.double(), naive_gap(trainer.model, inputs, 1.0), rtol=1e-4, atol=2e-5)


def test_bfloat16_ties_count_as_the_mode_whatever_their_order():
    hidden = torch.tensor([[1.0, 0.0]], dtype=torch.bfloat16).expand(3, 2)
    weight = torch.tensor([[3.0, 0.0], [3.001, 0.0], [1.0, 0.0]], dtype=torch.bfloat16)  # 3.001 rounds to 3
    gap = mode_logit_gap(hidden, weight, None, torch.tensor([0, 1, 2]))
    assert gap.tolist() == [0.0, 0.0, 2.0]


def test_bias_and_padded_vocabulary_rows_take_part():
    hidden = torch.ones(2, 1)
    weight, bias = torch.tensor([[0.0], [1.0], [0.5]]), torch.tensor([0.0, 0.0, 2.0])
    assert mode_logit_gap(hidden, weight, bias, torch.tensor([1, 2])).tolist() == [1.5, 0.0]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 50))
def test_chunk_sizes_do_not_matter(seed, token_chunk, vocab_chunk):
    generator = torch.Generator().manual_seed(seed)
    # Small integers: every product is exact, so chunks cannot differ by rounding.
    hidden = torch.randint(-3, 4, (8, 5), generator=generator).float()
    weight = torch.randint(-3, 4, (37, 5), generator=generator).float()
    targets = torch.randint(0, 37, (8,), generator=generator)
    logits = hidden @ weight.t()
    expected = logits.amax(-1) - logits.gather(1, targets[:, None])[:, 0]
    before = acpo_trl.mode._TOKEN_CHUNK, acpo_trl.mode._VOCAB_CHUNK
    acpo_trl.mode._TOKEN_CHUNK, acpo_trl.mode._VOCAB_CHUNK = token_chunk, vocab_chunk
    try:
        assert mode_logit_gap(hidden, weight, None, targets).tolist() == expected.tolist()
    finally:
        acpo_trl.mode._TOKEN_CHUNK, acpo_trl.mode._VOCAB_CHUNK = before


def test_tokens_with_most_of_the_probability_need_no_matrix_work(make_trainer, monkeypatch):
    model = qwen2()
    inputs = make_batch(model, temperature=0.1)
    rows = []
    original = acpo_trl.mode.mode_logit_gap
    monkeypatch.setattr(
        acpo_trl.mode, "mode_logit_gap", lambda h, *a, **k: (rows.append(len(h)), original(h, *a, **k))[1]
    )
    gap = gap_in_loss(make_trainer(model=model, temperature=0.1), inputs)
    actions = int((inputs["completion_mask"] * inputs["tool_mask"]).sum())
    assert rows[0] < actions
    assert rows[0] >= int((gap > 0).sum())


def test_compact_and_padded_layouts_of_the_head_are_told_apart():
    mask = torch.tensor([[True, True, False], [True, True, True]])
    compact = acpo_trl.mode._flat_positions(mask, 5)
    assert compact[mask].tolist() == [0, 1, 2, 3, 4]
    padded = acpo_trl.mode._flat_positions(mask, 12)  # rows of six, the completion at the end
    assert padded.tolist() == [[3, 4, 5], [9, 10, 11]]
    with pytest.raises(RuntimeError, match="cannot tell which is which"):
        acpo_trl.mode._flat_positions(mask, 7)


def test_compact_layout_gives_the_same_gap(make_trainer, monkeypatch):
    model = qwen2()
    inputs = make_batch(model)
    trainer = make_trainer(model=model)
    padded = gap_in_loss(trainer, inputs)
    monkeypatch.setattr(trl_utils, "_use_triton", lambda device: True)  # TRL then scores completion tokens only
    assert_close(gap_in_loss(trainer, inputs), padded)


def test_a_batch_without_action_tokens_reads_zeros(make_trainer, monkeypatch):
    trainer = make_trainer()
    inputs = make_batch(trainer.model)
    inputs["completion_mask"] = torch.zeros_like(inputs["completion_mask"])
    inputs["num_items_in_batch"] = torch.tensor(0)
    for compact in (False, True):
        monkeypatch.setattr(trl_utils, "_use_triton", lambda device, compact=compact: compact)
        assert gap_in_loss(trainer, inputs).abs().sum() == 0


def test_nothing_stays_patched_after_reading_even_after_an_error(make_trainer):
    trainer = make_trainer()
    kernel, forward = trl_utils._ChunkedLogProbFunction, trainer.model.forward
    inputs = make_batch(trainer.model)
    gap_in_loss(trainer, inputs)
    with pytest.raises(ZeroDivisionError), watch_mode(inputs["completion_mask"], inputs["completion_mask"].bool()):
        raise ZeroDivisionError
    assert trl_utils._ChunkedLogProbFunction is kernel
    assert trainer.model.forward == forward
    assert not any(module._forward_hooks for module in trainer.model.modules())


def test_sure_bound_lies_above_one_half():
    assert math.exp(acpo_trl.mode._SURELY_MODE) > 0.5
