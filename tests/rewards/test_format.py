"""The format rewards."""

import gzip
import json
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acpo_trl.rewards import REWARDS, ThinkAnswerReward, tool_format
from acpo_trl.rewards.declare import KINDS, declaration_of
from acpo_trl.rewards.format import tool_call_attempts, tool_calls_parse

SHARED = Path(os.environ.get("ACPO_TRL_SHARED", Path(__file__).parents[3] / "shared"))

GOOD = '<tool_call>\n{"name": "search", "arguments": {"query": "Paris"}}\n</tool_call>'
PARSED = {"type": "function", "function": {"name": "search", "arguments": {"query": "Paris"}}}


def said(text, **fields):
    return {"role": "assistant", "content": text, **fields}


def reason_of(reward, completion):
    logged = {}
    reward([completion], log_extra=logged.__setitem__)
    [(column, [reason])] = logged.items()
    assert column.endswith("_reason")
    return reason


@pytest.mark.parametrize(
    ("text", "reward", "reason"),
    [
        (r"So \boxed{7}.", 1.0, "well formed"),
        (r"<think>\boxed{6}</think>\boxed{7}", 1.0, "well formed"),
        (r"opened by the template</think>\boxed{7}", 1.0, "well formed"),
        ("7", 0.0, "no box"),
        (r"\boxed{\text{yes}}", 1.0, "well formed"),
        (r"\boxed{\emptyset}", 1.0, "well formed"),
        (r"\boxed{\{\}}", 1.0, "well formed"),
        (r"\boxed{\pi}", 1.0, "well formed"),
        (r"\boxed{}", 0.0, "empty box"),
        (r"\boxed{{}}", 0.0, "empty box"),
        (r"\boxed{\boxed{}}", 0.0, "empty box"),
        (r"\boxed{\quad}", 0.0, "empty box"),
        (r"\boxed{\,\ ~\;}", 0.0, "empty box"),
        (r"\boxed{\hspace{1cm}}", 0.0, "empty box"),
        (r"\boxed{\text{}}", 0.0, "empty box"),
        (r"\boxed{\mathrm{\textbf{ }}}", 0.0, "empty box"),
        (r"\boxed{$$}", 0.0, "empty box"),
        ("\\boxed{\u200b}", 0.0, "empty box"),
        (r"\boxed{7", 0.0, "no box"),
        (r"\boxed{6} or \boxed{7}", 0.0, "2 boxes"),
        (r"<think>a</think><think>b</think>\boxed{7}", 0.0, "several thinking blocks"),
        (r"<think>a</think></think>\boxed{7}", 0.0, "several thinking blocks"),
        (r"<think>\boxed{7}", 0.0, "unclosed thinking"),
    ],
)
def test_format_is_one_filled_box_behind_at_most_one_closed_thinking_block(text, reward, reason):
    assert REWARDS["format"]([text]) == [reward]
    assert REWARDS["format"]([[{"role": "assistant", "content": text}]]) == [reward]
    assert reason_of(REWARDS["format"], text) == reason


@pytest.mark.parametrize(
    ("text", "reward", "reason"),
    [
        ("<think>a</think><answer>4</answer>", 1.0, "well formed"),
        ("\n<think>\na\nb\n</think>\n\n<answer>\n4\n</answer>\n", 1.0, "well formed"),
        ("<answer>4</answer>", 0.0, "no <think>"),
        ("<think>a</think>4", 0.0, "no <answer>"),
        ("<think>a<answer>4</answer>", 0.0, "no </think>"),
        ("<think>a</think><answer>4", 0.0, "no </answer>"),
        ("<think>a</think><answer>4</answer><answer>5</answer>", 0.0, "2 <answer>"),
        ("<think>a</think><think>b</think><answer>4</answer>", 0.0, "2 <think>"),
        ("<think>a</think>So <answer>4</answer>", 0.0, "text outside the blocks"),
        ("<think>a</think><answer>4</answer>.", 0.0, "text outside the blocks"),
        ("Well, <think>a</think><answer>4</answer>", 0.0, "text outside the blocks"),
        ("<answer>4</answer><think>a</think>", 0.0, "text outside the blocks"),
        ("<think>a<answer>4</answer></think>", 0.0, "text outside the blocks"),
        ("<think> </think><answer>4</answer>", 0.0, "empty <think>"),
        ("<think>a</think><answer>\n</answer>", 0.0, "empty <answer>"),
        ("<think>\u200b\u2060\ufeff</think><answer>4</answer>", 0.0, "empty <think>"),
        ("<think>a</think><answer>\u200b \u00ad\u3164</answer>", 0.0, "empty <answer>"),
        ("<THINK>a</THINK><ANSWER>4</ANSWER>", 0.0, "no <think>"),
        ("", 0.0, "no <think>"),
    ],
)
def test_think_answer_is_two_filled_blocks_and_nothing_else(text, reward, reason):
    assert ThinkAnswerReward()([text, [said(text)]]) == [reward, reward]
    assert reason_of(ThinkAnswerReward(), text) == reason


def test_think_answer_expects_no_opening_tag_where_the_prompt_has_it():
    reward = ThinkAnswerReward(prompt_opens_thinking=True)
    assert reward(["a</think><answer>4</answer>", "<think>a</think><answer>4</answer>", "<answer>4</answer>"]) == [
        1,
        0,
        0,
    ]


@pytest.mark.parametrize("prompt_opens_thinking", [False, True])
def test_think_answer_counts_thinking_that_was_parsed_out_of_the_message(prompt_opens_thinking):
    reward = ThinkAnswerReward(prompt_opens_thinking=prompt_opens_thinking)
    parsed = [said("<answer>4</answer>", reasoning_content="a")], [said("<answer>4</answer>", thinking="a")]
    cut_off = [said("", reasoning_content="a <answer>4</answer>")]
    assert reward([*parsed, cut_off]) == [1.0, 1.0, 0.0]


def test_think_answer_reads_the_last_assistant_message():
    good, bad = said("<think>a</think><answer>4</answer>"), said("4")
    assert ThinkAnswerReward()([[bad, good, {"role": "tool", "content": "x"}], [good, bad], []]) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "options", [{}, {"prompt_opens_thinking": True}, {"thinking_tag": "plan", "answer_tag": "do-it"}]
)
def test_think_answer_gives_its_own_gold_text_full_score(options):
    reward = ThinkAnswerReward(**options)
    assert reward([reward.gold({})]) == [1.0]
    assert pickle.loads(pickle.dumps(reward))([reward.gold({})]) == [1.0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"thinking_tag": 1}, TypeError, "thinking_tag 1: is a int"),
        ({"answer_tag": "<answer>"}, ValueError, "write it without angle brackets"),
        ({"answer_tag": "think"}, ValueError, "is thinking_tag too"),
    ],
)
def test_think_answer_refuses_tags_it_could_not_find(options, error, message):
    with pytest.raises(error, match=message):
        ThinkAnswerReward(**options)


@pytest.mark.parametrize(
    ("text", "attempts"),
    [
        ("Paris", []),
        ("", []),
        (GOOD, [True]),
        (f"I search twice. {GOOD}{GOOD}", [True, True]),
        (GOOD + '<tool_call>{"name": "search"', [True, False]),
        ('<tool_call>{"name": "search", "arguments": {}}', [False]),
        (f"<tool_call>{GOOD}", [False, True]),
        ('{"name": "search", "arguments": {}}</tool_call>', [False]),
        ('<tool_call>{"name": "search", "arguments": {}}</tool_call>', [True]),
        ('<tool_call>{"name": "search"}</tool_call>', [False]),
        ('<tool_call>{"arguments": {}}</tool_call>', [False]),
        ('<tool_call>{"name": "", "arguments": {}}</tool_call>', [False]),
        ('<tool_call>{"name": 1, "arguments": {}}</tool_call>', [False]),
        ('<tool_call>{"name": "search", "arguments": []}</tool_call>', [False]),
        ("<tool_call>[]</tool_call>", [False]),
        ("<tool_call>Michael C. Hall 2009 film</tool_call>", [False]),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", [False]),
        (f"<think>maybe {GOOD}</think>Paris", []),
        (f"<think>maybe {GOOD}", []),
        (f"<think>a</think>{GOOD}", [True]),
    ],
)
def test_a_call_in_the_text_parses_if_its_block_is_closed_and_holds_a_name_and_arguments(text, attempts):
    assert tool_call_attempts(said(text)) == attempts
    assert tool_call_attempts(said([{"type": "text", "text": text}])) == attempts


@pytest.mark.parametrize(
    ("arguments", "parses"),
    [({}, True), ('{"a": 1}', True), ("{", False), ("[]", False), ("3", False), (None, False), ([], False)],
)
def test_a_parsed_call_needs_a_json_object_of_arguments(arguments, parses):
    call = {"type": "function", "function": {"name": "search", "arguments": arguments}}
    assert tool_calls_parse(said(None, tool_calls=[call])) is parses
    assert tool_calls_parse(said("", tool_calls=[PARSED, call])) is parses


def test_a_turn_is_unscored_without_calls_and_wrong_with_one_bad_call():
    assert tool_calls_parse(said("Paris")) is None
    assert tool_calls_parse(said("Paris", tool_calls=[])) is None
    assert tool_calls_parse(said("<tool_call>oops</tool_call>", tool_calls=[PARSED])) is False
    assert tool_calls_parse(said("", tool_calls=[{"type": "custom", "name": "search"}])) is False


def test_tool_format_is_the_share_of_calling_turns_whose_calls_all_parse():
    result = {"role": "tool", "content": "<tool_call>not the model's</tool_call>"}
    mixed = [said("", tool_calls=[PARSED]), result, said(f"<tool_call>{{</tool_call>{GOOD}"), said("Paris")]
    assert tool_format([mixed, [said(GOOD), result, said("Paris")], [said("Paris"), result], "Paris", GOOD]) == [
        0.5,
        1.0,
        None,
        None,
        1.0,
    ]
    assert reason_of(tool_format, mixed) == "1 of 2 turns parse"
    assert reason_of(tool_format, "Paris") == "no tool call"


@pytest.mark.slow
@given(st.lists(st.sampled_from([GOOD, "<tool_call>{", "Paris", "<think>a</think>" + GOOD]), max_size=6), st.randoms())
def test_tool_format_does_not_depend_on_the_order_of_turns_or_of_completions(texts, random):
    shuffled = random.sample(texts, len(texts))
    turns, others = [said(text) for text in texts], [said(text) for text in shuffled]
    assert tool_format([turns, others, "Paris"]) == tool_format([others, turns, "Paris"])
    assert tool_format([turns]) == tool_format([others])


def test_tool_format_finds_the_broken_calls_of_recorded_trajectories():
    path = SHARED / "data/trajectories/agentprocessbench_hotpotqa.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with gzip.open(path, "rt") as lines:
        trajectories = [json.loads(line)["messages"] for line in lines]
    turns = [message for messages in trajectories for message in messages if message["role"] == "assistant"]
    broken = [turn for turn in turns if tool_calls_parse(turn) is False]
    # 16 turns wrote prose between the tags, one has arguments whose braces do not close.
    assert len(broken) == 17
    assert sum("<tool_call>" in turn["content"] for turn in broken) == 16


def test_no_reward_is_called_like_a_kind():
    assert not {getattr(reward, "__name__", name) for name, reward in REWARDS.items()} & set(KINDS)
    assert not (REWARDS.keys() - {"format"}) & set(KINDS)


def test_every_reward_declares_its_kind():
    outcomes, formats = {"math", "code", "exact_match", "f1"}, {"format", "think_answer", "tool_format"}
    kinds = {name: declaration_of(reward).kind for name, reward in REWARDS.items()}
    assert {name for name, kind in kinds.items() if kind == "outcome"} == outcomes
    assert {name for name, kind in kinds.items() if kind == "format"} == formats
    assert {name for name, kind in kinds.items() if kind == "cost"} == REWARDS.keys() - outcomes - formats
