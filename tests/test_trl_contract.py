"""Every detail of TRL that acpo_trl relies on, one test each; the file to read when TRL is upgraded."""

import inspect

import pytest
import torch
import trl
import trl.trainer.utils as trl_utils
from packaging.version import Version
from tiny import make_batch, qwen2
from transformers import Trainer
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import RepeatSampler, shuffle_sequence_dict, split_tensor_dict

from acpo_trl import ACPOTrainer


@pytest.fixture
def grpo(make_trainer):
    trainer = make_trainer(cls=GRPOTrainer, config_cls=GRPOConfig)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    return trainer


def test_trl_is_a_tested_version():
    assert Version("1.16") <= Version(trl.__version__) < Version("1.17")


def test_constructor_takes_the_arguments_of_grpo_trainer_in_its_order():
    ours, theirs = inspect.signature(ACPOTrainer.__init__), inspect.signature(GRPOTrainer.__init__)
    assert [(p.name, p.kind) for p in ours.parameters.values()] == [
        (p.name, p.kind) for p in theirs.parameters.values()
    ]
    assert [p.default for p in ours.parameters.values()] == [p.default for p in theirs.parameters.values()]


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (GRPOTrainer, "compute_loss", ["self", "model", "inputs", "return_outputs", "num_items_in_batch"]),
        (GRPOTrainer, "_generate_and_score_completions", ["self", "inputs"]),
        (GRPOTrainer, "_get_train_sampler", ["self", "dataset"]),
        (GRPOTrainer, "_load_optimizer_and_scheduler", ["self", "checkpoint"]),
        (Trainer, "_save_rng_state", ["self", "output_dir"]),
        (Trainer, "_load_rng_state", ["self", "checkpoint"]),
    ],
)
def test_overridden_methods_have_the_expected_parameters(owner, name, parameters):
    assert list(inspect.signature(getattr(owner, name)).parameters) == parameters


def test_head_kernel_is_called_by_position_with_the_expected_names():
    assert list(inspect.signature(trl_utils._ChunkedLogProbFunction.forward).parameters) == [
        "ctx",
        "hidden",
        "weight",
        "bias",
        "targets",
        "temperature",
        "chunk_size",
        "final_logit_softcapping",
        "logit_scale",
        "outputs",
    ]


def test_the_loss_calls_the_head_kernel_once_and_looks_it_up_by_name(grpo, monkeypatch):
    calls = []
    kernel = trl_utils._ChunkedLogProbFunction

    class Counting:
        @staticmethod
        def apply(*args):
            calls.append(len(args))
            return kernel.apply(*args)

    monkeypatch.setattr(trl_utils, "_ChunkedLogProbFunction", Counting)
    grpo.compute_loss(grpo.model, make_batch(grpo.model))
    assert calls == [9]


def test_the_first_output_of_the_head_kernel_is_the_log_probability():
    hidden, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, 0.0], [0.0, 0.5], [1.0, 1.0]])
    got = trl_utils._ChunkedLogProbFunction.apply(
        hidden, weight, None, torch.tensor([2]), 0.5, 2, None, 1.0, ("entropy",)
    )
    expected = ((hidden @ weight.t()) / 0.5).log_softmax(-1)[0, 2]
    assert got[0].item() == pytest.approx(expected.item(), abs=1e-6)


def test_logit_transform_scales_before_it_caps():
    from trl.kernels.chunked_logprob import _torch_transform

    z = torch.tensor([2.0])
    assert _torch_transform(z, 0.5, 3.0, 1.0, True).item() == pytest.approx(3 * torch.tanh(torch.tensor(1 / 3)).item())
    assert _torch_transform(z, 0.5, 1.0, 1.0, False).item() == 1.0


def test_the_loss_reads_advantages_and_old_log_probabilities_after_its_forward(grpo, monkeypatch):
    events = []
    forward = GRPOTrainer._get_per_token_logps_and_entropies

    class Recording(dict):
        def __getitem__(self, key):
            events.append(key)
            return super().__getitem__(key)

        def get(self, key, default=None):
            events.append(key)
            return super().get(key, default)

    def recorded(self, *args, **kwargs):
        events.append("forward")
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(GRPOTrainer, "_get_per_token_logps_and_entropies", recorded)
    grpo.compute_loss(grpo.model, Recording(make_batch(grpo.model)))
    after = events[events.index("forward") + 1 :]
    assert events.count("forward") == 1
    assert "advantages" in after
    assert "old_per_token_logps" in after
    assert "advantages" not in events[: events.index("forward")]


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo"])
def test_the_loss_accepts_one_advantage_per_token(make_trainer, loss_type):
    trainer = make_trainer(cls=GRPOTrainer, config_cls=GRPOConfig, loss_type=loss_type)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    inputs = make_batch(trainer.model)
    per_row = trainer.compute_loss(trainer.model, inputs)
    per_token = trainer.compute_loss(
        trainer.model, {**inputs, "advantages": inputs["advantages"].unsqueeze(1).expand(4, 5)}
    )
    assert per_row.item() == per_token.item()


def test_completion_mask_and_tool_mask_together_select_the_tokens_of_the_loss(grpo):
    """Otherwise the action mask would disagree with the loss."""
    inputs = make_batch(grpo.model)
    masked = (inputs["completion_mask"] * inputs["tool_mask"]) == 0
    advantages = inputs["advantages"].unsqueeze(1).expand(4, 5)
    changed = torch.where(masked, 1e6, advantages)
    first = grpo.compute_loss(grpo.model, {**inputs, "advantages": advantages})
    assert first.item() == grpo.compute_loss(grpo.model, {**inputs, "advantages": changed}).item()


def test_extra_tensors_survive_shuffling_and_splitting_row_by_row():
    torch.manual_seed(0)
    rows = {"completion_ids": torch.arange(8).unsqueeze(1), "completion_row": torch.arange(8)}
    parts = split_tensor_dict(shuffle_sequence_dict(rows), 4)
    assert [p["completion_row"].tolist() for p in parts] == [p["completion_ids"][:, 0].tolist() for p in parts]
    assert sorted(r for p in parts for r in p["completion_row"].tolist()) == list(range(8))


def test_completions_table_is_kept_in_the_expected_buffers(grpo):
    assert grpo._logs["advantages"].maxlen == grpo.args.generation_batch_size
    assert grpo._logs["extra"]["new"].maxlen == grpo.args.generation_batch_size
    assert set(grpo._metrics) == {"train", "eval"}


def test_generation_counter_and_buffer_have_the_expected_names(grpo):
    assert grpo._step == 0
    assert grpo._buffered_inputs is None
    assert grpo._total_train_tokens == 0


def test_train_sampler_draws_one_permutation_an_epoch_from_its_own_generator():
    sampler = RepeatSampler(list(range(7)), mini_repeat_count=1, batch_size=1, seed=3)
    first, second = list(sampler), list(sampler)
    generator = torch.Generator().manual_seed(3)
    assert first == torch.randperm(sampler.num_samples, generator=generator).tolist()
    assert second == torch.randperm(sampler.num_samples, generator=generator).tolist()


def test_trainer_state_is_the_last_file_of_a_checkpoint():
    """A checkpoint with a readable trainer_state.json is complete."""
    source = inspect.getsource(Trainer._save_checkpoint)
    order = [source.index(step) for step in ("save_model(", "_save_rng_state(", "TRAINER_STATE_NAME")]
    assert order == sorted(order)


def test_random_state_is_restored_after_state_and_before_the_first_resumed_step():
    source = inspect.getsource(Trainer._run_epoch)
    assert source.index("_load_rng_state") < source.index("training_step")


def test_vocabulary_bound_of_scores_is_the_head_not_the_tokenizer(grpo):
    assert qwen2().lm_head.weight.size(0) == 264 > len(grpo.processing_class)


@pytest.mark.slow
def test_evidence_of_rewards_waits_by_column_and_absent_columns_get_none(make_trainer):
    def reward(completions, log_extra, **columns):
        log_extra("length", [len(text) for text in completions])
        return [0.0] * len(completions)

    trainer = make_trainer(cls=GRPOTrainer, config_cls=GRPOConfig, reward_funcs=reward, max_steps=1)
    waiting = []
    trainer._pending_extra_logs["early"] = [1, 2, 3, 4]
    inner = trainer._calculate_rewards
    trainer._calculate_rewards = lambda *args: (inner(*args), waiting.extend(trainer._pending_extra_logs))[0]
    trainer.train()
    assert waiting == ["early", "length"]
    assert list(trainer._logs["extra"]["early"]) == [1, 2, 3, 4]
    assert len(trainer._logs["extra"]["length"]) == len(trainer._logs["prompt"]) == 4


@pytest.mark.slow
def test_reward_weights_are_read_when_rewards_are_summed(make_trainer):
    trainer = make_trainer(
        cls=GRPOTrainer, config_cls=GRPOConfig, reward_funcs=lambda completions, **_: [1.0] * 4, max_steps=1
    )
    trainer.reward_weights = torch.tensor([7.0])
    trainer.train()
    assert trainer.state.log_history[0]["reward"] == 7.0


def test_a_model_is_unwrapped_for_generation_by_wrapper_and_accelerator():
    from trl.models import unwrap_model_for_generation

    assert list(inspect.signature(unwrap_model_for_generation).parameters)[:3] == [
        "model",
        "accelerator",
        "gather_deepspeed3_params",
    ]
