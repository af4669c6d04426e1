"""Train on rollouts that do not depend on the number of processes and write what was seen to a JSON file.

    accelerate launch ... fixed_rollouts.py OUTPUT.json LOSS_TYPE|turns ...

`turns` gives each turn its own advantage, from rewards of whole completions and of turns.

The generation batch is eight completions of one prompt, so with two processes every group spans both.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from accelerate import PartialState
from leaving import leave
from tiny import build_trainer

from acpo_trl.rewards import reward as declared

LENGTHS = [6, 3, 5, 1, 4, 6, 2, 5]


def rollout(prompts, trainer):
    """Random ids seeded by prompt and global row; every third token comes from the environment."""
    first = trainer.accelerator.process_index * len(prompts)
    ids, masks = [], []
    for row, prompt in enumerate(prompts, start=first):
        generator = torch.Generator().manual_seed(1000 * len(prompt) + ord(prompt[0]) + row)
        ids.append(torch.randint(0, 256, (LENGTHS[row],), generator=generator).tolist())
        masks.append([int(t % 3 != 1) for t in range(LENGTHS[row])])
    encoded = trainer.processing_class(text=prompts)["input_ids"]
    return {"prompt_ids": encoded, "completion_ids": ids, "logprobs": None, "env_mask": masks}


def reward(completion_ids, **kwargs):
    return [sum(ids) % 7 / 7 for ids in completion_ids]


@declared(kind="process", level="turn", weight=0.5)
def turn_reward(completion_ids, turns, **kwargs):
    return [
        [sum(ids[slice(*turn.span)]) % 5 / 5 if k != 1 else None for k, turn in enumerate(views)]
        for ids, views in zip(completion_ids, turns, strict=True)
    ]


TURNS = {"turn_estimator": "outcome", "turn_estimator_options": {"gamma": 0.9}, "reward_funcs": [reward, turn_reward]}


def train(name, **settings):
    loss_type = "dapo" if name == "turns" else name
    trainer = build_trainer(
        prompts=["1", "22", "333", "4444"],
        output_dir=f"{sys.argv[1]}.{name}",
        loss_type=loss_type,
        per_device_train_batch_size=8 // PartialState(cpu=True).num_processes,
        num_generations=8,
        rollout_func=rollout,
        log_completions=True,
        max_steps=3,
        num_iterations=2,
        **{"reward_funcs": reward, **(TURNS if name == "turns" else {}), **settings},
    )
    trainer.train()
    advantages = list(trainer._logs["extra"]["token_advantages"])
    weights = {n: p.detach().double().sum().item() for n, p in trainer.model.named_parameters()}
    return {"logs": trainer.state.log_history, "advantages": advantages, "weights": weights}, trainer.accelerator


if __name__ == "__main__":
    results = {}
    for name in sys.argv[2:]:
        results[name], accelerator = train(name, credit_normalization="sign" if name == "grpo" else "none")
    results["num_processes"] = accelerator.num_processes
    if accelerator.is_main_process:
        Path(sys.argv[1]).write_text(json.dumps(results))
    leave()
