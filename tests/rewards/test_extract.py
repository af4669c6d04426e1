"""Which part of a completion is the answer."""

import time

import pytest

from acpo_trl.rewards.extract import final_answer, gold_answer, last_assistant_text


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("plain", "plain"),
        ([{"role": "assistant", "content": "one"}], "one"),
        ([{"content": "no role"}], "no role"),
        # The last assistant message, not the first: TRL's accuracy_reward reads completion[0].
        ([{"role": "assistant", "content": "first"}, {"role": "assistant", "content": "last"}], "last"),
        ([{"role": "assistant", "content": "call"}, {"role": "tool", "content": r"\boxed{5}"}], "call"),
        ([{"role": "assistant", "tool_calls": []}, {"role": "tool", "content": "5"}], ""),
        ([{"role": "assistant", "content": None}], ""),
        ([{"role": "assistant", "content": [{"type": "image"}, {"type": "text", "text": "part"}]}], "part"),
        ([{"role": "user", "content": "question"}], ""),
        ([], ""),
    ],
)
def test_last_assistant_message_is_read(completion, text):
    assert last_assistant_text(completion) == text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{7}", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed {7}", "7"),
        (r"\boxed{1} and \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1\}}", r"\{1\}"),
        (r"\boxed{\boxed{7}}", "{7}"),
        (r"\boxed{x = \boxed{7}}", "x = {7}"),
        (r"\boxed{7}\boxed{", "7"),
        (r"\boxed{\frac{1}{2}", ""),
        (r"\boxed{7} then \boxed{}", ""),
        (r"\boxed{ }", ""),
        ("7", ""),
        ("<think>\\boxed{6}</think>\\boxed{7}", "7"),
        ("<think>\\boxed{7}</think>", ""),
        ("<think>\\boxed{7}", ""),
        ("<think>a</think>\\boxed{7}<think>", ""),
        ("<think>a</think>b</think>\\boxed{7}", "7"),
        ("opened by the template</think>\\boxed{7}", "7"),
        ("<Thinking>\\boxed{6}</Thinking>\\boxed{7}", "7"),
    ],
)
def test_last_box_behind_the_thinking_is_the_answer(text, answer):
    assert final_answer(text, require_box=True, require_thinking=False) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The difference is 4.\n\n**Answer:** 4.", "4."),
        ("Answer: $13$", "$13$"),
        ("So the answer is 42. I am sure.", "42"),
        ("**Final Answer**\n\n\\[ 9 \\]\n\nDone.", "9"),
        ("He has 9 * 2 = 18.\n#### 18", "18"),
        ("She has 13.\nA: 13", "13"),
        ("<answer>7</answer>", "7</answer>"),
        ("Answer: 6\nWait.\nAnswer: 7", "7"),
        ("Answer: 6, so \\boxed{7}", "7"),
        ("There were 42 apples, then some were eaten.", ""),
        ("I know the answer. 42", ""),
    ],
)
def test_message_without_box_may_announce_its_answer(text, answer):
    assert final_answer(text, require_box=False, require_thinking=False) == answer


def test_announcement_does_not_count_where_a_box_is_required():
    assert final_answer("Answer: 4", require_box=True, require_thinking=False) == ""


def test_message_without_closing_tag_has_no_answer_where_thinking_is_required():
    assert final_answer(r"\boxed{7}", require_box=False, require_thinking=True) == ""
    assert final_answer(r"</think>\boxed{7}", require_box=False, require_thinking=True) == "7"


@pytest.mark.parametrize(
    ("cell", "answer"),
    [
        ("7", "7"),
        (7, "7"),
        (0.5, "0.5"),
        (None, ""),
        (" ", ""),
        (r"so $x=8$ and the sum is $\boxed{2}$.", "2"),
        ("16 - 3 - 4 = 9\n9 * 2 = 18\n#### 18", "18"),
    ],
)
def test_gold_is_the_box_or_the_last_marker_or_everything(cell, answer):
    assert gold_answer(cell) == answer


@pytest.mark.parametrize(
    "text",
    ["\n" * 300_000, "so " * 100_000, r"\boxed{" * 50_000, "<think>" * 50_000, "answer " * 50_000, "{" * 300_000],
    ids=lambda text: text[:8],
)
def test_long_text_takes_linear_time(text):
    start = time.monotonic()
    final_answer(text, require_box=False, require_thinking=False)
    assert time.monotonic() - start < 2
