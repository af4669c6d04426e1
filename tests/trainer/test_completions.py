"""TRL's completions table holds the advantages that the loss used."""

import pandas as pd
import pytest
from datasets import Dataset

from acpo_trl import ACPOTrainer


def read_table(trainer, step):
    return pd.read_parquet(f"{trainer.args.output_dir}/completions/completions_{step:05d}.parquet")


@pytest.mark.slow
def test_logged_advantages_are_those_that_the_loss_used(make_trainer):
    used = []

    class Recording(ACPOTrainer):
        def _log_credit(self, stats, credit, advantages, batch):
            used.append((batch["completion_row"], batch["advantages"].clone(), stats.action_mask))
            super()._log_credit(stats, credit, advantages, batch)

    trainer = make_trainer(cls=Recording, log_completions=True, gradient_accumulation_steps=2, max_steps=1)
    trainer.train()
    table = read_table(trainer, 1)
    assert len(table) == 8
    for rows, advantages, mask in used:
        for row, values, where in zip(rows.tolist(), advantages, mask, strict=True):
            assert table["advantage"][row] == pytest.approx(values[where].mean().item(), rel=1e-5)
            length = int(where.sum())
            assert table["token_advantages"][row].tolist() == pytest.approx(values[:length].tolist(), rel=1e-6)
    assert table["advantage"].abs().max() > 0


@pytest.mark.slow
def test_rows_that_no_loss_has_used_yet_have_no_advantage(make_trainer):
    trainer = make_trainer(log_completions=True, steps_per_generation=2, gradient_accumulation_steps=1, max_steps=2)
    trainer.train()
    first, second = read_table(trainer, 1), read_table(trainer, 2)
    assert first["advantage"].isna().sum() == 4
    assert first["token_advantages"].isna().sum() == 4
    assert second["advantage"].isna().sum() == 0


@pytest.mark.slow
def test_completions_of_an_evaluation_do_not_shift_the_table(make_trainer):
    trainer = make_trainer(
        log_completions=True,
        steps_per_generation=2,
        gradient_accumulation_steps=1,
        max_steps=2,
        eval_strategy="steps",
        eval_steps=1,
        per_device_eval_batch_size=2,
        eval_dataset=Dataset.from_dict({"prompt": ["1+1="]}),
    )
    trainer.train()
    table = read_table(trainer, 2)
    assert len(table) == 8
    shown = table["token_advantages"].map(lambda v: None if v is None else len(v))
    lengths = table["completion"].map(len)
    assert all(n is None or n >= length for n, length in zip(shown, lengths, strict=True))
