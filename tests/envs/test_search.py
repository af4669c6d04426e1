"""The environment `search` and its corpus, by themselves and in TRL's tool loop."""

import functools
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from acpo_trl.envs import Corpus, Search, call_message, play
from acpo_trl.envs.island import PASSAGES, island_tasks
from acpo_trl.envs.search import expert
from acpo_trl.rollouts import view_turns

ROW = {
    "prompt": [{"role": "user", "content": "Where was the first person on Mount Virre born?"}],
    "golden_answers": ["Lower Quarne"],
    "supporting": ["Mount Virre", "Ebba Karsk"],
}
WITHOUT_SUPPORT = {"prompt": ROW["prompt"], "golden_answers": ["Lower Quarne", "Quarne"]}


def say(text):
    return {"role": "assistant", "content": text}


def find(query):
    return call_message("search", query=query)


def judge(*messages, row=ROW, environment=None):
    environment = environment or Search(top_k=1)
    return environment._score(view_turns(play(environment, row, messages), [], len(messages)))


def column(scores, kind):
    return [score.rewards[kind] for score in scores]


# --- corpus ---

WORDS = [
    {"id": 1, "title": "Ferry", "text": "The ferry crosses the river."},
    {"id": 2, "title": "Bridge", "text": "The bridge crosses the river Sool, and the Sool freezes."},
    {"id": 3, "title": "Café", "text": "Coffee in 1864."},
]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("Sool", "2"),
        ("crossing rivers", "12"),
        ("What is the FERRY?", "1"),
        ("the cafe", "3"),
        ('river" OR NEAR(*) title:x -', "12"),
        ("1864", "3"),
        ("zeppelin", ""),
        ("?!", ""),
        ("", ""),
    ],
)
def test_the_best_passages_come_first_and_others_not_at_all(query, ids):
    found = [passage.id for passage in Corpus(WORDS).search(query, top_k=3)]
    assert sorted(found) == list(ids)


def test_a_rare_word_counts_more_and_top_k_bounds_the_result():
    assert [passage.id for passage in Corpus(WORDS).search("river Sool", top_k=1)] == ["2"]
    assert len(Corpus(WORDS).search("river coffee", top_k=2)) == 2


def test_equally_good_passages_keep_their_order():
    same = [{"id": f"n{number}", "title": "t", "text": "word"} for number in range(5)]
    assert [passage.id for passage in Corpus(same).search("word", top_k=4)] == ["n0", "n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("passages", "message"),
    [
        ([{"id": 1, "title": "a"}], "passage 0: lacks \\['text'\\]"),
        ([*WORDS, WORDS[0]], "passage 3: has the id 1 of an earlier one"),
    ],
)
def test_a_corpus_with_a_passage_that_cannot_be_found_is_refused(passages, message):
    with pytest.raises(ValueError, match=message):
        Corpus(passages)


def test_a_corpus_searches_from_threads_and_after_pickling():
    corpus = pickle.loads(pickle.dumps(Corpus(PASSAGES)))
    texts = [passage["text"] for passage in PASSAGES] * 20
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: corpus.search(text, 1)[0].text, texts))
    assert found == texts


# --- environment ---


def test_the_expert_answers_every_question():
    for row in island_tasks():
        scores = judge(*expert(row), row=row, environment=Search())
        assert scores[-1].rewards == {"outcome": 1.0, "format": 0.0, "cost": 0.0, "process": None}, row
        assert scores[0].rewards["process"] == 1.0, row


def test_the_supporting_passages_are_in_the_corpus_and_the_last_one_has_the_answer():
    texts = {passage["title"]: passage["text"] for passage in PASSAGES}
    assert len(texts) == len(PASSAGES) >= 20
    for row in island_tasks():
        text = " ".join(texts[title] for title in row["supporting"]).lower()
        assert any(answer.lower().removeprefix("a ").removeprefix("the ") in text for answer in row["golden_answers"])


def test_a_new_supporting_passage_is_progress_and_a_known_one_is_not():
    scores = judge(find("Mount Virre"), find("Virre"), find("copper"), find("Ebba Karsk"), find("goats"), say("?"))
    assert column(scores, "process") == [1.0, 0.0, 0.0, 1.0, None, None]
    assert [json.loads(score.state_key) for score in scores] == [
        [],
        ["p2"],
        ["p2"],
        ["p16", "p2"],
        ["p16", "p2", "p3"],
        ["p16", "p2", "p3", "p5"],
    ]


def test_supporting_passages_may_be_named_by_id():
    assert column(judge(find("Mount Virre"), say("?"), row=ROW | {"supporting": ["p2"]}), "process") == [1.0, None]


@pytest.mark.parametrize("supporting", [5, "5", [5], ["5"], "River", ["River", 5]])
def test_supporting_is_an_id_or_title_or_several(supporting):
    environment = Search(Corpus([{"id": 5, "title": "River", "text": "Sool"}]), top_k=1)
    assert column(
        judge(find("Sool"), say("?"), row=ROW | {"supporting": supporting}, environment=environment), "process"
    ) == [1.0, None]


def test_a_title_with_several_letters_is_one_thing_to_find():
    row = ROW | {"supporting": "Mount Virre"}
    assert column(judge(find("copper"), find("Mount Virre"), say("?"), row=row), "process") == [0.0, 1.0, None]


@pytest.mark.parametrize("supporting", [{"p2": 1}, 2.0, True, [None], [["p2"]], ""])
def test_supporting_of_another_type_is_refused_at_once(supporting):
    with pytest.raises(ValueError, match=r"supporting .*: no passage is called so; expected an id or title"):
        Search().reset(**ROW | {"supporting": supporting})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"top_k": -1}, ValueError, "top_k -1"),
        ({"top_k": None}, TypeError, "top_k None"),
        ({"max_characters": -5}, ValueError, "max_characters -5"),
        ({"max_characters": "x"}, TypeError, "max_characters 'x'"),
        ({"call_cost": float("nan")}, ValueError, "call_cost nan: is out of range"),
        ({"call_cost": -1}, ValueError, "call_cost -1: is out of range"),
        ({"call_cost": "x"}, TypeError, "call_cost 'x'"),
        ({"outcome": 5}, TypeError, "outcome 5: is a int, which judges nothing"),
        ({"outcome": "string.digits"}, TypeError, "outcome 'string.digits': is a str, which judges nothing"),
        ({"outcome": "exact"}, ValueError, "outcome 'exact'.*exact_match"),
    ],
)
def test_options_that_cannot_work_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        Search(**options)


def test_a_call_may_cost_nothing():
    assert column(judge(find("copper"), environment=Search(call_cost=0)), "cost") == [0.0]


def test_a_dataset_without_gold_answers_is_refused():
    Search(outcome="f1")._check_columns(["prompt", "golden_answers"])
    Search(outcome=len)._check_columns(["prompt"])  # a function says nothing about columns
    with pytest.raises(ValueError, match="reward 'f1': no gold answers among the columns"):
        Search(outcome="f1")._check_columns(["prompt", "supporting"])


def test_half_a_character_in_a_passage_is_replaced():
    corpus = Corpus([{"id": 1, "title": "River \ud83d", "text": "Sool"}])
    assert corpus.search("Sool", 1)[0].title == "River \ufffd"


def test_without_supporting_column_the_first_passage_with_a_gold_answer_is_progress():
    scores = judge(find("Mount Virre"), find("Ebba Karsk"), find("weavers"), say("?"), row=WITHOUT_SUPPORT)
    assert column(scores, "process") == [0.0, 1.0, None, None]


def test_an_answer_inside_another_word_is_not_found():
    row = {"golden_answers": ["arne", "Low"]}
    assert column(judge(find("Ebba Karsk"), row=row), "process") == [0.0]


@pytest.mark.parametrize("gold", [["yes"], [], ["no", "No."]])
def test_nobody_knows_what_supports_yes_no_or_a_missing_answer(gold):
    assert column(judge(find("Mount Virre"), row={"golden_answers": gold}), "process") == [None]


def test_one_of_several_gold_answers_is_enough_and_none_is_unscored():
    row = {"golden_answers": ["twelve", "12"]}
    assert judge(say("<answer>12</answer>"), row=row)[0].rewards["outcome"] == 1.0
    assert judge(say("<answer>11</answer>"), row=row)[0].rewards["outcome"] == 0.0
    assert judge(say("<answer>11</answer>"), row={"golden_answers": []})[0].rewards["outcome"] is None


def test_f1_may_judge_the_answer():
    environment = Search(outcome="f1")
    (score,) = judge(say("<answer>in Lower Quarne</answer>"), environment=environment)
    assert score.rewards["outcome"] == pytest.approx(0.8)


def test_passages_are_cut_and_a_cut_off_answer_is_not_found():
    environment = Search(top_k=1, max_characters=30)
    (message,) = [m for m in play(environment, WITHOUT_SUPPORT, [find("Ebba Karsk")]) if m["role"] == "tool"]
    assert message["content"] == "Ebba Karsk: Ebba Karsk was a m"
    assert column(judge(find("Ebba Karsk"), row=WITHOUT_SUPPORT, environment=environment), "process") == [0.0]


def test_a_search_may_find_nothing():
    environment = Search()
    environment.reset(**ROW)
    assert environment.search("zeppelin") == "Nothing found."


def test_a_corpus_comes_from_a_file_which_is_indexed_once(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(passage) + "\n" for passage in WORDS))
    factory = pickle.loads(pickle.dumps(functools.partial(Search, corpus=str(path), top_k=2)))
    first, second = factory(), factory()
    first.reset(**ROW)
    assert first.search("ferry") == "Ferry: The ferry crosses the river."
    assert first._corpus is second._corpus


def test_reset_leaves_nothing_of_the_episode_before():
    used, fresh = Search(top_k=1), Search(top_k=1)
    judge(*expert(ROW), row=WITHOUT_SUPPORT, environment=used)
    messages = [find("Mount Virre"), say("<answer>x</answer>")]
    assert judge(*messages, environment=used) == judge(*messages, environment=fresh)
    assert {**vars(used), "_outcome": 0} == {**vars(fresh), "_outcome": 0}


def text_of(*queries, name="search", key="query"):
    calls = [json.dumps({"name": name, "arguments": {key: query}}) for query in queries]
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)


@pytest.fixture(scope="module")
def played(play_scripts):
    answer = "<answer>Lower Quarne</answer>"
    scripts = {
        "expert": [text_of("Mount Virre"), text_of("Ebba Karsk"), answer],
        "parallel": [text_of("Mount Virre", "Ebba Karsk"), answer],
        "wrong_name": [text_of("Mount Virre", name="find"), answer],
        "wrong_argument": [text_of("Mount Virre", key="q"), answer],
        "error": [text_of(["Mount Virre"]), answer],
        "broken_json": [text_of("Mount Virre").replace('"}', '"'), "unused"],
        "no_call": ["<answer>Pellow</answer>"],
    }
    factory = functools.partial(Search, top_k=1)
    return play_scripts(factory, {name: (ROW, texts) for name, texts in scripts.items()})


def results(episode):
    return [message["content"] for message in episode.messages if message["role"] == "tool"]


def test_the_loop_of_trl_carries_out_the_experts_searches(played):
    assert [result.split(":")[0] for result in results(played["expert"])] == ["Mount Virre", "Ebba Karsk"]
    assert played["expert"].scores == judge(*expert(ROW))


def test_parallel_searches_count_as_one_turn(played):
    episode = played["parallel"]
    assert len(results(episode)) == 2
    assert column(episode.scores, "process") == [1.0, None]
    assert column(episode.scores, "cost") == [-0.2, 0.0]


@pytest.mark.parametrize("name", ["wrong_name", "wrong_argument", "error"])
def test_a_wrong_call_breaks_the_format_and_finds_nothing(played, name):
    assert results(played[name])[0].startswith("{'error': ")
    assert column(played[name].scores, "format") == [-1.0, 0.0]
    assert column(played[name].scores, "process") == [0.0, 0.0]
    assert column(played[name].scores, "outcome") == [None, 1.0]


def test_broken_json_and_a_guess_end_the_episode(played):
    assert played["broken_json"].scores[0].rewards == {"outcome": 0.0, "format": -1.0, "cost": -0.1, "process": 0.0}
    assert played["no_call"].scores[0].rewards == {"outcome": 0.0, "format": 0.0, "cost": 0.0, "process": 0.0}
