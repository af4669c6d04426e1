"""Two evaluations, compared problem by problem, and the tables that people read."""

import pytest

from acpo_trl.evaluation.benchmarks import Benchmark, Problem
from acpo_trl.evaluation.compare import compare
from acpo_trl.evaluation.results import summarize, write_results
from acpo_trl.evaluation.samples import Sample, SampleStore
from acpo_trl.evaluation.tables import comparison_table, markdown_table, text_table

SETTINGS = {
    "sampling": {"max_new_tokens": 512, "temperature": 0.6, "top_p": 0.95},
    "style": {"num_examples": 0},
    "seed": 3,
}


def evaluated(folder, table, name="maths", origin="maths.jsonl sha256:abc", group=None, tokens=20):
    """A finished evaluation with these verdicts."""
    k = len(next(iter(table.values())))
    samples = [
        Sample(name, problem, index, "", None, verdict, "", tokens, False, 0.1)
        for problem, row in table.items()
        for index, verdict in enumerate(row)
    ]
    SampleStore(folder).finish(samples)
    result = summarize(Benchmark(name), [Problem(problem, "", {}, group) for problem in table], samples, k)
    write_results(folder, SETTINGS, [origin], [result])
    return result


BEFORE = {"a": [0.0, 0.0], "b": [1.0, 0.0], "c": [1.0, 1.0], "d": [0.0, 0.0]}
AFTER = {"a": [1.0, 0.0], "b": [1.0, 1.0], "c": [1.0, 0.0], "d": [0.0, 0.0]}


def test_differences_are_paired_by_problem(tmp_path):
    evaluated(tmp_path / "x", BEFORE)
    evaluated(tmp_path / "y", AFTER, origin="elsewhere/maths.jsonl sha256:abc")
    (found,) = compare(tmp_path / "x", tmp_path / "y")
    assert (found.num_problems, found.num_unscored, found.num_equal) == (4, 0, 1)
    assert (found.mean_before, found.mean_after, found.difference) == (0.375, 0.5, 0.125)
    assert (found.gained, found.lost) == (["a", "b"], ["c"])
    assert found.p_value == 1.0  # two heads of three coins or worse, on either side: all of them
    assert found.interval.low < 0.125 < found.interval.high


def test_the_two_may_differ_in_samples_and_a_problem_nobody_scored_is_left_out_and_counted(tmp_path):
    evaluated(tmp_path / "x", {"a": [0.0], "b": [None]})
    evaluated(tmp_path / "y", {"a": [1.0, None], "b": [1.0, 1.0]})
    (found,) = compare(tmp_path / "x", tmp_path / "y")
    assert (found.num_problems, found.num_unscored, found.difference) == (1, 1, 1.0)
    assert "1 problems that one of the two has no verdict of" in comparison_table([found])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"name": "code"}, r"benchmarks \['code', 'maths'\]: are in one of the two"),
        ({"origin": "maths.jsonl sha256:abd"}, "which differ; expected the same problems"),
        ({"table": {"a": [1.0]}}, r"problems \['b', 'c', 'd'\] \(3 in all\): are in one of the two"),
    ],
)
def test_evaluations_of_other_problems_are_refused(tmp_path, other, message):
    evaluated(tmp_path / "x", BEFORE)
    evaluated(tmp_path / "y", **{"table": AFTER, **other})
    with pytest.raises(ValueError, match=message):
        compare(tmp_path / "x", tmp_path / "y")


def test_the_table_of_differences_names_the_problems_that_changed(tmp_path):
    evaluated(tmp_path / "x", {f"p{i}": [0.0] for i in range(12)} | {"q": [1.0]})
    evaluated(tmp_path / "y", {f"p{i}": [1.0] for i in range(12)} | {"q": [0.0]})
    found = compare(tmp_path / "x", tmp_path / "y")
    lines = comparison_table(found).splitlines()
    assert lines[0].split()[:4] == ["problems", "before", "after", "difference"]
    assert lines[1].split()[:4] == ["maths", "13", "7.7", "92.3"]
    assert lines[1].split()[-4:] == ["12", "1", "0", "0.00342"]  # 28 / 2 ** 13
    assert "maths gained: p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, and 2 more" in lines
    assert "maths lost: q" in lines
    assert "p10, p11" in comparison_table(found, all_flips=True)


def test_the_table_of_numbers_is_in_percent_with_intervals(tmp_path):
    result = evaluated(tmp_path, {"a": [1.0, 1.0], "b": [1.0, None], "c": [0.0, 0.0]}, group="algebra")
    low, high, _ = result.mean_at_k.interval
    header, line, *rest = text_table([result]).splitlines()
    assert header.split() == ["problems", "k", "mean@k", "pass@k", "maj@k", "truncated", "tokens", "unscored"]
    assert line.startswith(f"maths         3  2  66.7 [{100 * low:.1f}, {100 * high:.1f}]")
    assert " of 2 " in line  # pass@2 of the two problems that have two verdicts
    assert line.split()[-3:] == ["0.0", "20", "1"]
    assert len(rest) == 1
    assert text_table([result], groups=True).splitlines()[2].split()[:2] == ["algebra", "3"]


def test_what_is_unknown_is_a_dash(tmp_path):
    line = text_table([evaluated(tmp_path, {"a": [None]})]).splitlines()[1]
    assert line.split() == ["maths", "1", "1", "-", "-", "-", "0.0", "20", "1"]


def test_a_model_card_says_how_it_was_measured_and_no_name_breaks_its_table(tmp_path):
    result = evaluated(tmp_path, {"a": [1.0]}, name="ma|ths\n\x1b[31m")
    text = markdown_table([result], SETTINGS)
    assert "| ma\\|ths [31m | 1 | 100.0 [" in text
    assert {line.replace("\\|", "").count("|") for line in text.splitlines()[:3]} == {7}
    assert "512 new tokens at most, temperature 0.6, top_p 0.95, 0 worked examples, seed 3" in text
