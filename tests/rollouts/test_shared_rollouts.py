"""The shared rollout cases: every mask, turn id, truncation, refusal and group statistic."""

import json
import math

import pytest
import torch
from shared import SHARED, shared_file
from transformers import AutoTokenizer

from acpo_trl.advantages import TurnRewards, outcome
from acpo_trl.advantages.process import rewards_to_go
from acpo_trl.rollouts import Episode, Segment, Turn, TurnView, check_template, split, to_rollout, to_tensors
from acpo_trl.rollouts.check import RolloutRow, check_form
from acpo_trl.trainer.environment import judge_turns
from acpo_trl.trainer.recording import RecordedRollout
from acpo_trl.turns import spread_turns

FILE = SHARED / "cases" / "rollout.jsonl"
CASES = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
GROUPS = [case for case in CASES if isinstance(case.get("rows"), list)]
TEMPLATES = [case for case in CASES if "template" in case]
# An option that acpo_trl does not have: to take a row out because all its calls failed.
NOT_OFFERED = "mask_rows_with_only_failed_calls"
ROWS = [case for case in CASES if case not in GROUPS + TEMPLATES and NOT_OFFERED not in case.get("options", {})]


def of(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["id"])


def episode_of(case, row):
    """The episode as a rollout would build it; what was sampled behind an end is not in the segments."""
    prompt, *rest = row["segments"]
    finish = list(case.get("finish_reasons", []))
    num_turns = sum(bool(segment.get("sampled")) for segment in rest)
    if case.get("truncated") and not finish and "limits" not in case and "n_turns" not in case:
        finish = ["stop"] * (num_turns - 1) + ["length"]
    segments, at = [], 0
    for segment in (segment for segment in rest if segment["role"] != "pad"):
        ids = segment["token_ids"]
        if segment.get("sampled"):
            log_probs = case.get("logprobs")
            last = sum(bool(isinstance(s, Turn)) for s in segments) == num_turns - 1
            given = log_probs and log_probs[at : None if "expected_error" in case and last else at + len(ids)]
            segments.append(Turn(ids, given, finish.pop(0) if finish else "stop"))
        else:
            segments.append(Segment(segment["role"], ids))
        at += len(ids)
    limited = case.get("truncated") and not any(isinstance(s, Turn) and s.finish_reason == "length" for s in segments)
    return Episode(prompt["token_ids"], segments, stop_reason="tokens" if limited else "done")


@pytest.mark.skipif(not CASES, reason="the shared cases are not there")
def test_every_case_is_used():
    assert len(ROWS) + len(GROUPS) + len(TEMPLATES) == len(CASES) - 1 >= 48


@of([case for case in ROWS if "expected_error" not in case])
def test_mask_turn_ids_and_truncation_are_right(case):
    episode = episode_of(case, case)
    (row,) = split(to_tensors([episode], pad_token_id=case.get("options", {}).get("pad_token_id", 0)))
    length = len(row.completion_ids)
    earlier = case["expected_turn_ids"][0] if case["tag"] == "qwen3_think" and case["expected_turn_ids"][0] > 0 else 0
    masked_out = case.get("options", {}).get("mask_truncated_completions") and episode.is_truncated
    assert row.completion_ids == case["completion_ids"][:length]
    assert [0 if masked_out else action for action in row.action_mask] == case["expected_mask"][:length]
    assert [turn + earlier if turn >= 0 else turn for turn in row.turn_ids] == case["expected_turn_ids"][:length]
    assert set(case["expected_mask"][length:]) <= {0}  # padding
    assert set(case["expected_turn_ids"][length:]) <= {-1}
    assert episode.is_truncated == case.get("truncated", False)
    check_form(RolloutRow(*row, cut_turns=[]), 0, vocab_size=100)
    if "expected_sum_logprob" in case:
        assert sum(row.log_probs) == pytest.approx(case["expected_sum_logprob"])
    if case.get("logprobs") and None in case["logprobs"]:
        assert [math.isnan(value) for value in row.log_probs] == [value is None for value in case["logprobs"]]


@of([case for case in ROWS if "expected_error" in case])
def test_rollout_that_does_not_fit_is_refused(case):
    with pytest.raises(ValueError, match=case["expected_error"]):
        episode = episode_of(case, case)
        ids, mask = episode.completion_ids, episode.action_mask
        check_form(RolloutRow(episode.prompt_ids, ids, mask, case["given_turn_ids"], None, []), 0, vocab_size=100)


@of(GROUPS)
def test_groups_and_turn_returns_are_right(case):
    episodes = [episode_of(case, row) for row in case["rows"]]
    for episode, row in zip(episodes, case["rows"], strict=True):
        assert (episode.action_mask, episode.turn_ids) == (row["expected_mask"], row["expected_turn_ids"])
    num_turns = [len(episode.turns) for episode in episodes]
    if "expected_error" in case:
        views = [[TurnView("", [], [], (0, 0))] * count for count in num_turns]
        recorded = RecordedRollout([], num_turns, views, [False], [None], {"turn_rewards": case["turn_rewards"]})
        with pytest.raises(ValueError, match="turn_rewards of completion 0 has 1 entries, but it has 2 turns"):
            judge_turns(recorded, None, ["process"])
        return
    values = torch.full((len(episodes), max(num_turns)), torch.nan)
    for i, count in enumerate(num_turns):
        given = case["turn_rewards"][i] if "turn_rewards" in case else [torch.nan] * (count - 1) + [case["rewards"][i]]
        values[i, :count] = torch.tensor(given)
    turns = TurnRewards(values, torch.tensor(num_turns), len(episodes))  # rows of one prompt are one group
    advantages = outcome(turns)
    assert advantages.isfinite().all()
    if "expected_turn_returns" in case:
        assert rewards_to_go(turns, case["gamma"])[0].tolist() == pytest.approx(case["expected_turn_returns"])
    if "expected_advantage_signs" in case:
        assert turns.totals.mean() == case["expected_group_mean"]
        assert advantages[:, 0].sign().tolist() == case["expected_advantage_signs"]
    if case["tag"] == "broadcast":
        batch = to_tensors(episodes, pad_token_id=0)
        tokens = spread_turns(advantages, batch["turn_ids"])
        assert (tokens[batch["turn_ids"] < 0] == 0).all()
        assert (tokens[0][batch["turn_ids"][0] >= 0] > 0).all()
        assert (tokens[1][batch["turn_ids"][1] >= 0] < 0).all()


@of(TEMPLATES)
def test_template_that_drops_thinking_is_noticed(case, tmp_path):
    import scripted

    tokenizer = AutoTokenizer.from_pretrained(shared_file("data/tokenizers/qwen3_mini"))
    tokenizer.chat_template = scripted.TEMPLATE
    rendered = tokenizer.apply_chat_template(case["messages"], tokenize=False)
    assert ("T0" in rendered) == case["expected"]["contains_T0"]
    if not case["expected"]["contains_T0"]:
        check = check_template(tokenizer)
        assert (check.keeps_turns, check.drops_thinking) == (False, True)


def test_rollout_dictionary_keeps_unsampled_end_out_of_the_mask():
    rollout = to_rollout([Episode([4], [Turn([21, 22])])], eos_token_id=2)
    assert (rollout["completion_ids"], rollout["env_mask"]) == ([[21, 22, 2]], [[1, 1, 0]])
