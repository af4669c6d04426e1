"""The cached folder that a quick start begins from."""

import json

import pytest

from acpo_trl.quickstart import build_start, start


def rows(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def contents(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_training_and_held_out_problems_are_disjoint(tmp_path):
    build_start(tmp_path / "start", seed=0, num_steps=1)
    train, test = rows(tmp_path / "start/train.jsonl"), rows(tmp_path / "start/test.jsonl")
    assert (len(train), len(test)) == (8000, 300)
    assert not {row["prompt"] for row in train} & {row["prompt"] for row in test}
    assert all(row.keys() == {"prompt", "solution"} for row in train + test)


@pytest.mark.slow
def test_a_seed_gives_the_same_folder_again(tmp_path):
    for name in ("a", "b"):
        build_start(tmp_path / name, seed=4, num_steps=2)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_finished_folder_is_kept_until_the_seed_changes(tmp_path):
    folder = tmp_path / "start"
    assert build_start(folder, seed=0, num_steps=1)
    first = contents(folder)
    assert not build_start(folder, seed=0, num_steps=1)
    assert contents(folder) == first
    assert build_start(folder, seed=1, num_steps=1)
    assert rows(folder / "test.jsonl")[0] != json.loads(
        first[(folder / "test.jsonl").relative_to(folder)].splitlines()[0]
    )


def test_an_interrupted_build_leaves_the_old_folder_and_no_other(tmp_path, monkeypatch):
    folder = tmp_path / "start"
    build_start(folder, seed=0, num_steps=1)
    first = contents(folder)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "warm_start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_start(folder, seed=1, num_steps=1)
    assert contents(folder) == first
    assert [path.name for path in tmp_path.iterdir()] == ["start"]


def test_a_folder_without_its_key_is_built_anew(tmp_path):
    folder = tmp_path / "start"
    folder.mkdir()
    (folder / "train.jsonl").write_text("half a li")
    assert build_start(folder, seed=0, num_steps=1)
    assert len(rows(folder / "train.jsonl")) == 8000
