"""A completion is cut into turns with their text, calls, results and token span."""

import pytest

from acpo_trl.rollouts.view import TurnView, view_turns

CALL = {"type": "function", "function": {"name": "search", "arguments": {"query": "x"}}}
MESSAGES = [
    {"role": "assistant", "content": "let me look", "tool_calls": [CALL, CALL]},
    {"role": "tool", "name": "search", "content": "a"},
    {"role": "tool", "name": "search", "content": [{"type": "text", "text": "b"}]},
    {"role": "assistant", "content": "it is b"},
]


def test_turns_carry_text_calls_results_and_span():
    assert view_turns(MESSAGES, [0, 0, 0, -1, -1, 1, 1], 2) == [
        TurnView("let me look", [CALL["function"]] * 2, ["a", "b"], (0, 3)),
        TurnView("it is b", [], [], (5, 7)),
    ]


def test_last_turn_without_token_needs_no_message():
    assert view_turns(MESSAGES[:3], [0, 0, -1], 2)[1] == TurnView("", [], [], (2, 2))


def test_turn_without_token_in_the_middle_keeps_its_message():
    messages = [*MESSAGES[:3], {"role": "assistant", "content": ""}, MESSAGES[3]]
    views = view_turns(messages, [0, 0, -1, 2], 3)
    assert [view.span for view in views] == [(0, 2), (2, 2), (3, 4)]
    assert views[2].text == "it is b"


@pytest.mark.parametrize(("turn_ids", "num_turns"), [([0, 0], 1), ([0, -1, 1, -1, 2], 3)])
def test_messages_that_do_not_fit_the_turns_are_refused(turn_ids, num_turns):
    with pytest.raises(ValueError, match=f"{num_turns} turns by its tokens, but 2 assistant messages"):
        view_turns(MESSAGES, turn_ids, num_turns)


def test_text_of_a_tool_in_front_of_the_first_turn_belongs_to_no_turn():
    assert view_turns([{"role": "user", "content": "hint"}, *MESSAGES], [-1, 0, -1, 1], 2)[0].results == ["a", "b"]
