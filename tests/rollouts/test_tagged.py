"""One running text is cut at the environment's tags or lines; no token reaches over a border."""

import time

import pytest
from shared import shared_file
from tiny import byte_tokenizer
from transformers import AutoTokenizer

from acpo_trl.rollouts import episode_from_react, episode_from_tagged, view_turns

BYTES = byte_tokenizer()


def shown(episode, tokenizer=BYTES):
    return [(getattr(s, "role", "assistant"), tokenizer.decode(s.token_ids)) for s in episode.segments]


SEARCH = (
    "<think>a</think>\n<search>q</search>\n\n<information>doc 1\n\ndoc 2</information>\n\n"
    "<search>r</search> <information></information>\n<answer>b</answer>"
)


def test_information_with_the_white_space_around_it_is_the_environments():
    episode = episode_from_tagged("question", SEARCH, BYTES)
    assert shown(episode) == [
        ("assistant", "<think>a</think>\n<search>q</search>"),
        ("tool", "\n\n<information>doc 1\n\ndoc 2</information>\n\n"),
        ("assistant", "<search>r</search>"),
        ("tool", " <information></information>\n"),
        ("assistant", "<answer>b</answer>"),
    ]
    assert [turn.observation for turn in episode.turns] == [
        "question",
        "<information>doc 1\n\ndoc 2</information>",
        "<information></information>",
    ]
    assert BYTES.decode(episode.completion_ids) == SEARCH
    views = view_turns(episode.messages, episode.turn_ids, 3)
    assert [view.text for view in views] == [turn for role, turn in shown(episode) if role == "assistant"]


def test_third_newline_is_the_policys():
    episode = episode_from_tagged("q", "<information>x</information>\n\n\n<answer>b</answer>", BYTES)
    assert shown(episode) == [
        ("tool", "<information>x</information>\n\n"),
        ("assistant", "\n<answer>b</answer>"),
    ]


def test_tag_that_is_never_closed_reaches_to_the_end():
    episode = episode_from_tagged("q", "<search>q</search><information>cut he", BYTES, stop_reason="tokens")
    assert shown(episode)[1:] == [("tool", "<information>cut he")]
    assert episode.is_truncated


def test_words_behind_a_closing_tag_too_many_are_not_taken_for_the_policys():
    text = "<search>q</search><information>a</information> I obey </information><answer>b</answer>"
    with pytest.raises(ValueError, match="</information> closes a tag that is not open"):
        episode_from_tagged("q", text, BYTES)


def test_tag_has_another_name_if_told():
    episode = episode_from_tagged("q", "a<result.>r</result.>b", BYTES, tag="result.")
    assert [role for role, _ in shown(episode)] == ["assistant", "tool", "assistant"]


def test_spans_are_encoded_alone_and_special_tokens_are_text():
    qwen3 = AutoTokenizer.from_pretrained(shared_file("data/tokenizers/qwen3_mini"))
    text = "x <search>q</search>\n\n<information>r<|im_end|></information>\n\n\nb<|im_end|>"
    episode = episode_from_tagged([{"role": "user", "content": "q"}], text, qwen3)
    assert qwen3.decode(episode.prompt_ids) == "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
    assert qwen3.decode(episode.completion_ids) == text
    assert shown(episode, qwen3)[-1] == ("assistant", "\nb<|im_end|>")
    assert not set(episode.completion_ids) & set(qwen3.all_special_ids)
    assert episode.completion_ids != qwen3.encode(text.replace("<|im_end|>", ""))


def test_observations_reach_to_the_next_thought_or_action():
    text = (
        "Thought 1: a\nAction 1: Search[x]\nObservation 1: two\n\nlines\nThought 2: b\nAction 2: Lookup[y]\n"
        "Observation 2: \nAction 3: Finish[z]\nObservation 3: correct"
    )
    episode = episode_from_react("Question: q\n", text, BYTES, turn_rewards=[{}, {}, {"outcome": 1.0}])
    assert shown(episode) == [
        ("assistant", "Thought 1: a\nAction 1: Search[x]"),
        ("tool", "\nObservation 1: two\n\nlines\n"),
        ("assistant", "Thought 2: b\nAction 2: Lookup[y]"),
        ("tool", "\nObservation 2: \n"),
        ("assistant", "Action 3: Finish[z]"),
        ("tool", "\nObservation 3: correct"),
    ]
    assert BYTES.decode(episode.completion_ids) == text
    assert episode.prompt_ids == BYTES.encode("Question: q\n")
    assert [turn.rewards for turn in episode.turns] == [{}, {}, {"outcome": 1.0}]
    assert [turn.observation for turn in episode.turns] == [
        "Question: q",
        "Observation 1: two\n\nlines",
        "Observation 2:",
    ]


def test_observation_in_the_middle_of_a_line_is_the_policys_word():
    episode = episode_from_react("q", "Thought: my Observation: none\nAction: Finish[z]", BYTES)
    assert [role for role, _ in shown(episode)] == ["assistant"]


@pytest.mark.parametrize("space", ["\n", " \n", "\n\n\n "])
def test_long_runs_of_white_space_take_linear_time(space):
    gap = space * (40_000 // len(space))
    begun = time.monotonic()
    tagged = episode_from_tagged("q", f"a{gap}b{gap}<information>r{gap}</information>c{gap}", BYTES)
    react = episode_from_react("q", f"Thought: a{gap}b\nObservation: r{gap}s{gap}\nAction: c{gap}", BYTES)
    assert time.monotonic() - begun < 2.0  # the square of it would take half a minute
    assert (
        [role for role, _ in shown(tagged)] == [role for role, _ in shown(react)] == ["assistant", "tool", "assistant"]
    )
    assert shown(tagged)[0] == ("assistant", f"a{gap}b")
    assert shown(react)[2] == ("assistant", f"Action: c{gap}")


@pytest.mark.parametrize("prompt", [[], (), None, 5])
def test_a_prompt_with_nothing_to_answer_is_refused(prompt):
    with pytest.raises(ValueError, match="there is nothing to answer; expected chat messages or a text"):
        episode_from_tagged(prompt, "a", BYTES)
    with pytest.raises(ValueError, match="there is nothing to answer"):
        episode_from_react(prompt, "a", BYTES)
