"""Plays scripted policies through TRL's real tool loop."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trl
from datasets import Dataset
from tiny import byte_tokenizer, qwen2

from acpo_trl import ACPOConfig, ACPOTrainer
from acpo_trl.envs.base import TurnScore
from acpo_trl.rollouts import view_turns

TEMPLATE = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"


class Played(NamedTuple):
    """An episode behind TRL's loop."""

    environment: Any
    messages: list[dict]
    scores: list[TurnScore]


class Scripted(ACPOTrainer):
    """Says line t of its script in turn t; the name of the script stands at the end of the prompt."""

    def _generate_single_turn(self, prompt_ids, images, multimodal_fields, num_generations, **kwargs):
        return [self.processing_class(self._line(ids))["input_ids"] + [258] for ids in prompt_ids], None

    def _line(self, ids):
        text = self.processing_class.decode(ids)
        name = text.split(" #")[1].split("#")[0]
        return self.scripts[name][text.count("<|im_start|>assistant") - 1]


@pytest.fixture(scope="session")
def play_scripts(tmp_path_factory):
    """From a factory of environments and `name -> (row, texts of the turns)` to `name -> Played`."""

    def play_all(factory, scripts, max_completion_length=1500):
        rows = []
        for name, (row, _) in scripts.items():
            content = f"{row['prompt'][-1]['content']} #{name}#"
            rows.append({**row, "name": name, "prompt": [{"role": "user", "content": content}]})
        tokenizer = byte_tokenizer()
        tokenizer.chat_template = TEMPLATE.read_text()
        seen = {}

        def record(completions, environments, name, **columns):
            seen.update(zip(name, zip(completions, environments, strict=True), strict=True))
            return [float(index) for index in range(len(name))]

        config = ACPOConfig(
            str(tmp_path_factory.mktemp("run")),
            use_cpu=True,
            bf16=False,
            report_to="none",
            per_device_train_batch_size=2 * len(rows),
            num_generations=2,
            max_completion_length=max_completion_length,
        )
        trainer = Scripted(
            qwen2(), record, config, Dataset.from_list(rows), processing_class=tokenizer, environment_factory=factory
        )
        trainer.scripts = {name: texts for name, (_, texts) in scripts.items()}
        batch = trainer._generate_and_score_completions(next(iter(trainer.get_train_dataloader())))
        assert batch["advantages"].isfinite().all()
        return {name: _judged(*episode) for name, episode in seen.items()}

    return play_all


def _judged(messages, environment):
    num_turns = sum(message["role"] == "assistant" for message in messages)
    return Played(environment, messages, environment._score(view_turns(messages, [-1], num_turns)))
