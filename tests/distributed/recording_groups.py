"""Record one or two groups of each step; the second of the three groups of a batch lies on both processes.

accelerate launch ... recording_groups.py OUTPUT_DIR
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from accelerate import PartialState
from leaving import leave
from tiny import build_trainer


def rollout(prompts, trainer):
    """Random ids seeded by prompt and global row; the third token comes from the environment."""
    first = trainer.accelerator.process_index * len(prompts)
    ids, masks = [], []
    for row, prompt in enumerate(prompts, start=first):
        generator = torch.Generator().manual_seed(1000 * len(prompt) + ord(prompt[0]) + row)
        length = 2 + row % 4
        ids.append(torch.randint(0, 256, (length,), generator=generator).tolist())
        masks.append([int(place != 2) for place in range(length)])
    encoded = trainer.processing_class(text=prompts)["input_ids"]
    return {"prompt_ids": encoded, "completion_ids": ids, "logprobs": None, "env_mask": masks}


def reward(completion_ids, **kwargs):
    return [sum(ids) % 7 / 7 for ids in completion_ids]


if __name__ == "__main__":
    trainer = build_trainer(
        prompts=[str(number) for number in range(9)],
        output_dir=sys.argv[1],
        per_device_train_batch_size=12 // PartialState(cpu=True).num_processes,
        num_generations=4,
        rollout_func=rollout,
        reward_funcs=reward,
        turn_estimator="outcome",
        credit_log={"every": 1, "choose": ["random", "best"]},
        max_steps=6,
    )
    trainer.train()
    leave()
