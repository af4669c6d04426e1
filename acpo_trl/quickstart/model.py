"""The embedded model: Qwen2's architecture with half a million parameters, and a tokenizer of its own."""

import random
from collections.abc import Iterable

import torch
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer

from .tasks import problems, worked_solution

START, END = "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Qwen2's tokenizer with a small vocabulary of the task: reads any text, one token a digit, ChatML turns."""
    rng = random.Random(0)
    texts = [
        text
        for row in problems(100, seed=0)
        for text in (f"user\n{row['prompt']}", "assistant\n", worked_solution(row["prompt"], rng))
    ]
    return train_tokenizer(texts, vocab_size=320)


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Qwen2's tokenizer with at most `vocab_size` tokens, learned from `texts`, and ChatML turns."""
    tokenizer = Qwen2Tokenizer().train_new_from_iterator(
        texts, vocab_size=vocab_size, new_special_tokens=[START, END], show_progress=False
    )
    tokenizer.eos_token = END
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.padding_side = "left"
    return tokenizer


def build_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen2ForCausalLM:
    """An untrained model for `tokenizer`; the same weights for the same seed."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=512,
        # About 1/sqrt(hidden_size): the usual 0.02 is meant for wider models and triples the length of the warm start.
        initializer_range=0.08,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen2ForCausalLM(config)
