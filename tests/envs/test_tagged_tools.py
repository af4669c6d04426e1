"""Tool environments in tags, as step environments."""

import functools
import pickle
import time

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


def test_a_tag_inside_thinking_does_nothing(search):
    unclosed = search.step("<think>maybe <answer>Lower Quarne</answer>")
    assert (unclosed.done, unclosed.observation, unclosed.rewards["format"]) == (False, FORMAT_ERROR, -1.0)
    assert search.step("<think><search>copper</search></think>").observation == FORMAT_ERROR
    step = search.step("<search>copper</search></think><search>Pellow</search>")
    assert step.observation.startswith("\n<information>Pellow:")


def test_a_limit_of_the_rollout_gives_an_episode_without_answer_its_outcome(search):
    assert [search.step(action).done for action in ("<search>copper</search>", "hm", "", "Lower Quarne")] == [False] * 4
    assert search.cut_off("turns") == {"outcome": 0.0}


def test_errors_of_a_tool_are_observations():
    environment = TaggedTools(Lookup)
    environment.reset(**lookup_tasks(1, seed=0)[0])
    assert environment.step("<look>?</look>").observation == (
        "\n<information>{'error': \"no card '?'\"}</information>\n"
    )


def test_names_of_tags_are_options():
    environment = TaggedTools(Search, answer_tag="final", result_tag="result")
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
    factory = functools.partial(TaggedTools, functools.partial(Search, top_k=2))
    environment = pickle.loads(pickle.dumps(factory))()
    assert environment.reward_kinds == ("outcome", "format", "cost", "process")


class TwoArguments(Lookup):
    def move(self, start: str, end: str) -> str:
        return start + end


def test_a_tool_with_several_arguments_has_no_tag():
    with pytest.raises(ValueError, match="tool 'move': takes 2 arguments, but a tag holds one text"):
        TaggedTools(TwoArguments)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"answer_tag": "search"}, ValueError, "answer_tag 'search': is the name of another tag"),
        ({"result_tag": "answer"}, ValueError, "result_tag 'answer': is the name of another tag"),
        ({"answer_tag": "a.*"}, ValueError, r"answer_tag 'a\.\*': is no name of a tag"),
        ({"answer_tag": "<answer>"}, ValueError, "is no name of a tag"),
        ({"result_tag": None}, TypeError, "result_tag None: is a NoneType"),
    ],
)
def test_tags_that_cannot_be_told_apart_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        TaggedTools(Search, **options)


def test_columns_are_checked_by_the_tool_environment():
    environment = TaggedTools(Search)
    environment._check_columns(["prompt", "answer"])
    with pytest.raises(ValueError, match="reward 'exact_match': no gold answers among the columns"):
        environment._check_columns(["prompt", "target"])


@pytest.mark.parametrize(
    ("make", "row", "action"),
    [
        (
            functools.partial(Search, top_k=5),
            {"golden_answers": ["zzz"]},
            "<search>Mount Pellow copper harp {}</search>",
        ),
        (functools.partial(Search, top_k=5), ROW, "<search>Mount Pellow copper harp {}</search>"),
        (Lookup, lookup_tasks(1, seed=0)[0], "<look>a</look>"),
    ],
    ids=["search", "search with support", "lookup"],
)
def test_a_late_step_takes_no_longer_than_reading_the_turns_once(make, row, action):
    environment = TaggedTools(make)
    environment.reset(**row)
    for number in range(80):
        environment.step(action.format(number))
    begun = time.monotonic()
    environment.step(action.format(80))
    assert time.monotonic() - begun < 0.25  # with all earlier passages read anew for each turn: several seconds
