"""Loss, gradient and mode distance of ACPOTrainer on a device, against full logits in float64.

    python scripts/gpu_check.py --device cuda

Covers what a CPU cannot: TRL's Triton head kernel, in float32 and under bfloat16 autocast, with a vocabulary of real
size. Prints the largest deviations and fails if one is too large.
"""

import argparse
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from acpo_trl import ACPOConfig, ACPOTrainer
from acpo_trl.mode import watch_mode

ROWS, PROMPT, LENGTH, TEMPERATURE = 4, 3, 64, 0.7
# Largest deviation of the distance to the mode in nats; bfloat16 logits are rounded to about 2^-8 of their size.
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.2}


def build_trainer(args: argparse.Namespace) -> ACPOTrainer:
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=args.vocabulary,
            hidden_size=64,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            initializer_range=0.1,
        )
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "<pad>": 1, "<eos>": 2}, unk_token="a")),
        pad_token="<pad>",
        eos_token="<eos>",
    )
    config = ACPOConfig(
        tempfile.mkdtemp(),
        per_device_train_batch_size=ROWS,
        num_generations=2,
        temperature=TEMPERATURE,
        use_cpu=args.device == "cpu",
        bf16=args.dtype == "bfloat16",
        report_to="none",
    )
    rows = Dataset.from_dict({"prompt": ["a"] * ROWS})
    return ACPOTrainer(
        model, lambda completions, **_: [0.0] * len(completions), config, rows, processing_class=tokenizer
    )


def rollout(model: Qwen2ForCausalLM, vocabulary: int) -> dict[str, torch.Tensor]:
    """Random completions, of which about half of the tokens are greedy."""
    ids = torch.randint(0, vocabulary, (ROWS, PROMPT + LENGTH), device=model.device)
    with torch.no_grad():
        for t in range(PROMPT, PROMPT + LENGTH):
            greedy = model(ids[:, :t]).logits[:, -1].argmax(-1)
            ids[:, t] = torch.where(torch.rand(ROWS, device=ids.device) < 0.5, greedy, ids[:, t])
    ones = torch.ones_like(ids)
    completion_mask = ones[:, PROMPT:].clone()
    completion_mask[1, LENGTH // 2 :] = 0
    return {
        "prompt_ids": ids[:, :PROMPT],
        "prompt_mask": ones[:, :PROMPT],
        "completion_ids": ids[:, PROMPT:],
        "completion_mask": completion_mask,
        "advantages": torch.tensor([1.0, -0.5, 0.3, -2.0], device=ids.device),
        "num_items_in_batch": completion_mask.sum(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", choices=TOLERANCE, default="float32")
    parser.add_argument("--vocabulary", type=int, default=151936)
    args = parser.parse_args()
    trainer = build_trainer(args)
    batch = rollout(trainer.model, args.vocabulary)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    loss = trainer.compute_loss(trainer.model, batch)
    loss.backward()

    mask = batch["completion_mask"].bool()
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    with torch.no_grad():
        with watch_mode(batch["completion_mask"], mask) as reading:
            log_probs, _, _ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, attention, LENGTH)
        exact = trainer.model.double()
        logits = exact(ids, attention_mask=attention).logits[:, -LENGTH - 1 : -1].double() / TEMPERATURE
    expected = logits.log_softmax(-1)
    own = expected.gather(-1, batch["completion_ids"].unsqueeze(-1)).squeeze(-1)
    gap = (reading.gap.double() - (expected.amax(-1) - own))[mask].abs().max().item()
    value = (log_probs.double() - own)[mask].abs().max().item()
    print(
        f"{args.device}, {args.dtype}: loss {loss.item():.6f}, deviation from float64 of log pi(y) {value:.2e}, ",
        end="",
    )
    print(f"of log pi(v*) - log pi(y) {gap:.2e}")
    if max(gap, value) > TOLERANCE[args.dtype] or not loss.isfinite():
        raise SystemExit(f"deviation above {TOLERANCE[args.dtype]}")


if __name__ == "__main__":
    main()
