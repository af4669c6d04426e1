"""Records of credit: what they hold, which completions, and that training does not notice."""

import json
import math
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pandas as pd
import pytest
import torch
from datasets import Dataset
from recorded import record as made_up
from scripted import call, double, scripted_trainer
from test_resume import WINDOWS, run
from test_turn_rewards import SCRIPT, Judge, call_reward
from tiny import qwen2
from transformers import TrainerCallback

from acpo_trl import ACPOConfig, ACPOTrainer
from acpo_trl.records import read_records, write_records
from acpo_trl.records.store import record_files
from acpo_trl.rewards import reward as declared
from acpo_trl.trainer.credit_log import turn_rewards_of
from acpo_trl.trainer.recorded_groups import CreditLogOptions, choose_groups

NAN = math.nan


class Spy(ACPOTrainer):
    """Keeps the batches that TRL's losses read, with the advantages that they found there."""

    def __init__(self, *args, **kwargs):
        self.read = []
        super().__init__(*args, **kwargs)

    def _log_credit(self, stats, credit, advantages, batch):
        super()._log_credit(stats, credit, advantages, batch)
        self.read.append({name: value.detach().clone() for name, value in batch.items()})


def logged(make_trainer, **settings):
    trainer = make_trainer(**{"credit_log": {"every": 1, "groups": 9}, **settings})
    trainer.train()
    return trainer, read_records(trainer.args.output_dir)


def distribution(batch, row, temperature):
    """(T, V) log-probabilities of the untrained model for the completion in a row, without padding."""
    prompt = batch["prompt_ids"][row][batch["prompt_mask"][row].bool()]
    completion = batch["completion_ids"][row][batch["completion_mask"][row].bool()]
    with torch.no_grad():
        logits = qwen2()(torch.cat([prompt, completion]).unsqueeze(0)).logits[0, len(prompt) - 1 : -1]
    return completion, (logits / temperature).log_softmax(dim=-1)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["acpo", "uniform"])
def test_every_number_is_the_one_that_the_loss_used(make_trainer, rule):
    settings = {"max_steps": 1, "gradient_accumulation_steps": 2, "temperature": 0.7, "credit_rule": rule}
    trainer, records = logged(make_trainer, cls=Spy, **settings)
    assert len(records) == 8 and len(trainer.read) == 2
    left = {tuple(record.token_ids): record for record in records}
    for batch in trainer.read:
        for row, used in enumerate(batch["advantages"]):
            completion, table = distribution(batch, row, 0.7)
            record = left.pop(tuple(completion.tolist()))
            peak = table.amax(dim=1).exp()
            chosen = table.gather(1, completion.unsqueeze(1)).squeeze(1)
            assert record.log_probs == pytest.approx(chosen.tolist(), abs=1e-4)
            assert record.delta == pytest.approx((1 - peak).tolist(), abs=1e-4)
            assert record.entropy == pytest.approx((-(table.exp() * table).sum(dim=1)).tolist(), abs=1e-4)
            assert record.is_mode == (table.argmax(dim=1) == completion).tolist()
            given = torch.tensor(record.advantage) * torch.tensor(record.credit)
            assert given.tolist() == pytest.approx(used.expand(6)[: len(completion)].tolist(), rel=1e-6)
            assert record.ratio == [1.0] * len(completion)
    assert not left
    assert {credit for record in records for credit in record.credit if credit != 1.0} or rule == "uniform"


def test_advantages_are_those_of_grpo_before_credit(make_trainer):
    _, records = logged(make_trainer, max_steps=1)
    for first, second in (records[:2], records[2:]):
        low, high = first.rewards[0].value, second.rewards[0].value
        spread = abs(high - low) / math.sqrt(2)
        expected = (low - high) / 2 / (spread + 1e-4)
        assert first.advantage == pytest.approx([expected] * len(first.token_ids), rel=1e-5)
        assert first.turn_advantages == pytest.approx([expected], rel=1e-5)
        assert second.turn_advantages == pytest.approx([-expected], rel=1e-5)
    assert any(record.advantage[0] for record in records)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", ["token", "gspo_token", "gspo_token_turn", "turn", "gspo"])
def test_the_ratio_is_the_one_of_the_loss(make_trainer, ratio):
    """The second half of a generation batch is trained after a step, so its ratios are not 1."""
    settings = {"steps_per_generation": 2, "gradient_accumulation_steps": 1, "max_steps": 2, "loss_type": "grpo"}
    rule = "uniform" if ratio == "gspo" else "acpo"
    before = []

    class Before(Spy):
        def compute_loss(self, model, inputs, *args, **kwargs):
            before.append(inputs["old_per_token_logps"].clone())
            return super().compute_loss(model, inputs, *args, **kwargs)

    trainer, records = logged(make_trainer, cls=Before, ratio=ratio, credit_rule=rule, **settings)
    by_ids = {tuple(record.token_ids): record for record in records}
    for row, old in enumerate(before[1]):
        length = int(trainer.read[1]["completion_mask"][row].sum())
        record = by_ids[tuple(trainer.read[1]["completion_ids"][row][:length].tolist())]
        differences = [now - then for now, then in zip(record.log_probs, old.tolist(), strict=False)]
        if ratio in ("gspo", "gspo_token", "gspo_token_turn"):
            differences = [sum(differences) / length] * length
        elif ratio == "turn":
            differences = [sum(differences)] * length
        assert record.ratio == pytest.approx([math.exp(each) for each in differences], rel=1e-5)
        assert any(abs(each - 1) > 1e-4 for each in record.ratio)


def test_facts_of_a_completion_are_told(make_trainer):
    trainer, records = logged(make_trainer, max_steps=1)
    assert [(record.group, record.sample) for record in records] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for record in records:
        (reward,) = record.rewards
        assert (reward.name, reward.kind, reward.weight) == ("distinct_bytes", "outcome", 1.0)
        assert reward.value == len(set("".join(record.pieces)))
        assert record.turn_rewards[0].values == [reward.value]
        assert "".join(record.pieces) == trainer._tokenizer.decode(record.token_ids)
        assert record.credit_rule == "acpo" and record.turn_estimator is None
        assert record.turn_ids == [0] * len(record.token_ids)
        assert record.prompt.endswith("=")
    assert records[0].prompt == records[1].prompt != records[2].prompt
    assert records[0].state_keys == records[1].state_keys != records[2].state_keys


@pytest.mark.slow
def test_turns_and_tokens_of_the_environment_are_told_apart(tmp_path):
    trainer = scripted_trainer(
        tmp_path, SCRIPT, environment_factory=Judge, turn_estimator="outcome", credit_log={"every": 1}
    )
    trainer.train()
    first, second = read_records(trainer.args.output_dir)
    assert set(first.turn_ids) == {-1, 0, 1, 2} and set(second.turn_ids) == {0}
    for record in (first, second):
        for place, turn in enumerate(record.turn_ids):
            assert (record.credit[place] is None) == (record.advantage[place] is None) == (turn < 0)
    rewards = {entry.kind: entry.values for entry in first.turn_rewards}
    assert rewards["process"] == [1.0, 1.0, None]
    assert rewards["outcome"][:2] == [None, None]
    assert len(first.turn_advantages) == 3
    assert first.turn_estimator == "outcome"
    told = {turn: advantage for turn, advantage in zip(first.turn_ids, first.advantage, strict=True) if turn >= 0}
    assert first.turn_advantages == pytest.approx([told[0], told[1], told[2]], rel=1e-6)


TIMED = ("step_time", "train_runtime", "train_samples_per_second", "train_steps_per_second")


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"credit_rule": "uniform", "num_iterations": 2}], ids=str)
def test_recording_does_not_change_training(make_trainer, tmp_path, settings):
    recorded, _ = logged(make_trainer, max_steps=3, **settings)
    plain = make_trainer(max_steps=3, output_dir=str(tmp_path / "plain"), **settings)
    plain.train()
    for ours, theirs in zip(recorded.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    logs = [
        [{key: value for key, value in log.items() if key not in TIMED} for log in trainer.state.log_history]
        for trainer in (recorded, plain)
    ]
    assert logs[0] == logs[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"num_iterations": 2},
        {"steps_per_generation": 2, "gradient_accumulation_steps": 1},
        {"gradient_accumulation_steps": 2, "steps_per_generation": 1},
        {"credit_rule": "uniform"},
        {"importance_sampling_level": "sequence", "num_iterations": 2},
        {"turn_estimator": "gtpo"},
    ],
    ids=str,
)
def test_each_completion_is_recorded_once(make_trainer, settings):
    _, records = logged(make_trainer, max_steps=4, **settings)
    keys = [(record.step, record.group, record.sample) for record in records]
    assert len(set(keys)) == len(keys) >= 8
    assert all(len(record.credit) == len(record.token_ids) for record in records)


@pytest.mark.slow
def test_steps_between_are_not_recorded_and_evaluations_never(make_trainer):
    trainer = make_trainer(
        max_steps=5,
        credit_log={"every": 2},
        eval_strategy="steps",
        eval_steps=1,
        per_device_eval_batch_size=2,
        eval_dataset=Dataset.from_dict({"prompt": ["1+1="]}),
    )
    trainer.train()
    records = read_records(trainer.args.output_dir)
    assert [record.step for record in records] == [0, 0, 2, 2, 4, 4]
    assert {record.sample for record in records} == {0, 1}


@pytest.mark.slow
def test_parquet_opens_in_pandas_and_datasets_and_json_lines_say_the_same(make_trainer, tmp_path):
    _, records = logged(make_trainer, max_steps=1)
    (file,) = (tmp_path / "run" / "credit_log").iterdir()
    assert pd.read_parquet(file)["credit"][0].tolist() == pytest.approx(records[0].credit)
    assert Dataset.from_parquet(str(file), cache_dir=str(tmp_path / "cache"))[0]["pieces"] == records[0].pieces
    options = {"every": 1, "groups": 9, "file_format": "jsonl"}
    _, lines = logged(make_trainer, max_steps=1, credit_log=options, output_dir=str(tmp_path / "lines"))
    assert lines == records
    (file,) = (tmp_path / "lines" / "credit_log").iterdir()
    assert json.loads(file.read_text().splitlines()[0])["sample"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("window", "expected"), [(1, [0, 3, 6]), (2, [0, 4, 6]), (4, [0, 4])])
def test_the_first_generation_batch_at_or_after_each_interval_is_recorded(make_trainer, window, expected):
    settings = {"steps_per_generation": window, "gradient_accumulation_steps": 1, "max_steps": 8}
    _, records = logged(make_trainer, credit_log={"every": 3}, **settings)
    assert sorted({record.step for record in records}) == expected


@pytest.mark.slow
def test_what_was_used_of_the_last_generation_batch_is_written(make_trainer):
    """Two of four steps of the second generation batch are trained: 8 of its 16 completions."""
    settings = {"steps_per_generation": 4, "gradient_accumulation_steps": 1, "max_steps": 6}
    _, records = logged(make_trainer, **settings)
    assert [record.step for record in records] == [0] * 16 + [4] * 8


@pytest.mark.slow
def test_groups_that_replace_others_are_recorded_with_their_own_rewards(make_trainer):
    def is_odd(prompt):
        return int(prompt.split("+")[0]) % 2 == 1

    def of_odd_prompts(completions, prompts, **kwargs):
        return [
            float(len(set(completion))) if is_odd(prompt) else 0.0
            for prompt, completion in zip(prompts, completions, strict=True)
        ]

    @declared(kind="process", level="turn", weight=0.5)
    def first_token(completion_ids, prompts, **kwargs):
        return [
            [float(ids[0])] if is_odd(prompt) else [0.0] for prompt, ids in zip(prompts, completion_ids, strict=True)
        ]

    functions = [of_odd_prompts, first_token]
    trainer, records = logged(make_trainer, cls=Spy, max_steps=2, dynamic_sampling=3, reward_funcs=functions)
    assert any(log.get("dynamic_sampling/replaced", 0) > 0 for log in trainer.state.log_history)
    decode = trainer._tokenizer.decode
    trained = {
        decode(ids[mask.bool()])
        for batch in trainer.read
        for ids, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)
    }
    assert {record.prompt for record in records} == trained
    for record in records:
        letters = set(decode(record.token_ids, skip_special_tokens=True))
        value = len(letters) if is_odd(record.prompt) else 0
        weighted = 0.5 * record.token_ids[0] if is_odd(record.prompt) else 0.0
        assert record.rewards[0].value == value
        assert [(entry.kind, entry.values) for entry in record.turn_rewards] == [
            ("outcome", [value]),
            ("process", [weighted]),
        ]


@pytest.mark.slow
def test_a_resumed_run_leaves_the_records_of_an_uninterrupted_one(make_trainer, tmp_path):
    settings = {"credit_log": {"every": 1, "groups": 9}, "save_steps": 3}
    window = WINDOWS["several steps a generation"]
    run(make_trainer, tmp_path / "a", window, **settings)
    expected = read_records(tmp_path / "a")
    assert [record.step for record in expected] == [0] * 16 + [4] * 8
    later = tmp_path / "a" / "credit_log" / "step-00000004-rank-0.parquet"
    shutil.copy(later, later.with_name("step-00000004-rank-1.parquet"))  # of a run with more processes
    run(make_trainer, tmp_path / "a", window, resume=str(tmp_path / "a" / "checkpoint-3"), **settings)
    assert read_records(tmp_path / "a") == expected


@pytest.mark.slow
def test_a_killed_and_resumed_run_leaves_the_records_of_an_uninterrupted_one(make_trainer, tmp_path):
    script, folder = Path(__file__).parent / "killed_run.py", tmp_path / "killed"
    child = subprocess.run([sys.executable, str(script), str(folder), "5"], capture_output=True, text=True, timeout=300)
    assert child.returncode == -signal.SIGKILL, child.stderr
    settings = {"credit_log": {"every": 1, "groups": 9}, "save_steps": 3}
    window = WINDOWS["several steps a generation"]
    run(make_trainer, folder, window, resume=str(folder / "checkpoint-3"), **settings)
    run(make_trainer, tmp_path / "whole", window, **settings)
    assert read_records(folder) == read_records(tmp_path / "whole")


@pytest.mark.slow
def test_the_oldest_files_make_room(make_trainer):
    _, records = logged(make_trainer, max_steps=4, credit_log={"every": 1, "max_megabytes": 1e-6})
    assert {record.step for record in records} == {3}


@pytest.mark.slow
def test_the_main_process_makes_room_also_if_it_records_nothing(make_trainer):
    """It has no group of equal rewards; another process writes a file after each step."""

    class Other(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            folder = Path(args.output_dir) / "credit_log"
            write_records(folder, state.global_step - 1, 1, [made_up(step=state.global_step - 1)])
            left.append(len(record_files(folder)))

    left = []
    options = {"every": 1, "choose": "zero_spread", "max_megabytes": 1e-6}
    trainer = make_trainer(
        max_steps=4,
        credit_log=options,
        callbacks=[Other()],
        reward_funcs=lambda completions, **kwargs: [float(row) for row in range(len(completions))],
    )
    trainer.train()
    assert left == [1, 2, 2, 2]
    assert [record.step for record in read_records(trainer.args.output_dir)] == [3]


def test_groups_are_chosen_by_their_rewards():
    rewards = [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [NAN, NAN], [NAN, 0.2]]

    def chosen(*choose, groups=1):
        return choose_groups(rewards, CreditLogOptions(choose=choose, groups=groups), Random(0))

    assert chosen("best") == {1: "best"}
    assert chosen("worst") == {2: "worst"}
    assert set(chosen("zero_spread", groups=9)) == {1, 2, 4}
    assert chosen("best", "zero_spread", groups=1)[1] == "best"
    assert set(chosen("random", groups=9)) == {0, 1, 2, 3, 4}
    firsts = {next(iter(choose_groups(rewards, CreditLogOptions(), Random(seed)))) for seed in range(50)}
    assert firsts == {0, 1, 2, 3, 4}


def test_a_reward_of_the_completion_is_one_of_its_last_turn_and_weights_are_applied():
    declared = [("outcome", 2.0, 1.0), ("process", 0.5, 3.0), ("outcome", 1.0, NAN)]
    entries = turn_rewards_of(declared, {1: [1.0, None, 2.0]}, 3)
    assert [(entry.kind, entry.values) for entry in entries] == [
        ("outcome", [None, None, 2.0]),
        ("process", [0.5, None, 1.0]),
    ]
    assert turn_rewards_of([("outcome", 1.0, 1.0)], {}, 0)[0].values == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every 0: expected a whole number"),
        ({"groups": 1.5}, "groups 1.5"),
        ({"choose": "median"}, "choose 'median': expected one or more of"),
        ({"choose": []}, r"choose \[\]"),
        ({"file_format": "csv"}, "file_format 'csv'"),
        ({"choose": 3}, "choose 3"),
        ({"max_megabytes": 0}, "max_megabytes 0"),
        ({"max_megabytes": math.inf}, "max_megabytes inf"),
        ({"evry": 1}, "expected a mapping with some of"),
    ],
)
def test_options_that_cannot_be_are_refused_with_the_config(options, message):
    with pytest.raises(ValueError, match=f"credit_log .*{message}"):
        ACPOConfig("run", use_cpu=True, bf16=False, credit_log=options)


def test_nothing_is_recorded_by_default(make_trainer):
    trainer = make_trainer(max_steps=1)
    trainer.train()
    assert trainer.args.credit_log is None
    assert not (Path(trainer.args.output_dir) / "credit_log").exists()


@pytest.mark.slow
def test_a_tool_call_is_part_of_the_pieces(tmp_path):
    trainer = scripted_trainer(
        tmp_path, [[call("double", x=4), "8"], ["9"]], tools=[double], reward_funcs=[call_reward], credit_log={}
    )
    trainer.train()
    record = read_records(trainer.args.output_dir)[0]
    assert call("double", x=4)[:12] in "".join(record.pieces)
