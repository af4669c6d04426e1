"""Models and datasets that cannot be trained are refused before the first step."""

import copy

import pytest
from datasets import Dataset
from tiny import distinct_bytes, qwen2

from acpo_trl import ACPOConfig, ACPOTrainer


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompts": []}, "nothing to train on"),
        ({"reward_funcs": lambda completions, **kwargs: [1.0]}, "returned 1 rewards; expected a list of 4"),
        pytest.param(
            {"reward_funcs": lambda completions, **kwargs: [0.0, 1.0, float("inf"), 1.0]},
            "returned inf for completion 2",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_bad_input_stops_before_the_first_step(make_trainer, change, message):
    with pytest.raises(ValueError, match=message):
        make_trainer(**{"prompts": None, **change}).train()


def test_a_dataset_without_prompts_is_refused_with_its_columns(make_trainer, tokenizer, tmp_path):
    with pytest.raises(ValueError, match=r"has the columns \['question'\].*rename_column"):
        ACPOTrainer(
            qwen2(),
            distinct_bytes,
            ACPOConfig("unused", use_cpu=True, bf16=False, report_to="none"),
            Dataset.from_dict({"question": ["1"]}),
            processing_class=tokenizer,
        )


def test_a_model_without_trainable_parameters_is_refused(make_trainer):
    model = qwen2().requires_grad_(False)
    with pytest.raises(ValueError, match="no trainable parameter"):
        make_trainer(model=model, gradient_checkpointing=False)


def test_a_tokenizer_without_pad_and_eos_is_refused(make_trainer, tokenizer):
    bare = copy.deepcopy(tokenizer)
    bare.pad_token = bare.eos_token = None
    with pytest.raises(ValueError, match="neither a pad nor an eos token"):
        ACPOTrainer(
            qwen2(),
            distinct_bytes,
            ACPOConfig("unused", use_cpu=True, bf16=False, report_to="none"),
            Dataset.from_dict({"prompt": ["a"]}),
            processing_class=bare,
        )


@pytest.mark.slow
def test_fewer_prompts_than_a_generation_batch_are_refused(make_trainer):
    with pytest.raises(ValueError, match=r"holds 3 prompts.*needs 4"):
        make_trainer(prompts=["a", "b", "c"], gradient_accumulation_steps=2).train()
