"""What credit costs: time and peak memory of one loss, forward and backward, beside plain GRPO.

    python scripts/benchmark_credit.py [--tokens 1024] [--vocabulary 151936] [--hidden 256] [--repeats 3]

Each variant runs in its own process; peak memory is the process's, time is CPU time, the median of the repeats. The
model is a random one-layer Qwen2 with a real vocabulary. Only tokens with at most half of the probability need work for
credit; `--unsure` sets their share, and the share that resulted is printed.
"""

import argparse
import json
import math
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

VARIANTS = ("grpo", "uniform", "acpo")


def measure(variant: str, args: argparse.Namespace) -> dict[str, float]:
    """Median CPU seconds of one loss, the process's peak memory in MiB, and the share of unsure tokens."""
    import torch
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    from acpo_trl import ACPOConfig, ACPOTrainer

    torch.manual_seed(0)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=args.vocabulary,
            hidden_size=args.hidden,
            intermediate_size=args.hidden,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_key_value_heads=4,
            tie_word_embeddings=True,
        )
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "<pad>": 1, "<eos>": 2}, unk_token="a")),
        pad_token="<pad>",
        eos_token="<eos>",
    )
    rows = 8
    settings = {
        "output_dir": tempfile.mkdtemp(),
        "per_device_train_batch_size": rows,
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
    }
    if variant == "grpo":
        cls, config = GRPOTrainer, GRPOConfig(**settings)
    else:
        cls, config = ACPOTrainer, ACPOConfig(credit_rule=variant, **settings)
    trainer = cls(
        model,
        lambda completions, **kwargs: [0.0] * len(completions),
        config,
        Dataset.from_dict({"prompt": ["a"] * rows}),
        processing_class=tokenizer,
    )
    inputs = batch(trainer.model, rows, args)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    seconds = []
    for _ in range(args.repeats + 1):
        start = time.process_time()
        trainer.compute_loss(trainer.model, inputs).backward()
        seconds.append(time.process_time() - start)
        trainer.model.zero_grad()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
    with torch.no_grad():
        log_probs = trainer.model(ids, labels=ids, fused_lm_head=True).log_probs
    unsure = (log_probs <= math.log(0.5)).float().mean().item()
    return {"seconds": statistics.median(seconds[1:]), "peak_mib": peak, "unsure": unsure}


def batch(model, rows: int, args: argparse.Namespace) -> dict:
    """Rollouts of which the asked share of tokens is drawn at random and the rest is greedy.

    The random model is made sharp by scaling its tied embedding, so that greedy tokens have most of the probability.
    """
    import torch

    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(args.sharpness)
    length = args.tokens // rows
    ids = torch.randint(0, args.vocabulary, (rows, length + 1))
    sure = torch.rand(rows, length) >= args.unsure
    with torch.no_grad():
        for t in range(length):
            greedy = model(ids[:, : t + 1]).logits[:, -1].argmax(-1)
            ids[:, t + 1] = torch.where(sure[:, t], greedy, ids[:, t + 1])
    ones = torch.ones(rows, length, dtype=torch.long)
    return {
        "prompt_ids": ids[:, :1],
        "prompt_mask": ones[:, :1],
        "completion_ids": ids[:, 1:],
        "completion_mask": ones,
        "advantages": torch.linspace(-1, 1, rows),
        "num_items_in_batch": ones.sum(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=151936)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--unsure", type=float, default=0.2)
    parser.add_argument("--sharpness", type=float, default=8.0)
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.variant:
        print(json.dumps(measure(args.variant, args)))
        return
    import torch
    import transformers
    import trl

    print(f"{platform.machine()}, {torch.get_num_threads()} threads, Python {platform.python_version()}, ", end="")
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, trl {trl.__version__}")
    print(f"{args.tokens} tokens, vocabulary {args.vocabulary}, hidden {args.hidden}")
    results = {}
    for variant in VARIANTS:
        command = [sys.executable, __file__, "--variant", variant, *sys.argv[1:]]
        results[variant] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        )
        result, base = results[variant], results["grpo"]
        print(f"{variant:8s} {result['seconds']:7.2f} s  x{result['seconds'] / base['seconds']:.3f}", end="   ")
        print(f"peak {result['peak_mib']:6.0f} MiB  x{result['peak_mib'] / base['peak_mib']:.3f}", end="   ")
        print(f"unsure {result['unsure']:.2f}", flush=True)


if __name__ == "__main__":
    main()
