"""TRL's real tool loop and environments, driven by a scripted policy: credit goes to the policy's tokens only."""

from pathlib import Path

import pytest
import torch
import trl
from datasets import Dataset
from tiny import byte_tokenizer, qwen2

from acpo_trl import ACPOConfig, ACPOTrainer

TEMPLATE = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
CALL = '<tool_call>\n{"name": "double", "arguments": {"x": 21}}\n</tool_call>'


def double(x: int) -> int:
    """
    Double a number.

    Args:
        x: The number.
    """
    return 2 * x


class Doubler:
    def reset(self, **kwargs):
        return None

    def double(self, x: int) -> int:
        """
        Double a number.

        Args:
            x: The number.
        """
        return 2 * x


class Scripted(ACPOTrainer):
    """Says the next line of its script, for every row alike."""

    def _generate_single_turn(self, prompt_ids, images, multimodal_fields, num_generations, **kwargs):
        text = self.script.pop(0)
        end = [self.processing_class.eos_token_id]
        rows = [self.processing_class(f"{text}{'!' * row}")["input_ids"] + end for row in range(len(prompt_ids))]
        return rows, None


def test_an_environment_may_bring_the_prompts(tmp_path, make_trainer):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    config = ACPOConfig(str(tmp_path), use_cpu=True, bf16=False, report_to="none")
    rows = Dataset.from_dict({"seed": list(range(4))})
    trainer = ACPOTrainer(qwen2(), length, config, rows, processing_class=tokenizer, environment_factory=Doubler)
    assert trainer.train_dataset.column_names == ["seed"]


def length(completions, **kwargs):
    return [float(len(completion[-1]["content"])) for completion in completions]


@pytest.mark.parametrize("how", [{"tools": [double]}, {"environment_factory": Doubler}], ids=["tools", "environment"])
def test_only_the_tokens_of_the_policy_are_credited(tmp_path, how):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    trainer = Scripted(
        qwen2(),
        length,
        ACPOConfig(
            str(tmp_path),
            use_cpu=True,
            bf16=False,
            report_to="none",
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=400,
            max_steps=1,
            logging_steps=1,
            log_completions=True,
            save_strategy="no",
        ),
        Dataset.from_dict({"prompt": [[{"role": "user", "content": "What is 2 x 21?"}]] * 2}),
        processing_class=tokenizer,
        **how,
    )
    trainer.script = [CALL, "It is 42"]
    batches = []
    generate = trainer._generate_and_score_completions
    trainer._generate_and_score_completions = lambda inputs: batches.append(generate(inputs)) or batches[0]
    trainer.train()
    batch = batches[0]
    said = [
        tokenizer.decode(ids[mask.bool()])
        for ids, mask in zip(batch["completion_ids"], batch["tool_mask"] * batch["completion_mask"], strict=True)
    ]
    assert said == [f"{CALL}{bang}<|im_end|>It is 42{bang}<|im_end|>" for bang in ("", "!")]
    for row, values in enumerate(trainer._logs["extra"]["token_advantages"]):
        mask = (batch["tool_mask"] * batch["completion_mask"])[row][: len(values)].bool()
        values = torch.tensor(values)
        assert (values[~mask] == 0).all()
        assert (values[mask] != 0).all()
        assert (~mask).sum() > 10
    assert trainer.state.log_history[0]["tools/call_frequency"] > 0
