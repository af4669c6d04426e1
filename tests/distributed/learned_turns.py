"""Train with a critic, stop within a generation window, resume; the same on every process.

accelerate launch ... learned_turns.py FOLDER ESTIMATOR
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from accelerate.utils import gather_object
from leaving import leave
from tiny import build_trainer
from uneven_episodes import Countdown

from acpo_trl.rollouts import MultiTurnRollout


def train(folder, resume=None):
    trainer = build_trainer(
        rollout_func=MultiTurnRollout(Countdown, max_turns=4, max_turn_tokens=4),
        reward_funcs=None,
        prompts=["1", "3", "2", "4", "1", "3", "2", "4"],
        columns={"answer": ["x"] * 8},
        max_completion_length=60,
        max_steps=6,
        output_dir=str(folder),
        per_device_train_batch_size=2,
        num_generations=4,
        steps_per_generation=2,
        gradient_accumulation_steps=1,
        save_strategy="steps",
        save_steps=3,
        turn_estimator=sys.argv[2],
        kinds="mixed",
    )
    trainer.train(resume_from_checkpoint=resume)
    assert trainer.accelerator.num_processes == 2
    weights = [*trainer.model.parameters(), *(trainer.critic.parameters() if trainer.critic else [])]
    return torch.cat([weight.detach().flatten() for weight in weights]), trainer


folder = Path(sys.argv[1])
whole, trainer = train(folder / "whole")
if trainer.critic is not None:
    assert trainer.critic.head.weight.abs().sum() > 0
everywhere = gather_object([whole])
assert torch.equal(everywhere[0], everywhere[1]), "processes differ"
resumed, _ = train(folder / "resumed", str(folder / "whole" / "checkpoint-3"))
assert torch.equal(whole, resumed), "the resumed run differs"
print("resumed as if it had not stopped")
leave()
