"""The numbers of a benchmark, worked out by hand from a few samples."""

import json

import pytest

from acpo_trl.evaluation.benchmarks import Benchmark, Problem
from acpo_trl.evaluation.results import read_origins, summarize, write_results
from acpo_trl.evaluation.samples import Sample

MATHS = Benchmark("maths")


def sample(problem, index, verdict, answer=None, tokens=10, is_truncated=False):
    return Sample("maths", problem, index, "", answer, verdict, "", tokens, is_truncated, 0.1)


def samples_of(table):
    """Samples from the verdicts of each problem."""
    return [sample(name, index, verdict) for name, row in table.items() for index, verdict in enumerate(row)]


def result_of(table, groups=(), samples=None):
    problems = [Problem(name, "", {}, group) for name, group in zip(table, groups or [None] * len(table), strict=True)]
    k = len(next(iter(table.values())))
    return summarize(MATHS, problems, samples_of(table) if samples is None else samples, k)


def test_means_and_pass_at_k_are_over_problems():
    result = result_of({"a": [1.0, 0.0, 0.0, 0.0], "b": [1.0, 1.0, 1.0, 1.0], "c": [0.0, 0.0, 0.0, 0.0]})
    assert (result.num_problems, result.num_samples, result.num_unscored) == (3, 4, 0)
    assert result.mean_at_k.mean == pytest.approx((0.25 + 1 + 0) / 3)
    assert {k: estimate.mean for k, estimate in result.pass_at_k.items()} == {
        1: pytest.approx((0.25 + 1 + 0) / 3),
        2: pytest.approx((0.5 + 1 + 0) / 3),
        4: pytest.approx(2 / 3),
    }
    assert result.mean_at_k.interval.low < result.mean_at_k.mean < result.mean_at_k.interval.high


def test_pass_at_k_is_given_for_k_itself_where_it_is_no_power_of_two():
    assert list(result_of({"a": [1.0] * 6}).pass_at_k) == [1, 2, 4, 6]
    assert list(result_of({"a": [1.0]}).pass_at_k) == [1]


def test_an_unscored_sample_is_no_wrong_one_and_is_counted():
    result = result_of({"a": [1.0, None], "b": [None, None], "c": [0.0, 1.0]})
    assert result.num_unscored == 3
    assert (result.mean_at_k.mean, result.mean_at_k.num_problems) == (0.75, 2)
    assert (result.pass_at_k[1].mean, result.pass_at_k[1].num_problems) == (0.75, 2)
    assert (result.pass_at_k[2].mean, result.pass_at_k[2].num_problems) == (1.0, 1)  # b and a lack two


def test_without_a_verdict_nothing_is_known():
    result = result_of({"a": [None, None]})
    assert (result.mean_at_k, result.pass_at_k, result.maj_at_k, result.num_unscored) == (None, {}, None, 2)


def test_partial_verdicts_have_a_mean_and_no_pass_at_k():
    result = result_of({"a": [0.5, 1.0]})
    assert result.mean_at_k.mean == 0.75
    assert result.pass_at_k == {}


def test_the_majority_counts_equal_answers_together_and_unscored_ones_not_at_all():
    votes = [("0.5", 1.0), ("\\frac{1}{2}", 1.0), ("3", 0.0), ("4", None), ("4", None), ("4", None)]
    samples = [sample("a", index, verdict, answer) for index, (answer, verdict) in enumerate(votes)]
    assert result_of({"a": [None] * 6}, samples=samples).maj_at_k.mean == 1.0
    assert result_of({"a": [1.0]}).maj_at_k is None  # of one there is no majority


def test_lengths_are_over_samples_and_groups_have_numbers_of_their_own():
    table = {"a": [1.0, 1.0], "b": [0.0, 1.0], "c": [0.0, 0.0]}
    samples = [
        sample(name, index, verdict, tokens=10 * (index + 1), is_truncated=name == "c")
        for name, row in table.items()
        for index, verdict in enumerate(row)
    ]
    result = result_of(table, ["algebra", "geometry", "algebra"], samples)
    assert (result.truncation_rate, result.mean_tokens) == (pytest.approx(1 / 3), 15.0)
    assert list(result.groups) == ["algebra", "geometry"]
    algebra = result.groups["algebra"]
    assert (algebra.num_problems, algebra.mean_at_k.mean, algebra.truncation_rate) == (2, 0.5, 0.5)
    assert result.groups["geometry"].mean_at_k.mean == 0.5


def test_the_order_of_samples_does_not_matter():
    table = {"a": [1.0, 0.0, None], "b": [0.0, 0.0, 1.0]}
    assert result_of(table) == result_of(table, samples=samples_of(table)[::-1])


def test_missing_and_foreign_samples_are_refused():
    table = {"a": [1.0, 0.0], "b": [1.0, 0.0]}
    with pytest.raises(ValueError, match=r"problem 'b': has the samples \[0\]; expected 0 to 1, each once"):
        result_of(table, samples=samples_of({"a": [1.0, 0.0], "b": [1.0]}))
    with pytest.raises(ValueError, match=r"problem 'b': has the samples \[0, 1, 1\]"):
        result_of(table, samples=[*samples_of(table), sample("b", 1, 1.0)])
    with pytest.raises(ValueError, match="sample of 'z': no such problem"):
        result_of({"a": [1.0]}, samples=samples_of({"z": [1.0]}))


def test_the_file_holds_the_numbers_and_where_problems_came_from(tmp_path):
    result = result_of({"a": [1.0, 0.0], "b": [1.0, 1.0]}, ["x", None])
    write_results(tmp_path, {"seed": 0}, ["f.jsonl sha256:1"], [result])
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["settings"] == {"seed": 0}
    (entry,) = content["benchmarks"]
    assert entry["mean_at_k"]["mean"] == 0.75
    assert entry["mean_at_k"]["interval"].keys() == {"low", "high", "method"}
    assert entry["pass_at_k"]["2"]["mean"] == 1.0
    assert entry["groups"]["x"]["mean_at_k"]["mean"] == 0.5
    assert read_origins(tmp_path) == {"maths": "f.jsonl sha256:1"}


def test_a_folder_without_finished_evaluation_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no results.json; expected the folder of a finished evaluation"):
        read_origins(tmp_path)
    (tmp_path / "results.json").write_text("[]")
    with pytest.raises(ValueError, match="is none of an evaluation"):
        read_origins(tmp_path)
