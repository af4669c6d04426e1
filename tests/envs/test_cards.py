"""The environment `lookup`, by itself and in TRL's tool loop."""

import pickle
import random
from string import ascii_lowercase

import pytest

from acpo_trl.envs import Lookup, call_message, lookup_tasks, play
from acpo_trl.envs.lookup import expert
from acpo_trl.rollouts import view_turns

NOTES = {"c": "!k =f", "f": "=a !z", "a": "=7 !2", "k": "=z !q"}
ROW = {
    "prompt": [{"role": "user", "content": "Look up card c."}],
    "path": "cfa",
    "cards": [NOTES.get(letter, "=q !k") for letter in ascii_lowercase],
    "solution": "7",
}


def say(text):
    return {"role": "assistant", "content": text}


def look(*keys):
    return say("") | {"tool_calls": [call_message("look", key=key)["tool_calls"][0] for key in keys]}


def judge(*messages, row=ROW):
    environment = Lookup()
    return environment._score(view_turns(play(environment, row, messages), [], len(messages)))


def column(scores, kind):
    return [score.rewards[kind] for score in scores]


def test_the_expert_solves_every_task_in_the_fewest_turns():
    rows = lookup_tasks(300, seed=0)
    for row in rows:
        scores = judge(*expert(row), row=row)
        assert column(scores, "outcome") == [None] * len(row["path"]) + [1.0]
        assert column(scores, "process") == [1.0] * len(row["path"]) + [None]
        assert {*column(scores, "cost"), *column(scores, "format")} == {0.0}
    assert {len(expert(row)) for row in rows} == {2, 3, 4, 5, 6, 7}


def coin_flipper(row, dice):
    """Follows one of the two signs of each card blindly, at most as many cards as the path has."""
    cards, key, messages = dict(zip(ascii_lowercase, row["cards"], strict=True)), row["path"][0], []
    for _ in row["path"]:
        messages.append(look(key))
        key = dice.choice(cards[key].split())[1]
        if key.isdigit():
            break
    return [*messages, say(key)]


@pytest.mark.slow
def test_who_cannot_tell_the_distractor_solves_one_task_in_eight_with_three_cards():
    dice = random.Random(1)
    rows = lookup_tasks(2000, seed=3, min_hops=3, max_hops=3)
    solved = [judge(*coin_flipper(row, dice), row=row)[-1].rewards["outcome"] for row in rows]
    assert 0.10 < sum(solved) / len(solved) < 0.19  # 1/8, and a few lucky digits beside the path


def test_a_guess_is_right_one_time_in_ten():
    solved = [judge(say("4"), row=row)[0].rewards["outcome"] for row in lookup_tasks(2000, seed=5)]
    assert 0.08 < sum(solved) / len(solved) < 0.12


def test_a_task_hides_its_path_and_no_other_card_leads_back_to_it():
    for row in lookup_tasks(200, seed=2):
        cards = dict(zip(ascii_lowercase, row["cards"], strict=True))
        links = {letter: note[note.index("=") + 1] for letter, note in cards.items()}
        decoys = {letter: note[note.index("!") + 1] for letter, note in cards.items()}
        assert "".join(links[letter] for letter in row["path"]) == row["path"][1:] + row["solution"]
        reached = {links[letter] for letter in ascii_lowercase if letter not in row["path"]} | set(decoys.values())
        assert not reached & set(row["path"])
        assert all(links[letter].isdigit() == decoys[letter].isdigit() for letter in ascii_lowercase)
        assert all(links[letter] != decoys[letter] for letter in ascii_lowercase)
        assert f"card {row['path'][0]}." in row["prompt"][0]["content"]


def test_tasks_are_the_same_for_a_seed_and_disjoint_between_seeds():
    assert lookup_tasks(50, seed=1) == lookup_tasks(50, seed=1)
    train, test = ({tuple(row["cards"]) for row in lookup_tasks(1000, seed=seed)} for seed in (1, 2))
    assert len(train) == 1000
    assert not train & test


@pytest.mark.parametrize("hops", [(0, 3), (4, 3), (1, 21)])
def test_impossible_paths_are_refused(hops):
    with pytest.raises(ValueError, match="no such paths; expected 1 <="):
        lookup_tasks(1, 0, *hops)


def test_wrong_repeated_and_needless_looks_are_told_apart():
    scores = judge(look("c"), look("k"), look("c"), look("f"), look("a"), look("a"), say("7"))
    assert column(scores, "process") == [1.0, 0.0, 0.0, 1.0, 1.0, None, None]
    assert column(scores, "cost") == [0.0, -1.0, -1.0, 0.0, 0.0, -1.0, 0.0]
    assert column(scores, "outcome") == [None] * 6 + [1.0]
    assert [score.state_key for score in scores] == ["0", "1", "1", "1", "2", "3", "3"]


def test_looking_at_all_cards_at_once_costs_all_but_those_of_the_path():
    scores = judge(look(*"cfakz"), say("7"))
    assert scores[0].rewards == {"outcome": None, "format": 0.0, "cost": -2.0, "process": 1.0}
    assert scores[1].state_key == "3"


def test_an_answer_before_the_last_card_is_no_progress():
    (score,) = judge(say("7"))
    assert score.rewards == {"outcome": 1.0, "format": 0.0, "cost": 0.0, "process": 0.0}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("7", 1.0), (" 7\n", 1.0), ("<think>\nso\n</think>\n7", 1.0), ("<answer>7</answer>", 1.0)]
    + [(text, 0.0) for text in ("", "2", "7 or 2", "0 1 2 3 4 5 6 7 8 9", "<think>7", "<answer>2</answer> 7")],
)
def test_only_the_digit_itself_is_right(text, outcome):
    assert judge(look("c"), say(text))[-1].rewards["outcome"] == outcome


def test_the_solution_may_be_a_number():
    row = ROW | {"solution": 7}
    assert judge(*expert(row), row=row)[-1].rewards["outcome"] == 1.0
    assert judge(say("2"), row=row)[-1].rewards["outcome"] == 0.0


def test_a_dataset_without_the_columns_is_refused():
    Lookup()._check_columns(list(ROW))
    with pytest.raises(ValueError, match=r"environment 'lookup': the columns \['path', 'prompt'\] lack"):
        Lookup()._check_columns(["prompt", "path"])


def call(name, **arguments):
    return say("") | {"tool_calls": call_message(name, **arguments)["tool_calls"]}


@pytest.mark.parametrize(
    "message",
    [
        call("look"),
        call("look", key=3),
        call("look", key="c", other="f"),
        call("open", key="c"),
        say('<tool_call>\n{"name": "look", "arguments": {"key": "c"\n</tool_call>'),
        say('<tool_call>{"name": "look"'),
    ],
    ids=["no argument", "wrong type", "argument too many", "wrong name", "broken JSON", "cut off"],
)
def test_a_call_that_cannot_be_carried_out_breaks_the_format_and_does_nothing(message):
    scores = judge(message, look("c"), say("7"))
    assert scores[0].rewards == {"outcome": None, "format": -1.0, "cost": 0.0, "process": 0.0}
    assert column(scores, "format")[1:] == [0.0, 0.0]
    assert scores[1].rewards["process"] == 1.0


def test_no_turn_has_no_score():
    assert judge() == []


def test_reset_leaves_nothing_of_the_episode_before():
    used, fresh = Lookup(), Lookup()
    play(used, lookup_tasks(1, seed=8)[0], [look("a"), look("b"), say("1")])
    messages = [look("c"), look("f"), look("a"), say("7")]
    views = [view_turns(play(environment, ROW, messages), [], 4) for environment in (used, fresh)]
    assert views[0] == views[1]
    assert used._score(views[0]) == fresh._score(views[1])
    assert vars(used) == vars(fresh)


def test_the_class_can_be_pickled():
    assert pickle.loads(pickle.dumps(Lookup)) is Lookup


def text_of(*keys):
    return "\n".join(f'<tool_call>\n{{"name": "look", "arguments": {{"key": "{key}"}}}}\n</tool_call>' for key in keys)


@pytest.fixture(scope="module")
def played(play_scripts):
    scripts = {
        "expert": [text_of("c"), text_of("f"), text_of("a"), "7"],
        "distracted": [text_of("c"), text_of("k"), text_of("f"), text_of("a"), "2"],
        "parallel": [text_of("c", "k", "f"), text_of("a"), "7"],
        "wrong_name": [text_of("c").replace("look", "open"), text_of("c"), "1"],
        "no_card": [text_of("?"), text_of("c"), "1"],
        "broken_json": [text_of("c").replace('"}', '"'), "unused"],
        "no_call": ["7"],
        "too_long": [text_of("c"), text_of(*"f" * 10), "unused"],
    }
    return play_scripts(Lookup, {name: (ROW, texts) for name, texts in scripts.items()}, 900)


def test_the_loop_of_trl_carries_out_the_experts_calls(played):
    episode = played["expert"]
    assert [m["content"] for m in episode.messages if m["role"] == "tool"] == ["!k =f", "=a !z", "=7 !2"]
    assert episode.scores == judge(*expert(ROW))


def test_the_loop_of_trl_and_play_give_the_same_scores(played):
    assert played["distracted"].scores == judge(look("c"), look("k"), look("f"), look("a"), say("2"))
    assert played["parallel"].scores == judge(look("c", "k", "f"), look("a"), say("7"))
    assert played["no_call"].scores == judge(say("7"))


def test_errors_reach_the_policy_and_the_episode_goes_on(played):
    results = {name: [m["content"] for m in played[name].messages if m["role"] == "tool"] for name in played}
    assert results["wrong_name"] == ["{'error': 'Tool open not found.'}", "!k =f"]
    assert results["no_card"] == ["{'error': \"no card '?'\"}", "!k =f"]
    assert column(played["wrong_name"].scores, "format") == [-1.0, 0.0, 0.0]
    assert column(played["no_card"].scores, "format") == [0.0, 0.0, 0.0]
    assert column(played["no_card"].scores, "cost") == [-1.0, 0.0, 0.0]
    assert column(played["no_card"].scores, "process") == [0.0, 1.0, 0.0]


def test_broken_json_ends_the_episode_with_broken_format(played):
    (score,) = played["broken_json"].scores
    assert score.rewards == {"outcome": 0.0, "format": -1.0, "cost": 0.0, "process": 0.0}


def test_calls_whose_results_did_not_fit_are_judged(played):
    episode = played["too_long"]
    assert [message["role"] for message in episode.messages] == ["assistant", "tool", "assistant"]
    assert episode.scores[-1].rewards == {"outcome": 0.0, "format": 0.0, "cost": -9.0, "process": 1.0}
