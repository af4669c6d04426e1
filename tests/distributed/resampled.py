"""Two processes, of which only the first has a group that teaches nothing, replace it together.

accelerate launch ... resampled.py
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from accelerate.utils import gather_object
from leaving import leave
from tiny import build_trainer

from acpo_trl import ACPOTrainer

PROMPTS = ["u", "s1", "s22", "s333", "s4444", "s55555", "s666666", "s7777777"]


def rollout(prompts, trainer):
    """Longer completions for longer prompts; only the pairs of prompts with an `s` differ."""
    trainer.asked = [*getattr(trainer, "asked", []), prompts]
    encoded = trainer.processing_class(text=prompts)["input_ids"]
    ids = [[65 + (row % 2 if prompt[0] == "s" else 0)] * len(prompt) for row, prompt in enumerate(prompts)]
    return {"prompt_ids": encoded, "completion_ids": ids, "logprobs": None}


class Keeping(ACPOTrainer):
    def _generate_and_score_completions(self, inputs):
        self.batch = super()._generate_and_score_completions(inputs)
        return self.batch


def first_id(completion_ids, **kwargs):
    return [float(ids[0]) for ids in completion_ids]


def main():
    trainer = build_trainer(
        Keeping,
        prompts=PROMPTS,
        output_dir=tempfile.mkdtemp(),
        reward_funcs=first_id,
        rollout_func=rollout,
        shuffle_dataset=False,
        dynamic_sampling=2,
        max_steps=1,
    )
    trainer.train()
    process = trainer.accelerator.process_index
    assert trainer.accelerator.num_processes == 2
    asked = gather_object([trainer.asked])
    assert [set(prompts) for prompts in (*asked[0][:1], *asked[1][:1])] == [{"u", "s1"}, {"s22", "s333"}]
    assert len(asked[0]) == len(asked[1]) == 2, "one extra round, on both"
    assert sorted([*asked[0][1], *asked[1][1]]) == sorted(PROMPTS[4:] * 2), "each process draws prompts of its own"

    batch = trainer.batch
    lengths = batch["completion_mask"].sum(dim=1)
    own = [asked[0][1][0]] * 2 + ["s1"] * 2 if process == 0 else ["s22"] * 2 + ["s333"] * 2
    assert lengths.tolist() == [len(prompt) for prompt in own]
    assert batch["advantages"].sign().tolist() == [-1.0, 1.0] * 2
    assert batch["num_items_in_batch"] == sum(gather_object([lengths.sum().item()]))

    assert list(trainer._logs["prompt"]) == gather_object(own), "the table has the rows of both in order"
    assert list(trainer._logs["rewards"]["first_id"]) == [65.0, 66.0] * 4
    assert trainer.reward_table.rewards.flatten().tolist() == [65.0, 66.0] * 4
    log = trainer.state.log_history[0]
    assert [log[f"dynamic_sampling/{name}"] for name in ("rounds", "useless", "replaced")] == [1.0, 0.25, 0.25]
    print("both processes went through the extra round", flush=True)
    leave()


if __name__ == "__main__":
    main()
