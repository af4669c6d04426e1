"""Rewards of each kind keep their own table, mean, spread and zero-spread rate."""

import pandas as pd
import pytest
import torch

from acpo_trl.rewards import REWARDS, reward
from acpo_trl.trainer.kinds import RewardTable, kind_metrics, zero_spread_rate

NAN = float("nan")


def test_kind_is_the_weighted_sum_of_its_functions_and_nan_where_none_scored():
    rewards = torch.tensor([[1.0, 0.0, 2.0], [NAN, 1.0, NAN], [0.0, NAN, NAN]])
    table = RewardTable(rewards, torch.tensor([1.0, 0.5, 10.0]), ["outcome", "format", "outcome"]).by_kind()
    assert list(table) == ["outcome", "format"]
    assert table["outcome"].tolist()[::2] == [21.0, 0.0]
    assert table["outcome"][1].isnan()
    assert table["format"].tolist()[:2] == [0.0, 0.5]
    assert table["format"][2].isnan()


@pytest.mark.parametrize(
    ("rewards", "rate"),
    [
        ([1.0, 1.0, 0.0, 1.0], 0.5),
        ([1.0, 1.0, 0.0, 0.0], 1.0),
        ([1.0, 0.0, 0.0, 1.0], 0.0),
        ([NAN, NAN, 0.0, 1.0], 0.0),  # nobody scored the first group
        ([NAN, 1.0, 0.0, 1.0], 0.5),
        ([0.1 + 0.2, 0.3, 0.0, 1.0], 0.5),  # equal but for rounding
    ],
)
def test_zero_spread_rate_counts_scored_groups_of_equal_rewards(rewards, rate):
    assert zero_spread_rate(torch.tensor(rewards), 2) == rate


def test_zero_spread_rate_of_nothing_scored_is_unknown():
    assert zero_spread_rate(torch.full((4,), NAN), 2) != zero_spread_rate(torch.full((4,), NAN), 2)


def test_metrics_of_a_kind_leave_unscored_completions_out():
    table = RewardTable(torch.tensor([[1.0], [NAN], [0.0], [0.5]]), torch.ones(1), ["process"])
    metrics = kind_metrics(table, 2)
    assert metrics == {
        "rewards/process/mean": 0.5,
        "rewards/process/std": 0.5,
        "rewards/process/unscored": 0.25,
        "rewards/process/zero_spread": 0.5,
    }


def long_enough(completions, **columns):
    return [float(len(text) > 3) for text in completions]


@reward(kind="cost", weight=0.25)
def shorter(completions, **columns):
    return [-float(len(text)) for text in completions]


@reward(kind="format", weight=2.0)
async def vowels(completions, **columns):
    return [None if len(text) > 5 else float(len(text)) for text in completions]


@pytest.mark.slow
def test_kinds_are_logged_and_kept_with_declared_weights(make_trainer):
    trainer = make_trainer(reward_funcs=[long_enough, shorter, vowels], max_steps=1)
    trainer.train()
    assert trainer.reward_weights.tolist() == [1.0, 0.25, 2.0]
    log, kinds = trainer.state.log_history[0], trainer.reward_table.by_kind()
    assert list(kinds) == ["outcome", "format", "cost"]
    assert kinds["cost"].tolist() == (0.25 * trainer.reward_table.rewards[:, 1]).tolist()
    for kind, values in kinds.items():
        assert log[f"rewards/{kind}/mean"] == pytest.approx(values.nanmean().item())
        assert log[f"rewards/{kind}/unscored"] == values.isnan().float().mean().item()
    assert log["reward"] == pytest.approx(torch.stack(list(kinds.values())).nansum(0).mean().item())


def test_configured_weights_win_over_declared_ones(make_trainer):
    trainer = make_trainer(reward_funcs=[shorter, vowels], reward_weights=[3.0, 4.0])
    assert trainer.reward_weights.tolist() == [3.0, 4.0]


def test_evaluation_logs_kinds_under_its_own_prefix(make_trainer):
    from datasets import Dataset

    trainer = make_trainer(
        reward_funcs=shorter, eval_dataset=Dataset.from_dict({"prompt": ["1"]}), per_device_eval_batch_size=2
    )
    assert trainer.evaluate()["eval_rewards/cost/mean"] < 0


def test_reward_looks_at_the_columns_before_the_model_is_loaded(make_trainer):
    with pytest.raises(ValueError, match="reward 'math': no gold answers among the columns"):
        make_trainer(reward_funcs=[REWARDS["math"]()], model="no/such-model")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "style"}, "reward kind 'style': no such kind"),
        ({"level": "step"}, "reward level 'step': no such level"),
    ],
)
def test_unknown_label_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        reward(**options)


@pytest.mark.slow
def test_column_that_a_reward_logs_only_sometimes_stays_with_its_rows(make_trainer):
    calls = []

    def sometimes(completions, log_extra, **columns):
        calls.append(len(completions))
        if len(calls) in (1, 3):
            log_extra("call", [len(calls)] * len(completions))
        return [float(len(text)) for text in completions]

    trainer = make_trainer(reward_funcs=sometimes, log_completions=True, max_steps=3)
    trainer.train()
    tables = [
        pd.read_parquet(f"{trainer.args.output_dir}/completions/completions_{step:05d}.parquet") for step in (1, 2, 3)
    ]
    assert [table["call"].dropna().tolist() for table in tables] == [[1] * 4, [], [3] * 4]


@pytest.mark.slow
def test_failing_completion_is_unscored_and_the_others_train(make_trainer):
    def picky(completions, **columns):
        if any(row["fails"] for row in columns["info"]):
            raise ZeroDivisionError("division by zero")
        return [float(len(text)) for text in completions]

    def run(on_reward_error):
        trainer = make_trainer(reward_funcs=picky, on_reward_error=on_reward_error, max_steps=1)
        trainer.train_dataset = trainer.train_dataset.add_column("info", [{"fails": i % 2 == 0} for i in range(16)])
        trainer.train()
        return trainer

    with pytest.raises(RuntimeError, match="reward function 'picky' raised ZeroDivisionError: division by zero"):
        run("raise")
    trainer = run("none")
    assert 0 < trainer.state.log_history[0]["rewards/outcome/unscored"] <= 1


def test_unknown_choice_for_errors_is_refused(make_trainer):
    with pytest.raises(ValueError, match="on_reward_error 'ignore': no such choice; expected one of"):
        make_trainer(on_reward_error="ignore")
