"""Episodes tell action from environment tokens and turn from turn, and survive a file."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acpo_trl.rollouts import Episode, Segment, Turn, read_episodes, write_episodes

SEARCH = Episode(
    prompt_ids=[4, 20],
    segments=[
        Segment("prefill", [80]),
        Turn([21, 2], log_probs=[-0.5, None], rewards={"process": 1.0, "format": None}, state_key="s0"),
        Segment("tool", [30, 31]),
        Turn([]),
        Segment("user", [40]),
        Turn([22, 23], log_probs=[-0.1, -0.2], finish_reason="length"),
    ],
    stop_reason="tokens",
    rewards={"outcome": None},
    info={"task": "é\n", "seeds": [1, 2]},
)

# fmt: off
#           prefill | turn 0 | tool   | turn 1 has no token | user | turn 2
IDS =       [80,      21,  2,  30, 31,                        40,    22, 23]
MASK =      [0,        1,  1,   0,  0,                         0,     1,  1]
TURN_IDS =  [-1,       0,  0,  -1, -1,                        -1,     2,  2]
# fmt: on


def test_tokens_of_the_policy_are_actions_and_turns_count_generation_calls():
    assert SEARCH.completion_ids == IDS
    assert SEARCH.action_mask == MASK
    assert SEARCH.turn_ids == TURN_IDS
    assert len(SEARCH.turns) == 3


def test_sampled_token_without_log_prob_is_unknown_and_environment_tokens_have_zero():
    log_probs = SEARCH.log_probs
    assert math.isnan(log_probs[2])
    assert [log_probs[i] for i in (0, 1, 3, 4, 5, 6, 7)] == [0.0, -0.5, 0.0, 0.0, 0.0, -0.1, -0.2]
    assert Episode([1], [Turn([2])]).log_probs is None


def test_adjacent_turns_are_two_turns():
    assert Episode([1], [Turn([5, 6]), Turn([7])]).turn_ids == [0, 0, 1]


@pytest.mark.parametrize(
    ("episode", "truncated"),
    [
        (SEARCH, True),
        (Episode([1], [Turn([21, 22, 29])]), False),  # the last id need not be the tokenizer's EOS
        (Episode([1], [Turn([10, 2])], stop_reason="tokens"), True),  # a tool result that did not fit
        (Episode([1], [Turn([10, 11], finish_reason="length")]), True),
        (Episode([1], [Turn([10], finish_reason="length"), Turn([2])]), False),
        (Episode([1], [], stop_reason="error"), False),
        (Episode([1], [Turn([2])], stop_reason="turns"), False),
    ],
)
def test_truncated_is_what_a_limit_of_tokens_ended(episode, truncated):
    assert episode.is_truncated is truncated


@pytest.mark.parametrize("log_probs", [[-0.1, -0.2], [-0.1, -0.2, -0.3, -0.4]])
def test_log_probs_of_other_length_than_the_tokens_are_refused(log_probs):
    with pytest.raises(ValueError, match=f"log_probs of turn 0: length mismatch, {len(log_probs)} for 3 tokens"):
        Episode([1], [Turn([21, 22, 2], log_probs=log_probs)])


def test_unknown_reasons_are_refused():
    with pytest.raises(ValueError, match="stop_reason 'eos': unknown; expected one of"):
        Episode([1], [], stop_reason="eos")
    with pytest.raises(ValueError, match="finish_reason 'eos' of turn 1: unknown"):
        Episode([1], [Turn([2]), Turn([3], finish_reason="eos")])


ids = st.lists(st.integers(0, 99), max_size=4)
values = st.dictionaries(st.sampled_from(["outcome", "cost"]), st.none() | st.floats(-1, 1))
texts = st.none() | st.text(max_size=5)


@st.composite
def turns(draw):
    token_ids = draw(ids)
    log_probs = draw(
        st.none() | st.lists(st.none() | st.floats(-9, 0), min_size=len(token_ids), max_size=len(token_ids))
    )
    finish = draw(st.sampled_from(["stop", "length"]))
    return Turn(
        token_ids,
        log_probs,
        finish,
        draw(st.booleans()),
        draw(values),
        draw(texts),
        draw(texts),
        {"n": draw(st.integers())},
    )


segments = st.builds(Segment, st.sampled_from(["tool", "user", "template"]), ids)
episodes = st.builds(
    Episode,
    prompt_ids=ids,
    segments=st.lists(turns() | segments, max_size=6),
    stop_reason=st.sampled_from(["done", "turns", "tokens", "error"]),
    rewards=values,
    info=st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(episodes, max_size=3))
def test_file_gives_back_equal_episodes(tmp_path_factory, some):
    path = tmp_path_factory.mktemp("episodes") / "episodes.jsonl"
    write_episodes(path, some)
    assert list(read_episodes(path)) == some


@settings(max_examples=30, deadline=None)
@given(episodes)
def test_mask_is_one_exactly_where_a_turn_id_is_given(episode):
    assert episode.action_mask == [int(turn_id >= 0) for turn_id in episode.turn_ids]
    for index, turn in enumerate(episode.turns):
        assert [
            i for i, t in zip(episode.completion_ids, episode.turn_ids, strict=True) if t == index
        ] == turn.token_ids


@pytest.mark.parametrize(
    "line",
    [
        '{"prompt_ids": [1]}',
        "[]",
        "{",
        '{"prompt_ids": [1], "segments": [], "x": 1}',
        '{"prompt_ids": "12", "segments": []}',
        '{"prompt_ids": [1, 2.0], "segments": []}',
        '{"prompt_ids": [true], "segments": []}',
        '{"prompt_ids": [1], "segments": [{"token_ids": null}]}',
        '{"prompt_ids": [1], "segments": [{"role": "tool", "token_ids": ["3"]}]}',
        "[" * 200_000,
        b"\xff\xfe",
    ],
    ids=range(11),
)
def test_broken_line_is_named(tmp_path, line):
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [SEARCH])
    path.write_bytes(path.read_bytes() + (line if isinstance(line, bytes) else line.encode()) + b"\n")
    with pytest.raises(ValueError, match=r"episodes.jsonl, line 2: is no episode"):
        list(read_episodes(path))
    assert json.loads(path.read_bytes().splitlines()[0])["prompt_ids"] == [4, 20]


def test_empty_lines_are_no_episodes_and_no_errors(tmp_path):
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [SEARCH, SEARCH])
    path.write_text(path.read_text().replace("\n", "\n\n") + " \n")
    assert list(read_episodes(path)) == [SEARCH, SEARCH]
