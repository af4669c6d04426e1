"""The start of the quick start with several turns: tokenizer, demonstrations, folder."""

import json
import random

import pytest
from transformers import AutoTokenizer

from acpo_trl.envs import lookup_tasks
from acpo_trl.quickstart import lookup
from acpo_trl.quickstart.lookup import batches, build_lookup_start, build_lookup_tokenizer, demonstration
from acpo_trl.rollouts import episode_from_tagged

ROW = {
    "prompt": [{"role": "user", "content": "Look up card a."}],
    "path": "ab",
    "cards": ["!c =b", "=7 !3", "=5 !d", *["=1 !2"] * 23],
    "solution": "7",
}
RIGHT = (
    "<look>a</look>\n<information>!c =b</information>\n"
    "<look>b</look>\n<information>=7 !3</information>\n"
    "<answer>7</answer>"
)


@pytest.fixture
def few_tasks(monkeypatch):
    monkeypatch.setattr(lookup, "NUM_TRAIN", 40)


@pytest.fixture(scope="module")
def tokenizer():
    return build_lookup_tokenizer()


def test_a_player_who_always_follows_the_sign_is_right():
    assert demonstration(ROW, random.Random(0), follow=1.0) == RIGHT


def test_a_player_who_never_follows_it_takes_every_distractor():
    assert demonstration(ROW, random.Random(0), follow=0.0) == (
        "<look>a</look>\n<information>!c =b</information>\n"
        "<look>c</look>\n<information>=5 !d</information>\n"
        "<look>d</look>\n<information>=1 !2</information>\n"
        "<answer>2</answer>"
    )


def test_demonstrations_take_either_sign_equally_often():
    rng = random.Random(0)
    texts = [demonstration(ROW, rng) for _ in range(400)]
    assert 160 < sum("<look>b</look>" in text for text in texts) < 240


def test_an_episode_that_never_reaches_a_digit_ends_with_the_last_turn():
    circle = {**ROW, "cards": ["=b !b", "=a !a", *["=1 !2"] * 24]}
    text = demonstration(circle, random.Random(0))
    assert (text.count("<look>"), text.count("<answer>")) == (8, 0)


def test_tags_and_signs_with_their_target_are_tokens(tokenizer):
    ids = tokenizer("<look>a</look>\n<information>!c =7</information>\n")["input_ids"]
    assert [tokenizer.decode([i]) for i in ids] == [
        *("<look>", "a", "</look>", "\n"),
        *("<information>", "!c", " ", "=7", "</information>", "\n"),
    ]


@pytest.mark.slow
def test_saved_tokenizer_loads_as_itself(tokenizer, tmp_path, few_tasks):
    build_lookup_start(tmp_path / "start", seed=0, num_steps=1)
    loaded = AutoTokenizer.from_pretrained(tmp_path / "start/model")
    for row in lookup_tasks(50, seed=5):
        text = row["prompt"][0]["content"] + demonstration(row, random.Random(0))
        assert loaded(text)["input_ids"] == tokenizer(text)["input_ids"]
        assert loaded.decode(loaded(text)["input_ids"]) == text


def test_only_what_the_player_wrote_is_learned(tokenizer):
    episode = episode_from_tagged(ROW["prompt"], RIGHT, tokenizer)
    batch = next(batches([episode], tokenizer.pad_token_id, random.Random(0)))
    ids, labels = batch["input_ids"][0], batch["labels"][0]
    assert tokenizer.decode(ids) == f"<|im_start|>user\nLook up card a.<|im_end|>\n<|im_start|>assistant\n{RIGHT}"
    assert tokenizer.decode(labels[labels != -100]) == "<look>a</look><look>b</look><answer>7</answer>"


def test_padding_is_neither_seen_nor_learned(tokenizer):
    texts = [RIGHT, "<answer>7</answer>"]
    episodes = [episode_from_tagged(ROW["prompt"], text, tokenizer) for text in texts]
    batch = next(batches(episodes, tokenizer.pad_token_id, random.Random(0)))
    padding = batch["input_ids"] == tokenizer.pad_token_id
    assert padding.any()
    assert not batch["attention_mask"][padding].any()
    assert (batch["labels"][padding] == -100).all()


@pytest.mark.slow
def test_a_seed_gives_the_same_folder_again_and_held_out_tasks_are_others(tmp_path, few_tasks):
    for name in ("a", "b"):
        build_lookup_start(tmp_path / name, seed=4, num_steps=2)
    first, second = (
        {file.relative_to(tmp_path / name): file.read_bytes() for file in (tmp_path / name).rglob("*.*")}
        for name in ("a", "b")
    )
    assert first == second
    train, test = (
        [json.loads(line)["cards"] for line in (tmp_path / f"a/{name}.jsonl").read_text().splitlines()]
        for name in ("train", "test")
    )
    assert (len(train), len(test)) == (40, 300)
    assert not any(deck in train for deck in test)
