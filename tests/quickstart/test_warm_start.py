"""Supervised warm start."""

import random

import pytest
import torch

from acpo_trl.quickstart import build_model, build_tokenizer, problems, warm_start
from acpo_trl.quickstart.warm_start import demonstrations

PROMPTS = [row["prompt"] for row in problems(100, seed=0)]


def test_only_the_solution_and_its_end_are_learned():
    tokenizer = build_tokenizer()
    batch = next(demonstrations(tokenizer, ["What is 111 + 222?"], random.Random(0)))
    ids, labels = batch["input_ids"][0], batch["labels"][0]
    assert tokenizer.decode(labels[labels != -100]) == "1+2=3\n1+2=3\n1+2=3\n\\boxed{333}<|im_end|>"
    assert tokenizer.decode(ids[labels == -100]) == (
        "<|im_start|>user\nWhat is 111 + 222?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_padding_is_neither_seen_nor_learned():
    tokenizer = build_tokenizer()
    batch = next(demonstrations(tokenizer, PROMPTS, random.Random(0)))
    padding = batch["input_ids"] == tokenizer.pad_token_id
    assert padding.any()
    assert not batch["attention_mask"][padding].any()
    assert (batch["labels"][padding] == -100).all()


def test_most_but_not_all_carries_are_forgotten():
    tokenizer = build_tokenizer()
    batch = next(demonstrations(tokenizer, ["What is 555 + 555?"], random.Random(0)))
    texts = tokenizer.batch_decode(batch["input_ids"])
    forgotten = sum("\n5+5=" in text.partition("5+5=10")[2][:5] for text in texts)
    assert len(texts) / 2 < forgotten < len(texts)


@pytest.mark.slow
def test_loss_falls_and_the_seed_fixes_the_weights(capsys):
    tokenizer = build_tokenizer()
    models = [build_model(tokenizer, seed=0) for _ in range(2)]
    for model in models:
        warm_start(model, tokenizer, PROMPTS, seed=0, num_steps=10)
    assert all(torch.equal(a, b) for a, b in zip(*(model.parameters() for model in models), strict=True))
    untrained = build_model(tokenizer, seed=0)
    batch = next(demonstrations(tokenizer, PROMPTS, random.Random(1)))
    with torch.no_grad():
        assert models[0](**batch).loss < untrained(**batch).loss - 1
    assert "step 10 of 10: loss" in capsys.readouterr().out
