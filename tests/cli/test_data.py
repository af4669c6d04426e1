"""Datasets, from what users have to what TRL takes."""

import gzip
import json

import pytest
from datasets import Dataset, DatasetDict, IterableDataset, load_dataset
from trl import DatasetMixtureConfig

from acpo_trl.cli.arguments import ACPOScriptArguments
from acpo_trl.cli.data import load_splits, prepare

ROW = {"problem": "1+1=", "answer": "2", "level": 5}


def load(path=None, evaluate=False, mixture=None, **options):
    return load_splits(
        ACPOScriptArguments(dataset_name=path, **options), mixture or DatasetMixtureConfig(), evaluate=evaluate
    )


def prepared(*rows, has_chat_template=True, **options):
    dataset = prepare(Dataset.from_list(list(rows)), ACPOScriptArguments(**options), has_chat_template)
    return list(dataset)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows.json", "rows.csv", "rows.parquet"])
def test_local_file_is_loaded_with_all_columns(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(json.dumps(ROW).encode()))
    elif name == "rows.json":
        path.write_text(json.dumps([ROW]))
    elif name == "rows.jsonl":
        path.write_text(json.dumps(ROW))
    else:
        getattr(Dataset.from_list([ROW]), f"to_{path.suffix[1:]}")(path)
    (rows,) = load(str(path))
    (row,) = rows
    assert {column: str(value) for column, value in row.items()} == {"problem": "1+1=", "answer": "2", "level": "5"}


def test_folder_gives_its_splits(write_rows, tmp_path):
    write_rows(ROW, ROW, name="train.jsonl")
    write_rows(ROW, name="test.jsonl")
    train, test = load(str(tmp_path), evaluate=True)
    assert (len(train), len(test)) == (2, 1)


def test_split_can_be_a_slice(write_rows):
    (rows,) = load(write_rows(ROW, ROW, ROW), dataset_train_split="train[:2]")
    assert len(rows) == 2


def test_mixture_is_joined_and_split(write_rows):
    source = {"path": "json", "data_files": write_rows(ROW, ROW)}
    mixture = DatasetMixtureConfig(datasets=[source, dict(source)], test_split_size=0.25)
    train, test = load(mixture=mixture, evaluate=True)
    assert (len(train), len(test)) == (3, 1)


def test_mixture_without_test_split_says_how_to_get_one(write_rows):
    mixture = DatasetMixtureConfig(datasets=[{"path": "json", "data_files": write_rows(ROW)}])
    with pytest.raises(ValueError, match=r"split 'test': not in the mixture; .*set test_split_size"):
        load(mixture=mixture, evaluate=True)


@pytest.mark.parametrize("limit", [2, 99])
@pytest.mark.parametrize("streaming", [False, True])
def test_max_train_samples_takes_the_first_rows(write_rows, limit, streaming):
    path = write_rows(*({**ROW, "level": i} for i in range(3)))
    (rows,) = load(path, max_train_samples=limit, dataset_streaming=streaming)
    assert [row["level"] for row in rows] == list(range(min(limit, 3)))


def test_streaming_stays_streaming(write_rows):
    arguments = ACPOScriptArguments(dataset_name=write_rows(ROW), dataset_streaming=True)
    (rows,) = load_splits(arguments, DatasetMixtureConfig(), evaluate=False)
    rows = prepare(rows, arguments, has_chat_template=False)
    assert isinstance(rows, IterableDataset)
    assert list(rows) == [{"problem": "1+1=", "level": 5, "prompt": "1+1=", "solution": "2"}]


@pytest.mark.parametrize("path", ["absent.jsonl", "./absent", "/absent/rows"])
def test_missing_file_is_an_error(path):
    with pytest.raises(ValueError, match=f"dataset_name '{path}': no such file or folder"):
        load(path)


@pytest.mark.parametrize("text", ["", "[]"])
@pytest.mark.parametrize("streaming", [False, True])
def test_empty_dataset_is_an_error(tmp_path, text, streaming):
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"empty|no data"):
        load(str(path), dataset_streaming=streaming)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("line", "reason"), [('{"problem": oops}', "JSON parse error: Invalid value"), ('{"problem": ', "Expected object")]
)
def test_broken_line_is_told_in_one_line(tmp_path, line, reason, streaming):
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"problem": "1+1="}}\n{line}\n{{"problem": "1+2="}}\n')
    with pytest.raises(ValueError, match=rf"rows\.jsonl', split 'train': {reason}.*; correct its files") as refusal:
        load(str(path), dataset_streaming=streaming)
    assert "\n" not in str(refusal.value)


def test_files_of_different_columns_are_told_in_one_line(write_rows, tmp_path):
    write_rows(ROW, name="data/train-0.jsonl")
    write_rows({"text": "1+1="}, name="data/train-1.jsonl")
    with pytest.raises(ValueError, match=r"data', split 'train': .*text.*which need the same columns") as refusal:
        load(str(tmp_path / "data"))
    assert "\n" not in str(refusal.value)


def test_folder_of_save_to_disk_says_how_to_write_it(tmp_path):
    Dataset.from_list([ROW]).save_to_disk(tmp_path / "one")
    DatasetDict({"train": Dataset.from_list([ROW])}).save_to_disk(tmp_path / "more")
    for name in ("one", "more"):
        with pytest.raises(ValueError, match=rf"{name}': was written by `save_to_disk`.*write it with `to_parquet`"):
            load(str(tmp_path / name))


def test_empty_folder_is_an_error(tmp_path):
    (tmp_path / "empty" / "inner").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"empty': is an empty folder; expected files among \['\.json', '\.jsonl'"):
        load(str(tmp_path / "empty"))


def test_unknown_split_lists_the_splits(write_rows):
    with pytest.raises(ValueError, match=r"Unknown split \"tset\".*\['train'\].*dataset_test_split"):
        load(write_rows(ROW), evaluate=True, dataset_test_split="tset")


def test_no_source_and_two_sources_are_errors(write_rows):
    path = write_rows(ROW)
    with pytest.raises(ValueError, match="neither is set; expected one source"):
        load()
    with pytest.raises(ValueError, match="both are set; expected one source"):
        load(path, mixture=DatasetMixtureConfig(datasets=[{"path": "json", "data_files": path}]))


def test_prompt_becomes_messages_and_answer_becomes_solution():
    (row,) = prepared(ROW, system_prompt="Be brief.", prompt_template="{prompt} Use \\boxed{{}}.")
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1+1= Use \\boxed{}."}]
    assert row == {"problem": "1+1=", "level": 5, "prompt": messages, "solution": "2"}


def test_prompt_stays_text_without_chat_template():
    (row,) = prepared(ROW, has_chat_template=False, prompt_template="Q: {prompt}")
    assert row["prompt"] == "Q: 1+1="


def test_prompt_format_text_wins_over_the_chat_template():
    assert prepared(ROW, prompt_format="text")[0]["prompt"] == "1+1="


def test_conversation_is_kept_and_only_gets_a_missing_system_message():
    user, system = {"role": "user", "content": "1+1="}, {"role": "system", "content": "Think."}
    rows = prepared({"prompt": [user]}, {"prompt": [system, user]}, system_prompt="Be brief.")
    brief = {"role": "system", "content": "Be brief."}
    assert [row["prompt"] for row in rows] == [[brief, user], [system, user]]


def test_named_columns_win_over_usual_ones_and_nothing_is_lost():
    row = {"prompt": "old", "text": "1+1=", "solution": "one and one is two", "gold": "2"}
    (row,) = prepared(row, prompt_column="text", answer_column="gold", prompt_format="text")
    assert row == {"prompt": "1+1=", "text": "1+1=", "original_solution": "one and one is two", "solution": "2"}


def test_columns_of_a_programming_task_are_kept_beside_a_template():
    row = {"prompt": "def f():\n", "test": "assert f()", "entry_point": "f", "canonical_solution": "    return 1\n"}
    (found,) = prepared(row, prompt_template="Complete this function:\n{prompt}")
    assert found == {**row, "prompt": [{"role": "user", "content": "Complete this function:\ndef f():\n"}]}


def test_solution_is_preferred_to_answer():
    (row,) = prepared({"problem": "1+1=", "solution": "2", "answer": "two"})
    assert (row["solution"], row["answer"]) == ("2", "two")


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        (ROW, {"prompt_column": "q"}, r"prompt_column 'q': no such column; expected one of \['problem', 'answer'"),
        (ROW, {"answer_column": "gold"}, r"answer_column 'gold': no such column; expected one of \['problem'"),
        ({"text": "x"}, {}, r"none of the columns \['prompt', 'problem', 'question'\]; its columns are \['text'\]"),
        ({"prompt": 7}, {}, "prompt column 'prompt' has the value 7; expected text"),
        (
            {"prompt": ["1+1=", "2+2="]},
            {},
            r"'prompt' has the value \['1\+1=', '2\+2='\]; expected text or a list of ch",
        ),
        (ROW, {"system_prompt": "x", "prompt_format": "text"}, "system_prompt: plain-text prompts have no system"),
        ({"prompt": [{"role": "user", "content": "x"}]}, {"prompt_template": "{prompt}"}, "holds chat messages"),
        ({"prompt": [{"role": "user", "content": "x"}]}, {"prompt_format": "text"}, "holds chat messages"),
    ],
)
def test_column_that_cannot_be_used_is_named(row, options, message):
    with pytest.raises(ValueError, match=message):
        prepared(row, **options)


@pytest.mark.parametrize("row", [ROW, {"prompt": [{"role": "user", "content": "x"}]}])
def test_chat_prompts_need_a_chat_template(row):
    with pytest.raises(ValueError, match="the tokenizer has no chat template"):
        prepared(row, has_chat_template=False, prompt_format="chat")


def test_prepared_rows_come_from_the_cache_on_other_processes(write_rows):
    path = write_rows(ROW)
    fingerprints = {
        prepare(load_dataset("json", data_files=path, split="train"), ACPOScriptArguments(), True)._fingerprint
        for _ in range(2)
    }
    assert len(fingerprints) == 1
