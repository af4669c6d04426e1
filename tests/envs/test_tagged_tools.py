"""Tool environments in tags, as step environments."""

import functools
import pickle

import pytest

from acpo_trl.envs import Lookup, Search, TaggedTools, lookup_tasks, play
from acpo_trl.envs.island import island_tasks
from acpo_trl.envs.lookup import expert as lookup_expert
from acpo_trl.envs.search import expert as search_expert
from acpo_trl.rollouts import view_turns

ROW = island_tasks()[2]
FORMAT_ERROR = (
    "\n<information>Nothing was done: write one of <search>...</search>, <answer>...</answer>.</information>\n"
)


@pytest.fixture
def search():
    environment = TaggedTools(functools.partial(Search, top_k=1))
    assert environment.reset(**ROW) is None
    return environment


def tagged(message):
    """What a policy with tags writes for the one call, or the answer, of a message."""
    if not message.get("tool_calls"):
        return f"<answer>{message['content'].removeprefix('<answer>').removesuffix('</answer>')}</answer>"
    function = message["tool_calls"][0]["function"]
    (text,) = function["arguments"].values()
    return f"<think>\nNow what?\n</think>\n<{function['name']}>{text}</{function['name']}>"


@pytest.mark.parametrize(
    ("make", "rows", "expert"),
    [(Lookup, lookup_tasks(30, seed=4), lookup_expert), (Search, island_tasks(), search_expert)],
    ids=["lookup", "search"],
)
def test_the_expert_in_tags_earns_what_it_earns_with_calls(make, rows, expert):
    environment, inner = TaggedTools(make), make()
    for row in rows:
        environment.reset(**row)
        steps = [environment.step(tagged(message)) for message in expert(row)]
        assert [step.done for step in steps] == [False] * (len(steps) - 1) + [True]
        views = view_turns(play(inner, row, expert(row)), [], len(steps))
        assert [(step.rewards, step.state_key) for step in steps] == inner._score(views)
        assert steps[-1].rewards["outcome"] == 1.0


def test_a_search_is_answered_with_information(search):
    step = search.step("I need <search> Mount Virre </search>")
    assert step.observation.startswith("\n<information>Mount Virre: Mount Virre is 1,872 metres high.")
    assert step.observation.endswith("</information>\n")
    assert step.rewards == {"outcome": None, "format": 0.0, "cost": -0.1, "process": 1.0}
    assert (step.done, step.state_key) == (False, "[]")
    assert search.step("<search>x</search>").state_key == '["p2"]'


def test_an_answer_ends_the_episode_with_its_outcome(search):
    step = search.step("So <answer> lower quarne </answer>")
    assert (step.observation, step.done, step.rewards["outcome"]) == ("", True, 1.0)
    search.reset(**ROW)
    assert search.step("<answer>Pellow</answer>").rewards["outcome"] == 0.0


@pytest.mark.parametrize("action", ["", "Lower Quarne", "<search>Mount Virre", "<find>x</find>", "<search>a</answer>"])
def test_an_action_without_complete_tag_is_told_so(search, action):
    step = search.step(action)
    assert step.observation == FORMAT_ERROR
    assert step.rewards == {"outcome": None, "format": -1.0, "cost": 0.0, "process": 0.0}
    assert not step.done


@pytest.mark.parametrize(
    ("action", "begin"),
    [
        ("<search>copper</search> no, <search>Pellow</search>", "Pellow:"),
        ("<answer>x</answer> no, <search>Pellow</search>", "Pellow:"),
        ("<search>copper <search>Pellow</search>", "Pellow:"),
        ("<search>Pellow</search> <answer>x", "Pellow:"),
        ("<information>made up</information><search>Pellow</search>", "Pellow:"),
        ("<search></search>", "Nothing found."),
    ],
)
def test_the_last_complete_tag_counts(search, action, begin):
    assert search.step(action).observation.startswith(f"\n<information>{begin}")


def test_the_last_turn_ends_the_episode_and_has_an_outcome():
    environment = TaggedTools(Search, max_turns=2)
    environment.reset(**ROW)
    first, last = environment.step("<search>copper</search>"), environment.step("hm")
    assert (first.done, first.rewards["outcome"]) == (False, None)
    assert (last.done, last.rewards["outcome"], last.rewards["format"]) == (True, 0.0, -1.0)


def test_errors_of_a_tool_are_observations():
    environment = TaggedTools(Lookup)
    environment.reset(**lookup_tasks(1, seed=0)[0])
    assert environment.step("<look>?</look>").observation == (
        "\n<information>{'error': \"no card '?'\"}</information>\n"
    )


def test_names_of_tags_are_options():
    environment = TaggedTools(Search, answer_tag="final", result_tag="result", max_turns=5)
    environment.reset(**ROW)
    assert environment.step("<answer>Lower Quarne</answer>").rewards["format"] == -1.0
    assert environment.step("<search>Pellow</search>").observation.startswith("\n<result>")
    assert environment.step("<final>Lower Quarne</final>").rewards["outcome"] == 1.0


def test_reset_leaves_nothing_of_the_episode_before(search):
    actions = ["<search>Mount Virre</search>", "<answer>x</answer>"]
    before = [search.step(action) for action in actions]
    search.reset(**ROW)
    assert [search.step(action) for action in actions] == before


def test_a_factory_can_be_pickled():
    factory = functools.partial(TaggedTools, functools.partial(Search, top_k=2), max_turns=3)
    environment = pickle.loads(pickle.dumps(factory))()
    assert environment.reward_kinds == ("outcome", "format", "cost", "process")


class TwoArguments(Lookup):
    def move(self, start: str, end: str) -> str:
        return start + end


def test_a_tool_with_several_arguments_has_no_tag():
    with pytest.raises(ValueError, match="tool 'move': takes 2 arguments, but a tag holds one text"):
        TaggedTools(TwoArguments)
