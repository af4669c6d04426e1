"""A tiny model, its tokenizer and a trainer around them; nothing is downloaded."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from acpo_trl import ACPOConfig, ACPOTrainer

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_tokenizer():
    """One id per byte (0 to 255), then 256 pad, 257 start of turn, 258 end of turn and end of text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def qwen2(vocab_size=264, seed=0, **kwargs):
    """A random Qwen2; the default vocabulary is larger than the tokenizer's 259 entries, as real heads are."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=vocab_size,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        initializer_range=0.3,
        pad_token_id=256,
        eos_token_id=258,
        bos_token_id=None,
        **kwargs,
    )
    return Qwen2ForCausalLM(config)


def distinct_bytes(completions, **kwargs):
    """A reward with spread: how many different characters a completion has."""
    return [float(len(set(completion))) for completion in completions]


TRAINER_ARGUMENTS = ("peft_config", "tools", "rollout_func", "environment_factory", "eval_dataset", "callbacks")


def build_trainer(
    cls=ACPOTrainer,
    config_cls=ACPOConfig,
    model=None,
    reward_funcs=distinct_bytes,
    prompts=None,
    columns=None,
    **settings,
):
    """A trainer of `cls` on the tiny model; other keyword arguments go to its configuration."""
    trainer_arguments = {name: settings.pop(name) for name in TRAINER_ARGUMENTS if name in settings}
    defaults = {
        "per_device_train_batch_size": 4,
        "num_generations": 2,
        "max_completion_length": 6,
        "max_steps": 2,
        "logging_steps": 1,
        "learning_rate": 1e-2,
        "report_to": "none",
        "save_strategy": "no",
        "use_cpu": True,
        "bf16": False,
        "disable_tqdm": True,
    }
    prompts = [f"{i}+{i}=" for i in range(16)] if prompts is None else prompts
    return cls(
        model=qwen2() if model is None else model,
        reward_funcs=reward_funcs,
        args=config_cls(**{**defaults, **settings}),
        train_dataset=Dataset.from_dict({"prompt": prompts, **(columns or {})}),
        processing_class=byte_tokenizer(),
        **trainer_arguments,
    )


def make_batch(model, seed=1, batch=4, prompt=3, length=5, old="off_policy", temperature=1.0, advantages=None):
    """A rollout batch as TRL's loss takes it: greedy and random tokens, one short row, one masked tool token."""
    generator = torch.Generator().manual_seed(seed)
    vocab = model.config.vocab_size
    prompt_ids = torch.randint(0, 256, (batch, prompt), generator=generator)
    ids = torch.randint(0, vocab, (batch, length), generator=generator)
    with torch.no_grad():  # make about half of the tokens the mode
        for t in range(length):
            greedy = model(torch.cat([prompt_ids, ids[:, :t]], dim=1)).logits[:, -1].argmax(-1)
            use = torch.rand(batch, generator=generator) < 0.5
            ids[:, t] = torch.where(use, greedy, ids[:, t])
        logits = model(torch.cat([prompt_ids, ids], dim=1)).logits[:, prompt - 1 : -1] / temperature
        log_probs = logits.log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    completion_mask = torch.ones(batch, length, dtype=torch.long)
    completion_mask[1, 3:] = 0
    tool_mask = torch.ones_like(completion_mask)
    tool_mask[2, 1] = 0
    inputs = {
        "prompt_ids": prompt_ids,
        "prompt_mask": torch.ones_like(prompt_ids),
        "completion_ids": ids,
        "completion_mask": completion_mask,
        "tool_mask": tool_mask,
        "advantages": torch.tensor([1.2, -0.7, 0.4, -1.5])[:batch] if advantages is None else advantages,
        "num_items_in_batch": (completion_mask * tool_mask).sum(),
    }
    if old == "off_policy":
        inputs["old_per_token_logps"] = log_probs + 0.4 * torch.randn(log_probs.shape, generator=generator)
    return inputs


def loss_and_gradients(trainer, inputs):
    """Loss and gradients of one micro-batch, as the training loop computes them."""
    trainer.model.train()
    trainer.model.zero_grad()
    trainer.current_gradient_accumulation_steps = 1
    loss = trainer.compute_loss(trainer.model, inputs)
    loss.backward()
    return loss.detach(), {n: p.grad.clone() for n, p in trainer.model.named_parameters() if p.grad is not None}
