"""Groups that teach nothing are replaced by groups of other prompts, within a bound.

The first letter of a prompt says what its group is like: `u` gives every completion the same reward, `s` spreads them.
"""

import pandas as pd
import pytest
import torch
from datasets import Dataset
from peft import LoraConfig
from scripted import Doubler, call, scripted_trainer
from tiny import build_trainer

from acpo_trl import ACPOConfig, ACPOTrainer
from acpo_trl.trainer.resampling import fill, merge_batches
from acpo_trl.trainer.scoring import ScoredTurns

MIXED = ["u", "su", "uuu", "ssss", "sssss", "ssssss"]
EOS = 258
ALL_LOG_PROBS = {"num_iterations": 2, "beta": 0.1, "peft_config": LoraConfig(r=2, target_modules=["q_proj"])}


def rollout(prompts, trainer):
    """Lengths differ by prompt and row, the last token but one comes from the environment, `t` never ends."""
    trainer.asked = [*getattr(trainer, "asked", []), prompts]
    ids, masks, log_probs = [], [], []
    for row, prompt in enumerate(prompts):
        first = 65 + (row % 2 if prompt[0] != "u" else 0)
        ids.append([first] * (len(prompt) + row % 2) + [10, 90 if prompt[0] == "t" else EOS])
        masks.append([1] * (len(ids[-1]) - 2) + [0, 1])
        log_probs.append([-float(len(prompt))] * len(ids[-1]))
    encoded = trainer.processing_class(text=prompts)["input_ids"]
    return {"prompt_ids": encoded, "completion_ids": ids, "logprobs": log_probs, "env_mask": masks}


def first_id(completion_ids, **kwargs):
    return [float(ids[0]) for ids in completion_ids]


class Keeping(ACPOTrainer):
    """Keeps every batch that was sampled, and every one that was trained on."""

    def _sample(self, inputs):
        self.sampled = [*getattr(self, "sampled", []), super()._sample(inputs)]
        return self.sampled[-1]

    def _generate_and_score_completions(self, inputs):
        self.batches = [*getattr(self, "batches", []), super()._generate_and_score_completions(inputs)]
        return self.batches[-1]


def trained(tmp_path, prompts, **settings):
    """A trainer after one step over the first two prompts in the dataset, each with two completions."""
    defaults = {
        "dynamic_sampling": 3,
        "rollout_func": rollout,
        "reward_funcs": first_id,
        "shuffle_dataset": False,
        "max_steps": 1,
        "log_completions": True,
    }
    trainer = build_trainer(Keeping, prompts=prompts, output_dir=str(tmp_path / "run"), **{**defaults, **settings})
    trainer.train()
    return trainer


def texts(trainer, rows="prompt"):
    ids, mask = (trainer.batches[0][f"{rows}_{what}"] for what in ("ids", "mask"))
    return [trainer.processing_class.decode(row[keep.bool()]) for row, keep in zip(ids, mask, strict=True)]


def shares(trainer):
    log = trainer.state.log_history[0]
    return [log[f"dynamic_sampling/{name}"] for name in ("rounds", "useless", "replaced")]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [None, "outcome"])
def test_a_group_without_spread_makes_room_for_one_with(tmp_path, estimator):
    trainer = trained(tmp_path, ["su", "u", "sss", "ssss"], turn_estimator=estimator)
    assert texts(trainer)[:2] == ["su", "su"]
    assert texts(trainer)[2:] in (["sss"] * 2, ["ssss"] * 2)
    assert shares(trainer) == [1.0, 0.5, 0.5]
    advantages = trainer.batches[0]["advantages"]
    assert (advantages if estimator is None else advantages[:, 0]).sign().tolist() == [-1.0, 1.0] * 2


@pytest.mark.slow
def test_rounds_end_at_the_bound_and_open_places_keep_their_group(tmp_path):
    trainer = trained(tmp_path, ["u", "uu", "uuu", "uuuu"], dynamic_sampling=2)
    assert len(trainer.asked) == 3
    assert texts(trainer) == ["u", "u", "uu", "uu"]
    assert trainer.batches[0]["advantages"].tolist() == [0.0] * 4
    assert shares(trainer) == [2.0, 1.0, 0.0]


@pytest.mark.slow
def test_other_prompts_are_asked_before_any_comes_again(tmp_path):
    trainer = trained(tmp_path, [*"u" * 2, "u3", "u33", "u333", "u3333"], dynamic_sampling=3)
    first, second, third, last = (set(prompts) for prompts in trainer.asked)
    assert first == {"u"}
    assert second | third == {"u3", "u33", "u333", "u3333"}
    assert last == {"u"}


@pytest.mark.slow
def test_nothing_is_sampled_again_where_every_group_teaches(tmp_path):
    trainer = trained(tmp_path, ["s", "ss", "sss"])
    assert len(trainer.asked) == 1
    assert shares(trainer) == [0.0, 0.0, 0.0]


@pytest.mark.slow
def test_a_group_whose_tokens_are_all_masked_teaches_nothing(tmp_path):
    trainer = trained(tmp_path, ["s", "tt", "sss", "ssss"], mask_truncated_completions=True)
    assert "tt" not in texts(trainer)
    assert trainer.batches[0]["completion_mask"].any(dim=1).all()


@pytest.mark.slow
def test_rounding_of_the_mean_is_no_spread(tmp_path):
    trainer = trained(
        tmp_path,
        ["u", "uu", "s", "ss"],
        reward_funcs=lambda prompts, completion_ids, **kwargs: [0.7] * len(prompts),
        num_generations=8,
        per_device_train_batch_size=8,
        dynamic_sampling=1,
    )
    assert trainer.batches[0]["advantages"].abs().max() > 1e-6  # what TRL makes of the rounding
    assert shares(trainer) == [1.0, 1.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [None, "outcome"])
def test_rows_of_the_merged_batch_are_those_that_were_sampled(tmp_path, estimator):
    trainer = trained(tmp_path, MIXED, turn_estimator=estimator, dynamic_sampling=1, **ALL_LOG_PROBS)
    (batch,), sampled = trainer.batches, trainer.sampled
    names = set(sampled[0]) - {"num_items_in_batch"}
    assert {"tool_mask", "turn_ids", "old_per_token_logps", "ref_per_token_logps", "sampling_per_token_logps"} <= names
    assert len(sampled) == 2 and shares(trainer) == [1.0, 0.5, 0.5]
    assert [b["prompt_ids"].size(1) for b in sampled] != [batch["prompt_ids"].size(1)] * 2
    for row, prompt in enumerate(texts(trainer)):
        place = trainer.asked[0].index("su") if prompt == "su" else trainer.asked[1].index(prompt)
        origin = sampled[0 if prompt == "su" else 1]
        for name in names:
            expected, got = origin[name][place + row % 2], batch[name][row]
            if got.dim():
                padding = got[: -len(expected)] if name.startswith("prompt") else got[len(expected) :]
                got = got[-len(expected) :] if name.startswith("prompt") else got[: len(expected)]
                value = {"prompt_ids": 256, "completion_ids": 256, "tool_mask": 1, "turn_ids": -1}.get(name, 0)
                assert (padding == value).all(), name
            assert torch.equal(got, expected), name


@pytest.mark.slow
def test_log_probs_of_padding_are_what_trl_makes_of_it(tmp_path):
    trainer = trained(tmp_path, MIXED, dynamic_sampling=0, **ALL_LOG_PROBS)
    batch = trainer.batches[0]
    is_padding = batch["completion_mask"] == 0
    assert is_padding.any()
    for name in ("old_per_token_logps", "ref_per_token_logps"):
        assert (batch[name][is_padding] == 0).all()


@pytest.mark.slow
def test_the_loss_divides_by_the_tokens_of_the_merged_batch(tmp_path):
    trainer = trained(tmp_path, MIXED)
    batch = trainer.batches[0]
    assert batch["num_items_in_batch"] == (batch["completion_mask"] * batch["tool_mask"]).sum()
    assert batch["num_items_in_batch"] != trainer.sampled[0]["num_items_in_batch"]


@pytest.mark.slow
def test_what_the_trainer_keeps_is_about_the_merged_batch(tmp_path):
    trainer = trained(tmp_path, MIXED)
    batch = trainer.batches[0]
    for index, row in enumerate(trainer.recorded.rows):
        length = len(row.completion_ids)
        assert batch["completion_ids"][index, :length].tolist() == row.completion_ids
        assert batch["turn_ids"][index, :length].tolist() == row.turn_ids
    prompts = texts(trainer)
    assert [row["prompt"] for row in trainer.rollout_rows] == prompts
    assert trainer.reward_table.rewards.flatten().tolist() == batch["completion_ids"][:, 0].tolist()
    assert trainer.recorded.num_turns == [2] * 4 == [len(keys) for keys in trainer.state_keys]


@pytest.mark.slow
def test_the_completions_table_shows_what_was_trained_on(tmp_path):
    def late(prompts, completion_ids, log_extra, **kwargs):
        if "u" not in prompts:  # the extra round only
            log_extra("letter", [prompt[:1] for prompt in prompts])
        return first_id(completion_ids)

    trainer = trained(tmp_path, ["su", "u", "sss", "ssss"], reward_funcs=late)
    table = pd.read_parquet(tmp_path / "run" / "completions" / "completions_00001.parquet")
    assert table["prompt"].tolist() == texts(trainer)
    assert table["late"].tolist() == [65.0, 66.0] * 2
    assert table["letter"].fillna("none").tolist() == ["none", "none", "s", "s"]
    lengths = trainer.batches[0]["completion_mask"].sum(dim=1).tolist()
    assert [len(values) for values in table["token_advantages"]] == lengths
    assert all((a < 0) == (row % 2 == 0) for row, a in enumerate(table["advantage"]))


@pytest.mark.slow
def test_rows_of_an_environment_are_told_apart_by_their_other_columns(tmp_path):
    trainer = scripted_trainer(
        tmp_path,
        [["same", "same"], [call("double", x=21), "a longer one"], ["42"]],
        environment_factory=Doubler,
        rows=[{"level": 1}, {"level": 2}],
        shuffle_dataset=False,
        dynamic_sampling=1,
    )
    trainer.train()
    assert trainer.script == []
    assert [row["level"] for row in trainer.rollout_rows] == [2, 2]
    assert trainer.recorded.num_turns == [2, 1]
    batch = trainer.batches[0]
    assert batch["turn_ids"].amax(dim=1).tolist() == [1, 0]
    assert torch.equal((batch["turn_ids"] >= 0).long(), batch["completion_mask"] * batch["tool_mask"])
    assert batch["advantages"].sign().tolist() == [-1.0, 1.0]


@pytest.mark.slow
def test_evaluation_is_not_sampled_again(tmp_path):
    trainer = trained(
        tmp_path,
        ["s", "ss"],
        eval_dataset=Dataset.from_dict({"prompt": ["u", "uu"]}),
        per_device_eval_batch_size=4,
    )
    trainer.asked = []
    metrics = trainer.evaluate()
    assert [set(prompts) for prompts in trainer.asked] == [{"u", "uu"}]
    assert not any("dynamic_sampling" in name for name in metrics)


def has_many(completions, **kwargs):
    """Seldom differs within a pair."""
    return [float(len(set(text)) > 4) for text in completions]


def always_differs(completions, **kwargs):
    return [row % 2 + len(set(text)) / 10 for row, text in enumerate(completions)]


def test_a_run_that_replaces_nothing_equals_one_without(tmp_path):
    runs = []
    for rounds in (0, 3):
        trainer = build_trainer(
            output_dir=str(tmp_path / str(rounds)), reward_funcs=always_differs, dynamic_sampling=rounds, max_steps=3
        )
        trainer.train()
        runs.append(trainer)
    plain, bounded = runs
    for expected, got in zip(plain.state.log_history[:3], bounded.state.log_history[:3], strict=True):
        assert {name: got[name] for name in expected if name != "step_time"} == {
            name: value for name, value in expected.items() if name != "step_time"
        }
        assert {name for name in got if name not in expected} == {
            "dynamic_sampling/rounds",
            "dynamic_sampling/useless",
            "dynamic_sampling/replaced",
        }
    for (name, expected), got in zip(plain.model.named_parameters(), bounded.model.parameters(), strict=True):
        assert torch.equal(expected, got), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "window", [{}, {"steps_per_generation": 4, "gradient_accumulation_steps": 1}], ids=["plain", "inside a window"]
)
def test_a_resumed_run_draws_the_prompts_of_an_uninterrupted_one(tmp_path, window):
    settings = {
        "reward_funcs": has_many,
        "dynamic_sampling": 2,
        "save_strategy": "steps",
        "save_steps": 3,
        "max_steps": 8,
        "log_completions": True,
        **window,
    }
    whole, resumed = (build_trainer(output_dir=str(tmp_path / name), **settings) for name in ("whole", "resumed"))
    whole.train()
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-3"))
    late = [log for log in whole.state.log_history if log["step"] > 3]
    assert any(log.get("dynamic_sampling/replaced", 0) for log in late)
    for (name, expected), got in zip(whole.model.named_parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(expected, got), name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dynamic_sampling": -1}, "dynamic_sampling -1: is no number of rounds"),
        ({"dynamic_sampling": True}, "dynamic_sampling True: is no number of rounds"),
        ({"dynamic_sampling": 0.5}, "dynamic_sampling 0.5: is no number of rounds"),
        ({"kinds": "gdpo"}, "with kinds 'gdpo': advantages depend on all groups"),
        ({"scale_rewards": "batch"}, "with scale_rewards 'batch'"),
        (
            {"multi_objective_aggregation": "normalize_then_sum"},
            "with multi_objective_aggregation 'normalize_then_sum'",
        ),
        ({"turn_estimator": "turn_ppo"}, "with turn_estimator 'turn_ppo': its critic"),
    ],
)
def test_what_dynamic_sampling_does_not_go_with_is_refused(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        ACPOConfig(str(tmp_path), **{"use_cpu": True, "bf16": False, "dynamic_sampling": 2, **settings})


def test_groups_that_span_processes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(ACPOConfig, "world_size", 2)
    with pytest.raises(ValueError, match=r"with 4 completions .* on each process: groups of num_generations 8 would"):
        ACPOConfig(
            str(tmp_path),
            use_cpu=True,
            bf16=False,
            dynamic_sampling=1,
            per_device_train_batch_size=4,
            num_generations=8,
        )


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Dataset.from_dict({"prompt": ["a"]}).to_iterable_dataset(), "streaming train_dataset"),
        (Dataset.from_dict({"prompt": ["a"], "image": ["b"]}), r"columns \['image'\]"),
    ],
)
def test_datasets_that_cannot_be_drawn_from_are_refused_before_the_model_is_loaded(tmp_path, dataset, message):
    args = ACPOConfig(str(tmp_path), use_cpu=True, bf16=False, dynamic_sampling=1, max_steps=1)
    with pytest.raises(ValueError, match=message):
        ACPOTrainer("no/such-model", first_id, args, dataset)


@pytest.mark.slow
def test_a_batch_with_images_of_tools_is_refused(tmp_path, monkeypatch):
    score = ScoredTurns._generate_and_score_completions
    monkeypatch.setattr(
        ScoredTurns,
        "_generate_and_score_completions",
        lambda self, inputs: {**score(self, inputs), "pixel_values": torch.zeros(1)},
    )
    with pytest.raises(ValueError, match=r"the generation batch has \['pixel_values'\]"):
        trained(tmp_path, ["s", "ss"])


def test_groups_fill_places_in_order_and_those_left_over_take_none():
    is_open, is_good = torch.tensor([True, False, True]), torch.tensor([False, True, False])
    assert fill(is_open, is_good, 2).tolist() == [8, 9, 2, 3, 4, 5]
    assert fill(~is_open, ~is_good, 2).tolist() == [0, 1, 6, 7, 4, 5]


def test_prompts_are_filled_up_on_the_left_and_completions_on_the_right():
    first = {"prompt_ids": torch.tensor([[1], [2]]), "completion_ids": torch.tensor([[3, 4], [5, 6]])}
    second = {"prompt_ids": torch.tensor([[7, 8], [9, 9]]), "completion_ids": torch.tensor([[5], [6]])}
    first["importance_sampling_ratio"], second["importance_sampling_ratio"] = torch.full((2, 2), 0.5), torch.zeros(2, 1)
    merged = merge_batches(first, second, torch.tensor([0, 2]), pad_id=256)
    assert merged["prompt_ids"].tolist() == [[256, 1], [7, 8]]
    assert merged["completion_ids"].tolist() == [[3, 4], [5, 256]]
    assert merged["importance_sampling_ratio"].tolist() == [[0.5, 0.5], [0.0, 1.0]]
