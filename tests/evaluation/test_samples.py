"""Samples survive a kill at any byte, and none is there twice."""

import json

import pytest

from acpo_trl.evaluation.samples import Sample, SampleStore, read_samples

SIZES = {0: 2, 1: 1, 2: 2}


def sample(problem, index=0, **changes):
    values = {
        "benchmark": "gsm8k",
        "problem_id": problem,
        "sample_index": index,
        "response": "é\u2028 \\boxed{4}\n",
        "answer": "4",
        "verdict": 1.0,
        "reason": "",
        "num_tokens": 3,
        "is_truncated": False,
        "seconds": 0.5,
    }
    return Sample(**{**values, **changes})


BATCHES = {0: [sample("a", 0), sample("a", 1)], 1: [sample("b")], 2: [sample("c", 0), sample("c", 1, verdict=None)]}


def written(folder, numbers, rank=0):
    store = SampleStore(folder)
    for number in numbers:
        store.append(rank, number, BATCHES[number])
    return store


def test_half_a_character_in_a_response_stays_as_it_is(tmp_path):
    half = sample("a", response="\ud83d")
    store = SampleStore(tmp_path)
    store.append(0, 0, [half])
    assert store.collect({0: 1}) == {0: [half]}
    store.finish([half])
    assert read_samples(store.final) == [half]


def test_a_broken_line_of_a_finished_evaluation_is_named(tmp_path):
    SampleStore(tmp_path).finish([sample("a")])
    with (tmp_path / "samples.jsonl").open("a") as file:
        file.write("{}}\n")
    with pytest.raises(ValueError, match=r"samples.jsonl', line 2: is no sample"):
        read_samples(tmp_path / "samples.jsonl")


def test_finished_batches_come_back_as_they_were(tmp_path):
    store = written(tmp_path, [2, 0])
    assert store.collect(SIZES) == {0: BATCHES[0], 2: BATCHES[2]}
    assert SampleStore(tmp_path).collect(SIZES) == {0: BATCHES[0], 2: BATCHES[2]}


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_whatever_byte_a_kill_cuts_at_whole_batches_stay_and_the_last_is_drawn_anew(tmp_path, rank):
    content = written(tmp_path / "whole", [0, 1, 2], rank).part(rank).read_bytes()
    ends = [index + 1 for index, byte in enumerate(content) if byte == 10]
    for cut in range(len(content) + 1):
        folder = tmp_path / f"cut{cut}"
        store = SampleStore(folder)
        store.part(rank).write_bytes(content[:cut])
        lines = sum(end <= cut for end in ends)
        whole = [number for number, needed in ((0, 2), (1, 3), (2, 5)) if lines >= needed]
        assert list(store.collect(SIZES)) == whole
        for number in set(SIZES) - set(whole):  # the run goes on behind what is left
            store.append(0, number, BATCHES[number])
        assert store.collect(SIZES) == BATCHES


def test_parts_of_all_processes_are_brought_together_and_a_batch_in_two_of_them_counts_once(tmp_path):
    written(tmp_path, [0, 1], rank=0)
    store = written(tmp_path, [1, 2], rank=3)
    assert store.collect(SIZES) == BATCHES
    assert [path.name for path in tmp_path.iterdir()] == ["samples.part-0.jsonl"]


def test_batches_that_are_not_of_this_evaluation_are_dropped(tmp_path):
    assert written(tmp_path, [0, 2]).collect({0: 2, 2: 3}) == {0: BATCHES[0]}


def test_the_final_file_has_one_line_a_sample_and_reads_back(tmp_path):
    store = written(tmp_path, [0, 1, 2])
    samples = [each for batch in BATCHES.values() for each in batch]
    store.finish(samples)
    assert read_samples(store.final) == samples
    assert [path.name for path in tmp_path.iterdir()] == ["samples.jsonl"]
    first = json.loads(store.final.read_text(encoding="utf-8").split("\n")[0])
    assert list(first) == list(Sample._fields)


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    store = written(tmp_path, [0])
    store.part(0).write_bytes(b'{"batch": 0,\n' + store.part(0).read_bytes())
    with pytest.raises(ValueError, match=r"samples.part-0.jsonl', line 1: is no sample"):
        store.collect(SIZES)


@pytest.mark.parametrize("content", ['{"a": 1}\n', "[]\n"])
def test_a_file_of_something_else_is_no_evaluation(tmp_path, content):
    path = tmp_path / "samples.jsonl"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"line 1: is no sample; expected the keys \['benchmark'"):
        read_samples(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"samples.jsonl'?: no such file"):
        read_samples(tmp_path / "samples.jsonl")
