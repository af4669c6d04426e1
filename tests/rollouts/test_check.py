"""The checker passes what was sampled and stops at anything else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import PAIR_ID, merging_tokenizer

from acpo_trl.rollouts import Episode, Segment, Turn
from acpo_trl.rollouts.check import RolloutError, RolloutRow, Sampled, check_count, check_form
from acpo_trl.trainer.recording import runs_of


def row_of(episode, mask=None, ids=None):
    mask = episode.action_mask if mask is None else mask
    return RolloutRow(
        episode.prompt_ids, ids or episode.completion_ids, mask, runs_of(mask), None, [], len(episode.turns)
    )


def sampled_for(episode):
    """The generation calls that made the episode."""
    sampled, history = Sampled(), list(episode.prompt_ids)
    for segment in episode.segments:
        if isinstance(segment, Turn):
            sampled.record([history], [segment.token_ids])
        history = history + segment.token_ids
    return sampled


def check(row, sampled):
    check_form(row, 0, vocab_size=1000)
    sampled.check(row, 0, str)
    check_count(row, 0)


tokens = st.lists(st.integers(0, 9), min_size=1, max_size=4)


@st.composite
def episodes(draw):
    """Turns with environment between them, as masks alone can tell them."""
    segments = []
    for _ in range(draw(st.integers(1, 4))):
        segments += [Turn(draw(tokens)), Segment("tool", draw(tokens))]
    return Episode(draw(tokens), segments[: draw(st.integers(1, len(segments)))])


@settings(max_examples=60, deadline=None)
@given(episodes())
def test_what_was_sampled_passes(episode):
    check(row_of(episode), sampled_for(episode))


@settings(max_examples=120, deadline=None)
@given(episodes(), st.data())
def test_mutated_mask_bit_is_caught(episode, data):
    mask = episode.action_mask
    position = data.draw(st.integers(0, len(mask) - 1))
    mask[position] = 1 - mask[position]
    with pytest.raises(RolloutError):
        check(row_of(episode, mask), sampled_for(episode))


@settings(max_examples=120, deadline=None)
@given(episodes(), st.data())
def test_mutated_action_token_is_caught(episode, data):
    ids = episode.completion_ids
    position = data.draw(st.sampled_from([i for i, action in enumerate(episode.action_mask) if action]))
    ids[position] += 10
    with pytest.raises(RolloutError):
        check(row_of(episode, ids=ids), sampled_for(episode))


def test_tokens_that_were_encoded_again_are_caught_with_both_texts():
    tokenizer = merging_tokenizer()
    pair = tokenizer.encode("a") + tokenizer.encode("b")
    again = tokenizer.encode(tokenizer.decode(pair))
    assert again == [PAIR_ID]
    sampled = Sampled()
    sampled.record([[1, 2]], [[*pair, 3]])
    row = RolloutRow([1, 2], [PAIR_ID, 3], [1, 1], [0, 0], None, [])
    with pytest.raises(RolloutError, match=rf"position 0: turn 0 would train \[{PAIR_ID}, 3\] \('ab.*policy sampled"):
        sampled.check(row, 0, tokenizer.decode)


def test_turn_that_a_limit_cut_at_the_end_of_the_row_passes_and_elsewhere_not():
    sampled = Sampled()
    sampled.record([[1]], [[5, 6, 7]])
    sampled.check(RolloutRow([1], [5, 6], [1, 1], [0, 0], None, []), 0, str)
    in_the_middle = RolloutRow([1], [5, 6, 9], [1, 1, 0], [0, 0, -1], None, [])
    with pytest.raises(RolloutError, match="completion 0, position 2: turn 0 would train"):
        sampled.check(in_the_middle, 0, str)
    sampled.check(in_the_middle._replace(cut_turns=[True]), 0, str)


def test_rows_of_one_prompt_may_have_sampled_different_tokens():
    sampled = Sampled()
    sampled.record([[1], [1]], [[5, 2], [6, 2]])
    for ids in ([5, 2], [6, 2]):
        sampled.check(RolloutRow([1], ids, [1, 1], [0, 0], None, []), 0, str)
