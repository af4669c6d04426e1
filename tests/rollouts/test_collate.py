"""A batch holds exactly what its episodes say, whatever the padding, the order and the company."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_episode import SEARCH, episodes

from acpo_trl.rollouts import Episode, Turn, split, to_rollout, to_tensors


def rows_of(some):
    return [(e.prompt_ids, e.completion_ids, e.action_mask, e.turn_ids) for e in some]


def without_log_probs(rows):
    return [row[:4] for row in rows]


@settings(max_examples=30, deadline=None)
@given(st.lists(episodes, min_size=1, max_size=4), st.integers(1, 8), st.sampled_from([0, 2, 77]))
def test_splitting_a_batch_gives_back_its_episodes(some, multiple, pad):
    batch = to_tensors(some, pad_token_id=pad, pad_to_multiple_of=multiple)
    assert without_log_probs(split(batch)) == rows_of(some)
    assert all(tensor.size(1) % multiple == 0 for tensor in batch.values())


@settings(max_examples=30, deadline=None)
@given(st.lists(episodes, min_size=2, max_size=4), st.randoms())
def test_order_and_company_change_no_row(some, random):
    order = list(range(len(some)))
    random.shuffle(order)
    shuffled = split(to_tensors([some[i] for i in order], pad_token_id=0))
    assert without_log_probs(shuffled) == [rows_of(some)[i] for i in order]
    alone = [split(to_tensors([episode], pad_token_id=0))[0] for episode in some]
    assert without_log_probs(alone) == rows_of(some)


def test_padding_of_prompts_is_on_the_left_and_of_completions_on_the_right():
    batch = to_tensors([SEARCH, Episode([7], [Turn([9, 2], log_probs=[-1.0, -2.0])])], pad_token_id=2)
    assert batch["prompt_ids"].tolist() == [[4, 20], [2, 7]]
    assert batch["prompt_mask"].tolist() == [[1, 1], [0, 1]]
    assert batch["completion_ids"][1].tolist() == [9, 2, 2, 2, 2, 2, 2, 2]
    assert batch["completion_mask"][1].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]  # EOS may be the padding
    assert batch["tool_mask"][1].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    assert batch["turn_ids"][1].tolist() == [0, 0, -1, -1, -1, -1, -1, -1]
    assert batch["sampling_per_token_logps"][1].tolist() == [-1.0, -2.0, 0, 0, 0, 0, 0, 0]
    assert torch.isnan(batch["sampling_per_token_logps"][0]).tolist() == [False, False, True] + [False] * 5


def test_rollout_has_the_keys_of_trl_and_one_entry_for_each_episode():
    rollout = to_rollout([SEARCH, Episode([7], [Turn([9, 2])])])
    assert all(len(values) == 2 for values in rollout.values())
    assert {"prompt_ids", "completion_ids", "logprobs", "env_mask"} <= set(rollout)
    assert rollout["turn_rewards"] == [[{"process": 1.0, "format": None}, {}, {}], [{}]]
    assert rollout["num_turns"] == [3, 1]
    assert str(rollout["logprobs"][1]) == "[nan, nan]"
    assert to_rollout([Episode([7], [Turn([9, 2])])])["logprobs"] is None


def test_episode_that_no_limit_cut_off_is_closed_by_an_unsampled_eos():
    some = [
        Episode([1], [Turn([5], log_probs=[-0.5])]),
        Episode([1], [Turn([5, 2])]),
        Episode([1], [Turn([5])], stop_reason="tokens"),
        Episode([1], [], stop_reason="error"),
    ]
    rollout = to_rollout(some, eos_token_id=2)
    assert rollout["completion_ids"] == [[5, 2], [5, 2], [5], [2]]
    assert rollout["env_mask"] == [[1, 0], [1, 1], [1], [0]]
    assert rollout["turn_ids"] == [[0, -1], [0, 0], [0], [-1]]
    assert rollout["logprobs"][0] == [-0.5, 0.0]
    assert some[0].completion_ids == [5]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ([0, 1, 1, 0, 1, 0], [-1, 0, 0, -1, 1, -1]),
        ([1, 0, 1, 1, 1, 1], [0, -1, 1, 1, 1, 1]),
        ([0, 0, 0], [-1, -1, -1]),
        ([], []),
    ],
)
def test_runs_of_a_mask_are_turns(mask, expected):
    from acpo_trl.turns import turn_ids_of

    assert turn_ids_of(torch.tensor([mask], dtype=torch.bool)).tolist() == [expected]


def test_each_token_gets_the_value_of_its_turn_and_others_exactly_zero():
    from acpo_trl.turns import spread_turns

    turn_ids = torch.tensor([[0, 0, -1, 1, -1], [-1, 2, -1, -1, -1]])
    values = torch.tensor([[1.5, -2.0, float("nan")], [9.0, 9.0, 0.25]])
    assert spread_turns(values, turn_ids).tolist() == [[1.5, 1.5, 0, -2.0, 0], [0, 0.25, 0, 0, 0]]
    with pytest.raises(ValueError, match="turn_ids reach 2: there are values for 2 turns only"):
        spread_turns(values[:, :2], turn_ids)
    assert spread_turns(torch.zeros(1, 0), torch.tensor([[-1]])).tolist() == [[0.0]]
