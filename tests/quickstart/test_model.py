"""Tokenizer and model."""

import random

import pytest
import torch
from transformers import AutoTokenizer

from acpo_trl.quickstart import build_model, build_tokenizer, problems, worked_solution


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


@pytest.mark.parametrize("text", ["What is 347 + 586?", "7+6=13\n\\boxed{933}", "Zürich,  42 €\n\t\\frac{1}{2}", "🙂"])
def test_any_text_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_a_digit_is_a_token(tokenizer):
    ids = tokenizer("2026")["input_ids"]
    assert [tokenizer.decode([i]) for i in ids] == ["2", "0", "2", "6"]


def test_chat_template_writes_chatml(tokenizer):
    messages = [{"role": "system", "content": "Add."}, {"role": "user", "content": "What is 1 + 2?"}]
    assert tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>system\nAdd.<|im_end|>\n<|im_start|>user\nWhat is 1 + 2?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_pad_and_end_are_different_tokens(tokenizer):
    assert tokenizer.pad_token == "<|endoftext|>"
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer("3<|im_end|>")["input_ids"][-1] == tokenizer.eos_token_id


def test_saved_tokenizer_loads_as_itself_beside_its_model(tokenizer, tmp_path):
    # AutoTokenizer chooses the class by the model's type: another one than Qwen2's would split words differently.
    build_model(tokenizer, seed=0).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    for row in problems(50, seed=5):
        text = f"<|im_start|>user\n{row['prompt']}<|im_end|>\n{worked_solution(row['prompt'], random.Random(0))}"
        assert loaded(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert (loaded.eos_token, loaded.pad_token) == (tokenizer.eos_token, tokenizer.pad_token)
    assert loaded.chat_template == tokenizer.chat_template


def test_model_has_half_a_million_parameters_and_the_weights_of_its_seed(tokenizer):
    first, same, other = (build_model(tokenizer, seed) for seed in (0, 0, 1))
    assert 400_000 < first.num_parameters() < 600_000
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), same.parameters(), strict=True))
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)
