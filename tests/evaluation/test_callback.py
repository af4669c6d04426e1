"""Benchmarks in the course of a training run."""

import json
from types import SimpleNamespace

import pytest
import torch
from accelerate import PartialState
from accelerate.utils import DistributedType
from tiny import byte_tokenizer

from acpo_trl.evaluation.benchmarks import Benchmark, Source
from acpo_trl.evaluation.callback import BenchmarkCallback, check_sharding
from acpo_trl.evaluation.evaluate import EvalOptions, evaluate, prepare
from acpo_trl.evaluation.generate import Sampling, TransformersGenerator

OPTIONS = EvalOptions(num_samples=2, sampling=Sampling(max_new_tokens=4, temperature=1.0))


def distinct(responses, **options):
    """A check that some responses of a random model pass."""
    from acpo_trl.evaluation.checks import Checked

    return [Checked(float(len(set(text)) % 2), "", text) for _, text in responses]


@pytest.fixture
def evaluation(tmp_path):
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps({"problem": f"{i}+1="}) + "\n" for i in range(8)))
    benchmark = Benchmark("sums", check="test_callback.distinct", source=Source(str(path)), template="{problem}")
    return prepare([benchmark], byte_tokenizer(), OPTIONS, {"name": "tiny"})


def trained(make_trainer, evaluation=None, every=2, **settings):
    trainer = make_trainer(max_steps=3, **settings)
    if evaluation is not None:
        trainer.add_callback(BenchmarkCallback(trainer, evaluation, every))
    trainer.train()
    return trainer


@pytest.fixture
def runs(make_trainer, evaluation, tmp_path):
    return trained(make_trainer, evaluation), trained(make_trainer, output_dir=str(tmp_path / "plain"))


def test_every_so_many_steps_and_the_last_are_logged_and_training_is_not_touched(runs, tmp_path):
    watched, plain = runs
    logs = [log for log in watched.state.log_history if "eval_sums/mean@2" in log]
    assert [log["step"] for log in logs] == [2, 3]
    assert all(0 < log["eval_sums/mean@2"] < 1 and log["eval_sums/unscored"] == 0 for log in logs)
    for ours, theirs in zip(watched.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)

    def training(trainer):
        timed = ("step_time", "train_runtime", "train_samples_per_second", "train_steps_per_second")
        logs = [log for log in trainer.state.log_history if not any(key.startswith("eval_") for key in log)]
        return [{key: log[key] for key in log if key not in timed} for log in logs]

    assert training(watched) == training(plain)


@pytest.mark.slow
def test_what_is_logged_is_what_an_evaluation_of_the_saved_model_finds(runs, evaluation, tmp_path):
    watched, _ = runs
    generator = TransformersGenerator(watched.model.eval(), byte_tokenizer(), OPTIONS.sampling)
    (result,) = evaluate(evaluation, generator, tmp_path / "after", PartialState())
    (logged,) = [log for log in watched.state.log_history if "eval_sums/mean@2" in log and log["step"] == 3]
    assert logged["eval_sums/mean@2"] == result.mean_at_k.mean
    assert logged["eval_sums/tokens"] == result.mean_tokens
    assert (tmp_path / "run" / "benchmarks" / "step-3" / "results.json").is_file()


@pytest.mark.slow
def test_what_a_killed_run_left_of_a_step_is_drawn_anew(make_trainer, evaluation, tmp_path):
    left = tmp_path / "run" / "benchmarks" / "step-2"
    left.mkdir(parents=True)
    (left / "samples.part-0.jsonl").write_text("of other weights")
    trained(make_trainer, evaluation)
    assert (left / "results.json").is_file()


def test_a_number_of_steps_below_one_is_refused(make_trainer, evaluation):
    with pytest.raises(ValueError, match="eval_every 0: expected a number of steps"):
        BenchmarkCallback(make_trainer(), evaluation, 0)


@pytest.mark.parametrize(("kind", "stage", "gathers"), [("FSDP", 0, True), ("DEEPSPEED", 3, False)])
def test_weights_that_one_process_lacks_are_refused(kind, stage, gathers):
    trainer = SimpleNamespace(
        accelerator=SimpleNamespace(
            distributed_type=DistributedType[kind],
            state=SimpleNamespace(deepspeed_plugin=SimpleNamespace(zero_stage=stage)),
        ),
        args=SimpleNamespace(ds3_gather_for_generation=gathers),
    )
    with pytest.raises(ValueError, match=f"weights sharded by {kind}: .* evaluate the saved"):
        check_sharding(trainer)
    trainer.args.ds3_gather_for_generation, trainer.accelerator.state.deepspeed_plugin.zero_stage = True, 3
    if kind == "DEEPSPEED":
        check_sharding(trainer)
