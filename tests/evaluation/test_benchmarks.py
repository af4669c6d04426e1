"""Benchmarks, and their problems from files."""

import csv
import gzip
import json
from types import SimpleNamespace

import pytest
from datasets import Dataset
from shared import shared_file

from acpo_trl.evaluation.benchmarks import BENCHMARKS, Benchmark, Source, benchmark_of, fill
from acpo_trl.evaluation.load import load_problems

TWO = [{"problem": "1+1?", "answer": "2"}, {"problem": "2+2?", "answer": "4"}]


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def problems_of(path, benchmark=None, **options):
    fields = {"name": "mine", "source": str(path)} | (benchmark or {})
    return load_problems(benchmark_of(fields), **options).problems


FILES = {
    "aime24": ("aime2024.jsonl", 14),
    "aime25": ("aime2025.jsonl", 8),
    "amc23": ("amc23.jsonl", 14),
    "math500": ("math500.jsonl.gz", 192),
    "gsm8k": ("gsm8k_test.jsonl.gz", 579),
    "minerva": ("minerva_math.jsonl.gz", 126),
    "olympiadbench": ("olympiadbench.jsonl.gz", 274),
    "hmmt": ("comp_math_24_25.jsonl", 83),
    "humaneval": ("humaneval.jsonl.gz", 82),
    "humaneval_pro": ("humaneval_pro.jsonl.gz", 82),
    "mbpp": ("mbpp.jsonl.gz", 397),
    "mbpp_pro": ("mbpp_pro.jsonl.gz", 152),
    "stdin_stdout": ("stdin_stdout.jsonl.gz", 323),
}


@pytest.mark.parametrize("name", FILES)
def test_published_file_loads_as_it_is_and_fills_the_prompts(name):
    file, count = FILES[name]
    benchmark = benchmark_of({"name": name, "source": str(shared_file(f"data/benchmarks/{file}"))})
    problems = load_problems(benchmark).problems
    assert len(problems) == len({problem.id for problem in problems}) == count
    for problem in problems:
        for template in (benchmark.template, benchmark.text_template):
            assert problem.prompt in fill(template, {**problem.row, "problem": problem.prompt}, name)


def test_every_builtin_benchmark_has_a_file_here_and_a_pinned_commit():
    assert set(FILES) == set(BENCHMARKS)
    for name, benchmark in BENCHMARKS.items():
        if name != "stdin_stdout":
            assert len(benchmark.source.revision) == 40 and int(benchmark.source.revision, 16)


def test_subject_of_math500_and_subfield_of_olympiadbench_are_groups():
    assert {p.group for p in problems_of(shared_file("data/benchmarks/math500.jsonl.gz"))} >= {"Algebra", "Geometry"}
    assert {p.group for p in problems_of(shared_file("data/benchmarks/olympiadbench.jsonl.gz"))} >= {"Algebra"}


def write_csv(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("rows.jsonl", written),
        ("rows.json", lambda path, rows: path.write_text(json.dumps(rows, indent=1))),
        ("rows.jsonl.gz", lambda path, rows: path.write_bytes(gzip.compress(json.dumps(rows).encode()))),
        ("rows.csv", write_csv),
        ("rows.parquet", lambda path, rows: Dataset.from_list(rows).to_parquet(path)),
    ],
)
def test_kinds_of_files_give_the_same_problems(tmp_path, name, write):
    rows = [{"question": 'Say "hi",\nplease', "answer": "2"}, {"question": "Größe?", "answer": "4"}]
    write(tmp_path / name, rows)
    problems = problems_of(tmp_path / name)
    assert [(p.id, p.prompt, p.row["answer"], p.group) for p in problems] == [
        ("mine-0", 'Say "hi",\nplease', "2", None),
        ("mine-1", "Größe?", "4", None),
    ]


def test_origin_tells_which_file_and_which_bytes(tmp_path):
    path = written(tmp_path / "rows.jsonl", TWO)
    first = load_problems(benchmark_of({"name": "mine", "source": str(path)})).origin
    assert first.startswith(f"{path} sha256:")
    written(path, TWO[:1])
    assert load_problems(benchmark_of({"name": "mine", "source": str(path)})).origin != first


def test_limit_draws_the_same_problems_each_time_and_fewer_are_among_more(tmp_path):
    path = written(tmp_path / "rows.jsonl", [{"problem": f"{n}?", "answer": n, "id": n} for n in range(100)])
    ten, thirty, other = (
        [p.id for p in problems_of(path, limit=limit, seed=seed)] for limit, seed in ((10, 0), (30, 0), (10, 1))
    )
    assert ten == [p.id for p in problems_of(path, limit=10)]
    assert set(ten) < set(thirty) and thirty == sorted(thirty, key=int) and len(thirty) == 30
    assert ten != other and ten != [str(n) for n in range(10)]
    assert len(problems_of(path, limit=1000)) == 100


@pytest.mark.parametrize("limit", [0, -1, 1.5])
def test_limit_that_leaves_nothing_is_refused(tmp_path, limit):
    with pytest.raises(ValueError, match=f"limit {limit}"):
        problems_of(written(tmp_path / "rows.jsonl", TWO), limit=limit)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "has no rows"),
        (
            [{"text": "1+1?", "gold": "2"}],
            r"no column for 'answer' among \['gold', 'text'\]; expected one of \['answer'",
        ),
        ([{"task": "1+1?", "answer": "2"}], r"no column for 'problem' among \['answer', 'task'\]"),
        ([*TWO, {"problem": "3?", "answer": ""}], r"no gold answer in column 'answer': 'mine-2' \(1 in all\)"),
        ([*TWO, {"problem": "3?"}], "no gold answer in column 'answer': 'mine-2'"),
        ([{"problem": "3?", "answer": "3"}, {"problem": None, "answer": "2"}], "no text in column 'problem': 'mine-1'"),
        ([{"id": "a", **TWO[0]}, {"id": "a", **TWO[1]}], r"ids that occur more than once: 'a'"),
    ],
)
def test_rows_that_cannot_be_evaluated_are_refused(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        problems_of(written(tmp_path / "rows.jsonl", rows))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"answer": "gold"}, "no column for 'answer'.*expected 'gold'"),
        ({"id": "number"}, "no column for 'id'.*expected 'number'"),
    ],
)
def test_column_that_is_named_and_not_there_is_refused(tmp_path, columns, message):
    with pytest.raises(ValueError, match=message):
        problems_of(written(tmp_path / "rows.jsonl", TWO), {"columns": columns})


def test_rows_without_tests_are_refused(tmp_path):
    path = written(tmp_path / "rows.jsonl", [{"prompt": "Add.", "tests": [], "task_id": 7}])
    with pytest.raises(ValueError, match=r"no tests in \['tests'\]: '7'"):
        problems_of(path, {"check": "code"})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.jsonl", None, "no such file; expected one that ends in"),
        ("rows.txt", b"x", "not a kind of file that can be read"),
        ("rows.jsonl", b'{"problem": "1', "cannot be read"),
        ("rows.jsonl", b"[1, 2]", "not every row is a JSON object"),
        ("rows.jsonl.gz", b"not gzip", "cannot be read"),
        ("rows.csv", b"\xff\xfe", "cannot be read"),
        ("rows.parquet", b"PAR1", "cannot be read"),
    ],
)
def test_file_that_cannot_be_read_is_refused(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        problems_of(tmp_path / name)


def test_hub_dataset_that_cannot_be_reached_says_so():
    with pytest.raises(ValueError, match=r"dataset 'openai/no-such-data'.*cannot be loaded from the Hub"):
        load_problems(Benchmark("mine", source=Source("openai/no-such-data")))


@pytest.mark.parametrize(("pinned", "taken"), [("a" * 40, "a" * 40), (None, "b" * 40)])
def test_hub_dataset_is_read_at_its_commit_or_at_the_newest_which_is_told(monkeypatch, pinned, taken):
    def load_dataset(path, name, split, revision):
        assert (path, name, split, revision) == ("me/mine", "main", "train", taken)
        return Dataset.from_list(TWO)

    monkeypatch.setattr("acpo_trl.evaluation.load.load_dataset", load_dataset)
    monkeypatch.setattr("acpo_trl.evaluation.load.HfApi.dataset_info", lambda *_: SimpleNamespace(sha="b" * 40))
    problems, origin = load_problems(Benchmark("mine", source=Source("me/mine", "main", "train", pinned)))
    assert origin == f"me/mine@{taken}" and [p.row["answer"] for p in problems] == ["2", "4"]


def test_benchmark_without_source_is_refused():
    with pytest.raises(ValueError, match="has no source"):
        load_problems(BENCHMARKS["stdin_stdout"])


def test_mistyped_name_suggests_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'math500'"):
        benchmark_of("math50")


def test_fields_make_a_new_benchmark_or_change_a_builtin_one():
    changed = benchmark_of({"name": "aime24", "source": "aime.jsonl"})
    assert changed.source == Source("aime.jsonl") and changed.few_shot == BENCHMARKS["aime24"].few_shot
    new = benchmark_of({"name": "mine", "check": "code", "source": {"path": "me/mine", "split": "train"}})
    assert new.source == Source("me/mine", None, "train", None) and new.check == "code"


@pytest.mark.parametrize(
    ("entry", "error", "message"),
    [
        ({"name": "mine", "sources": "x"}, ValueError, "expected `name` and some of"),
        ({"check": "math"}, ValueError, "expected `name`"),
        ({"name": "mine", "source": {"repo": "x"}}, ValueError, "source {'repo': 'x'}"),
        ({"name": "mine", "columns": {"gold": "answer"}}, ValueError, r"columns \['gold'\]: have no use"),
        ({"name": "mine", "stop": "Question:"}, TypeError, "expected a list of texts"),
        (7, TypeError, "benchmark 7: is a int"),
        ("json.loads", TypeError, "expected a Benchmark"),
    ],
)
def test_bad_entries_are_refused(entry, error, message):
    with pytest.raises(error, match=message):
        benchmark_of(entry)


def test_own_columns_and_answers_in_lists(tmp_path):
    path = written(
        tmp_path / "rows.jsonl", [{"frage": "Roots?", "loesung": ["$1$", "$2$"], "nr": 3, "fach": "algebra"}]
    )
    columns = {"problem": "frage", "answer": "loesung", "id": "nr", "group": "fach"}
    (problem,) = problems_of(path, {"columns": columns})
    assert problem[:2] == ("3", "Roots?") and problem.group == "algebra"
    assert problem.row["answer"] == "$1$, $2$" and problem.row["loesung"] == ["$1$", "$2$"]


def test_mbpp_joins_its_tests_and_finds_a_function_named_like_a_builtin(tmp_path):
    row = {"task_id": 1, "text": "Add.", "code": "def sum(a, b):\n    return a + b"}
    path = written(
        tmp_path / "rows.jsonl", [{**row, "test_setup_code": "x = 1", "test_list": ["assert sum(x, 1) == 2"]}]
    )
    (problem,) = problems_of(path, {"name": "mbpp"})
    assert problem.row["tests"] == ["x = 1", "assert sum(x, 1) == 2"] and problem.row["entry_point"] == "sum"
