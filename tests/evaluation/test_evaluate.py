"""Whole evaluations: what they write, how they go on after a kill, and what they refuse."""

import json
import multiprocessing
import os
import random
import signal
import sys
import time

import pytest
from accelerate import PartialState
from tiny import byte_tokenizer, qwen2

from acpo_trl.evaluation.benchmarks import Benchmark, Source
from acpo_trl.evaluation.evaluate import EvalOptions, check_folder, evaluate, prepare
from acpo_trl.evaluation.generate import Response, Sampling, TransformersGenerator
from acpo_trl.evaluation.samples import read_samples

SAMPLED = Sampling(max_new_tokens=6, temperature=1.0)
MODEL = {"name": "tiny"}


@pytest.fixture
def sums(tmp_path):
    """A benchmark of twelve additions in two groups."""
    rows = [{"id": f"s{i}", "problem": f"{i}+{i}=", "answer": str(2 * i), "level": str(i % 2)} for i in range(12)]
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Benchmark("sums", source=Source(str(path)), template="{problem}")


class Calculator:
    """Knows the sums below ten, and counts how often it is asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, batch, stop):
        self.asked += [(request.problem_id, request.sample_index) for request in batch.requests]
        return [self.answer(int(request.problem_id[1:]), request.sample_index) for request in batch.requests]

    def answer(self, number, index):
        said = 2 * number if number < 5 else 0
        return Response(f"\\boxed{{{said + index % 2}}}", 3 + index, index == 3)


def prepared(benchmark, **options):
    return prepare([benchmark], byte_tokenizer(), EvalOptions(**{"sampling": SAMPLED, **options}), MODEL)


def without_seconds(folder):
    return [sample._replace(seconds=0.0) for sample in read_samples(folder / "samples.jsonl")]


def test_every_sample_is_drawn_once_and_the_numbers_are_those_of_the_verdicts(sums, tmp_path):
    generator = Calculator()
    (result,) = evaluate(prepared(sums, num_samples=4), generator, tmp_path / "out", PartialState())
    assert sorted(generator.asked) == sorted((f"s{i}", j) for i in range(12) for j in range(4))
    samples = read_samples(tmp_path / "out" / "samples.jsonl")
    assert [(s.problem_id, s.sample_index) for s in samples] == [(f"s{i}", j) for i in range(12) for j in range(4)]
    assert [s.verdict for s in samples[:8]] == [1.0, 0.0, 1.0, 0.0] * 2
    assert result.mean_at_k.mean == pytest.approx(5 / 12 / 2)  # half of the answers to 0 to 4
    assert result.truncation_rate == 0.25
    assert result.mean_tokens == 4.5
    stored = json.loads((tmp_path / "out" / "results.json").read_text())
    assert stored["benchmarks"][0]["mean_at_k"]["mean"] == result.mean_at_k.mean
    assert stored["settings"]["num_samples"] == 4
    assert stored["benchmarks"][0]["origin"].startswith(str(tmp_path / "sums.jsonl") + " sha256:")


def test_a_finished_evaluation_is_read_and_not_drawn_again(sums, tmp_path):
    first = evaluate(prepared(sums), Calculator(), tmp_path / "out", PartialState())
    again = Calculator()
    assert evaluate(prepared(sums), again, tmp_path / "out", PartialState()) == first
    assert again.asked == []


class Breaking(Calculator):
    """Fails when it is asked for the third batch."""

    def __call__(self, batch, stop):
        if len(self.asked) >= 8:
            raise RuntimeError("out of memory")
        return super().__call__(batch, stop)


def test_what_was_drawn_before_a_failure_is_not_drawn_again(sums, tmp_path):
    evaluation, first, second = prepared(sums, batch_size=4), Breaking(), Calculator()
    with pytest.raises(RuntimeError, match="out of memory"):
        evaluate(evaluation, first, tmp_path / "out", PartialState())
    evaluate(evaluation, second, tmp_path / "out", PartialState())
    assert (len(first.asked), len(second.asked)) == (8, 4)
    evaluate(evaluation, Calculator(), tmp_path / "whole", PartialState())
    assert without_seconds(tmp_path / "out") == without_seconds(tmp_path / "whole")


def run_tiny(benchmark, folder):
    model = qwen2(seed=3).eval()
    generator = TransformersGenerator(model, byte_tokenizer(), SAMPLED)
    evaluate(prepared(benchmark, num_samples=4, batch_size=2), generator, folder, PartialState())


def num_bytes(folder):
    return sum(path.stat().st_size for path in folder.glob("samples.part-*"))


@pytest.mark.slow
def test_five_kills_at_random_leave_the_result_of_a_run_that_was_left_alone(sums, tmp_path, monkeypatch):
    processes = multiprocessing.get_context("forkserver")  # torch's threads do not survive a fork of this process
    processes.set_forkserver_preload(["test_evaluate"])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # where the server looks for it

    def started(folder):
        process = processes.Process(target=run_tiny, args=(sums, tmp_path / folder))
        process.start()
        return process

    started("alone").join()
    whole, chance = (tmp_path / "alone" / "samples.jsonl").stat().st_size, random.Random(0)
    for kill in range(5):
        process = started("killed")
        enough, deadline = whole * (kill + chance.random()) / 6, time.monotonic() + 60
        while num_bytes(tmp_path / "killed") < enough and process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.001)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not (tmp_path / "killed" / "results.json").exists()
    started("killed").join()
    assert without_seconds(tmp_path / "killed") == without_seconds(tmp_path / "alone")
    results = [(tmp_path / name / "results.json").read_bytes() for name in ("killed", "alone")]
    assert results[0] == results[1]


def test_a_kill_while_the_settings_are_written_leaves_a_folder_to_go_on_in(sums, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "evaluation.json.tmp").write_text('{"mod')
    evaluate(prepared(sums), Calculator(), tmp_path / "out", PartialState())
    assert (tmp_path / "out" / "results.json").is_file()


def test_another_evaluation_in_the_folder_is_left_alone_and_told_apart(sums, tmp_path):
    evaluate(prepared(sums), Calculator(), tmp_path / "out", PartialState())
    with pytest.raises(ValueError, match=r"other settings, \{'requests': .*'seed': 0\} instead of .*'seed': 1\}"):
        evaluate(prepared(sums, seed=1), Calculator(), tmp_path / "out", PartialState())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ValueError, match="holds no evaluation; expected a new folder"):
        evaluate(prepared(sums), Calculator(), tmp_path / "mine", PartialState())


def test_two_evaluations_at_once_in_a_folder_do_not_destroy_each_other(sums, tmp_path):
    class Meddling(Calculator):
        def __call__(self, batch, stop):
            with pytest.raises(ValueError, match="another evaluation is at work in it; expected one at a time"):
                evaluate(prepared(sums), Calculator(), tmp_path / "out", PartialState())
            return super().__call__(batch, stop)

    evaluate(prepared(sums), Meddling(), tmp_path / "out", PartialState())
    assert len(read_samples(tmp_path / "out" / "samples.jsonl")) == 12


@pytest.mark.parametrize(
    "change",
    [
        {"num_samples": 2},
        {"limit": 5},
        {"seed": 1},
        {"batch_size": 3},
        {"sampling": Sampling(max_new_tokens=6, temperature=0.5)},
        {"sampling": Sampling(max_new_tokens=7, temperature=1.0)},
    ],
)
def test_settings_tell_apart_whatever_changes_samples(sums, tmp_path, change):
    (tmp_path / "evaluation.json").write_text(json.dumps(prepared(sums).settings))
    check_folder(tmp_path, prepared(sums).settings)
    with pytest.raises(ValueError, match="other settings"):
        check_folder(tmp_path, prepared(sums, **change).settings)


def test_settings_tell_apart_other_problems_prompts_and_checks(sums, tmp_path):
    (tmp_path / "evaluation.json").write_text(json.dumps(prepared(sums).settings))
    changed = (
        Benchmark("sums", source=sums.source, template="{problem} "),
        Benchmark("sums", source=sums.source, template="{problem}", options={"decimal_tolerance": 0.1}),
    )
    for benchmark in changed:
        with pytest.raises(ValueError, match="other settings"):
            check_folder(tmp_path, prepared(benchmark).settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_samples": 0}, "num_samples 0: nothing would be asked"),
        ({"num_samples": True}, "num_samples True"),
        ({"batch_size": 0}, "batch_size 0"),
        ({"num_samples": 8, "sampling": Sampling()}, "num_samples 8 with temperature 0: all would be the same"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        EvalOptions(**options)


def test_two_benchmarks_of_one_name_or_none_are_refused(sums):
    for benchmarks in ([sums, sums], []):
        with pytest.raises(ValueError, match="expected one or more, each of another name"):
            prepare(benchmarks, byte_tokenizer(), EvalOptions(), MODEL)


def test_responses_longer_than_the_model_can_read_are_refused(sums):
    options = EvalOptions(sampling=Sampling(max_new_tokens=1000))
    prepare([sums], byte_tokenizer(), options, MODEL, max_length=1100)
    with pytest.raises(ValueError, match=r"max_new_tokens 1000: .* that is more than the 1010 that the model can read"):
        prepare([sums], byte_tokenizer(), options, MODEL, max_length=1010)
