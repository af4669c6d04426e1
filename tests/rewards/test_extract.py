"""Which part of a completion is the answer."""

import time

import pytest

from acpo_trl.rewards import REWARDS, MathReward
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


REPEATED = (
    *("> ", ". ", "* ", "# ", " ", "\n", "> . * # \n", ">", "so ", "the ", "answer ", "A: ", "####", "{", "}", "\\"),
    *("<answer>", "</answer>", "<tool_call>", "</tool_call>", "<think>", "</think>", r"\boxed{", r"\boxed ", r"\["),
)


@pytest.mark.parametrize("length", [10**5, pytest.param(10**6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["math", "exact_match", "f1", "format", "think_answer", "tool_format"])
def test_time_grows_with_the_length_of_a_completion_and_not_with_its_square(name, length):
    """A million characters take about a second at most; a square would take minutes, which is what the limits tell."""
    function = REWARDS[name]() if isinstance(REWARDS[name], type) else REWARDS[name]
    texts = [text * (length // len(text)) for text in REPEATED]
    texts.append(r"\boxed{" * (length // 10) + "}" * (length // 10))
    texts.append("<answer>" + " x" * (length // 2) + "</answer>")
    texts.append("<think>" + " " * (length // 2) + "</think>" + "\n" * (length // 2) + "<answer> </answer>")
    slow = {}
    for text in texts:
        start = time.process_time()
        function([text], solution=["4"])
        if (seconds := time.process_time() - start) > 5:
            slow[text[:16]] = seconds
    assert not slow


def test_a_quoted_announcement_counts():
    assert final_answer("He said: > > **The answer is 4", require_box=False, require_thinking=False) == "4"
    assert final_answer(">> * Answer: 4", require_box=False, require_thinking=False) == "4"


@pytest.mark.parametrize("cell", [{"text": "4"}, ["4"], [], {}, b"4", object()])
def test_a_gold_cell_that_is_neither_text_nor_number_holds_no_answer(cell):
    assert gold_answer(cell) == ""
    assert MathReward().gold({"solution": cell}) is None
    logged = {}
    assert MathReward()([r"\boxed{4}"] * 2, solution=[cell, "4"], log_extra=logged.__setitem__) == [None, 1.0]
    assert logged["math_reason"] == ["gold is no answer", "identical"]
