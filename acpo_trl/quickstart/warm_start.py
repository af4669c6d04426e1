"""Supervised training on worked solutions, until the model writes solutions of its own."""

import random
import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast, get_cosine_schedule_with_warmup

from .tasks import worked_solution

# So the method shows in the demonstrations, but the likeliest next step is often the wrong one, and reinforcement
# learning has something to turn around.
FORGET_CARRY = 0.6
NUM_STEPS = 500
BATCH_SIZE = 32
LEARNING_RATE = 3e-3


def warm_start(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompts: Sequence[str],
    seed: int,
    num_steps: int = NUM_STEPS,
) -> None:
    """Train `model` in place on solutions of `prompts` that forget a part of the carries; prints the loss."""
    fit(model, demonstrations(tokenizer, prompts, random.Random(seed)), num_steps)


def fit(model: PreTrainedModel, batches: Iterator[dict[str, Tensor]], num_steps: int) -> None:
    """Train `model` in place on so many of the endless `batches`; prints the loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98))
    schedule = get_cosine_schedule_with_warmup(optimizer, num_steps // 10, num_steps)
    print(f"Warm start of a model with {model.num_parameters():,} parameters:", flush=True)
    start = time.monotonic()
    for step in range(1, num_steps + 1):
        loss = model(**next(batches)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 50 == 0 or step == num_steps:
            print(f"  step {step} of {num_steps}: loss {loss:.3f}, {time.monotonic() - start:.0f} s", flush=True)


def demonstrations(
    tokenizer: PreTrainedTokenizerFast, prompts: Sequence[str], rng: random.Random
) -> Iterator[dict[str, Tensor]]:
    """Give endless batches of random prompts with solutions; only solutions and their end tokens have labels."""
    while True:
        chosen = rng.choices(prompts, k=BATCH_SIZE)
        questions = tokenizer([question(tokenizer, prompt) for prompt in chosen])["input_ids"]
        solutions = [worked_solution(prompt, rng, FORGET_CARRY) + tokenizer.eos_token for prompt in chosen]
        answers = tokenizer(solutions)["input_ids"]
        ids = [asked + answered for asked, answered in zip(questions, answers, strict=True)]
        batch = tokenizer.pad({"input_ids": ids}, return_tensors="pt")  # on the left
        labels = torch.full_like(batch["input_ids"], -100)
        for row, answered in zip(labels, answers, strict=True):
            row[-len(answered) :] = torch.tensor(answered)
        yield {**batch, "labels": labels}


def question(tokenizer: PreTrainedTokenizerFast, prompt: str) -> str:
    """Give `prompt` as the user's turn, with the assistant's turn opened."""
    messages = [{"role": "user", "content": prompt}]
    return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
