"""Train with episodes whose number of turns differs between two processes.

    accelerate launch ... uneven_turns.py (apart|together)

`together` lets the processes agree on their calls, as they do where generation is one thing for all of them.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from leaving import leave
from tiny import build_trainer
from uneven_episodes import Countdown

from acpo_trl import ACPOTrainer
from acpo_trl.rollouts import MultiTurnRollout


class Rollout(MultiTurnRollout):
    def __call__(self, prompts, trainer):
        trainer.is_fsdp_enabled = sys.argv[1] == "together"
        try:
            return super().__call__(prompts, trainer)
        finally:
            trainer.is_fsdp_enabled = False


class Counting(ACPOTrainer):
    """Keeps the number of rows of each generation call."""

    def _generate_single_turn(self, prompt_ids, *args, **kwargs):
        self.sizes = [*getattr(self, "sizes", []), len(prompt_ids)]
        return super()._generate_single_turn(prompt_ids, *args, **kwargs)


trainer = build_trainer(
    Counting,
    rollout_func=Rollout(Countdown, max_turns=4, max_turn_tokens=4),
    reward_funcs=None,
    prompts=["1", "3"],
    shuffle_dataset=False,
    max_completion_length=60,
    max_steps=1,
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=2,
    num_generations=2,
)
trainer.train()
expected = [1, 3][trainer.accelerator.process_index]
assert trainer.accelerator.num_processes == 2
assert trainer.recorded.num_turns == [expected] * 2
assert trainer.sizes == [2] * (3 if sys.argv[1] == "together" else expected)
assert trainer.state.log_history[0]["turns/count/mean"] == 2.0
print("every process made its calls")
leave()
