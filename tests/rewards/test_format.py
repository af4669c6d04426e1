"""The format reward."""

import pytest

from acpo_trl.rewards import REWARDS


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        (r"So \boxed{7}.", 1.0),
        (r"<think>\boxed{6}</think>\boxed{7}", 1.0),
        (r"opened by the template</think>\boxed{7}", 1.0),
        ("7", 0.0),
        (r"\boxed{}", 0.0),
        (r"\boxed{7", 0.0),
        (r"\boxed{6} or \boxed{7}", 0.0),
        (r"<think>a</think><think>b</think>\boxed{7}", 0.0),
        (r"<think>a</think></think>\boxed{7}", 0.0),
        (r"<think>\boxed{7}", 0.0),
    ],
)
def test_format_is_one_filled_box_behind_at_most_one_closed_thinking_block(text, reward):
    assert REWARDS["format"]([text]) == [reward]
    assert REWARDS["format"]([[{"role": "assistant", "content": text}]]) == [reward]
