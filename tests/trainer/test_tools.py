"""TRL's real tool loop and environments, driven by a scripted policy: credit goes to the policy's tokens only."""

import pytest
import torch
from datasets import Dataset
from scripted import TEMPLATE, Doubler, call, double, length, scripted_trainer
from tiny import byte_tokenizer, qwen2

from acpo_trl import ACPOConfig, ACPOTrainer

CALL = call("double", x=21)


def test_an_environment_may_bring_the_prompts(tmp_path, make_trainer):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    config = ACPOConfig(str(tmp_path), use_cpu=True, bf16=False, report_to="none")
    rows = Dataset.from_dict({"seed": list(range(4))})
    trainer = ACPOTrainer(qwen2(), length, config, rows, processing_class=tokenizer, environment_factory=Doubler)
    assert trainer.train_dataset.column_names == ["seed"]


@pytest.mark.parametrize(
    "how",
    [pytest.param({"tools": [double]}, marks=pytest.mark.slow), {"environment_factory": Doubler}],
    ids=["tools", "environment"],
)
def test_only_the_tokens_of_the_policy_are_credited(tmp_path, how):
    script = [[CALL, f"{CALL}!"], ["It is 42", "It is 42!"]]
    trainer = scripted_trainer(tmp_path, script, log_completions=True, **how)
    trainer.train()
    batch, tokenizer = trainer.batches[0], trainer.processing_class
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
