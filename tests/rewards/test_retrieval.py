"""Exact match and F1."""

import gzip
import json
import os
import pickle
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acpo_trl.rewards import ExactMatchReward, F1Reward
from acpo_trl.rewards.retrieval import gold_answers, normalize, short_answer

SHARED = Path(os.environ.get("ACPO_TRL_SHARED", Path(__file__).parents[3] / "shared"))
WORDS = st.lists(st.sampled_from(["the", "a", "Paris", "lamp", "1901", "U.S.", "yes", "Émile"]), min_size=1, max_size=6)


def exact(answer, *golds):
    return ExactMatchReward()([f"<answer>{answer}</answer>"], golden_answers=[list(golds)])[0]


def f1(answer, *golds):
    return F1Reward()([f"<answer>{answer}</answer>"], golden_answers=[list(golds)])[0]


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("argand  LAMP", "The Argand lamp"),
        ("a lamp.", "lamp"),
        ("US", "U.S."),
        ("**Paris**", "Paris"),
        ("Rock\u2019n\u2019roll", "rock'n'roll"),  # curly apostrophes
        ("1939\u20131945", "1939-1945"),  # en dash
        ("\u00ab\u00c9mile\u00bb", "e\u0301mile"),  # guillemets; composed and combining accent
        ("stra\u00dfe", "STRASSE"),
        ("10\u00a0km", "10 km"),  # no-break space
        ("\uff30aris\u200b", "Paris"),  # full-width letter, zero-width space
        ("\u6771\u4eac\u3002", "\u6771\u4eac"),  # ideographic full stop
        (r"\boxed{Paris}", "Paris"),
    ],
)
def test_case_punctuation_articles_and_whitespace_do_not_matter(answer, gold):
    assert exact(answer, gold) == exact(gold, answer.removeprefix(r"\boxed{").removesuffix("}")) == 1.0
    assert f1(answer, gold) == 1.0


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("Paris, France", "Paris"),
        ("Paris or London", "Paris"),
        ("Paris; London; Rome", "Paris"),
        ("Emile", "\u00c9mile"),
        ("1901", "1902"),
        ("The", "A"),
        ("theatre", "atre"),
        ("C", "D"),
    ],
)
def test_another_answer_and_a_list_of_candidates_do_not_match_exactly(answer, gold):
    assert exact(answer, gold) == 0.0


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("120", "12.0"),
        ("-5", "5"),
        ("\u22125", "5"),  # minus sign
        ("-$5", "$5"),
        ("<5", "5"),
        ("1.5", "15"),
        ("1,5", "15"),
        (".5", "5"),
        ("3/4", "34"),
        ("9:30", "930"),
        ("1939-45", "193945"),
        ("10\u2075", "105"),  # superscript
        ("m\u00b2", "m2"),
        ("10\u2082", "102"),  # subscript
        ("1\u00bd", "11/2"),  # fraction sign
        ("C++", "C"),
        ("F#", "F"),
        ("A-", "A"),
        ("18+", "18"),
    ],
)
def test_a_sign_that_makes_another_number_or_name_matters(answer, gold):
    assert exact(answer, gold) == exact(gold, answer) == 0.0
    assert f1(answer, gold) < 1.0
    assert exact(answer, answer) == exact(f"**{answer}**.", answer) == 1.0


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("1,234,567", "1234567"),
        ("10\u207b\u2075", "10^-5"),
        ("\u22125", "-5"),
        ("1\u00bd", "1 1/2"),
        ("H\u2082O", "H2O"),
        ("COVID-19", "covid19"),
        ("$5.", "5"),
        ("12", 12.0),
    ],
)
def test_another_spelling_of_a_number_matches(answer, gold):
    assert exact(answer, gold) == f1(answer, gold) == 1.0


def test_a_list_of_all_candidates_earns_nothing_even_if_all_are_gold():
    assert exact("Paris, Lutetia", "Paris", "Lutetia") == 0.0
    assert exact("Lutetia", "Paris", "Lutetia") == 1.0


def test_names_of_articles_or_punctuation_only_are_not_empty():
    assert [normalize(text) for text in ("The The", "A", "?", "The !!!")] == ["the the", "a", "?", "the"]
    assert exact("The The", "the the") == 1.0
    assert exact("An", "The The") == 0.0


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        ("Keyboard", "keyboard function keys", 0.5),  # precision 1, recall 1/3
        ("the keyboard function keys", "keyboard function keys", 1.0),
        ("Mark Neveldine", "Mark Neveldine and Brian Taylor", 4 / 7),  # 1, 2/5
        ("Paris, London, Rome", "Paris", 0.5),  # 1/3, 1
        ("Paris Paris", "Paris", 2 / 3),  # 1/2, 1
        ("London", "Paris", 0.0),
        ("no it is not", "no", 0.0),
        ("no", "no other", 0.0),
        ("No!", "no", 1.0),
        ("yes", "no", 0.0),
        ("no answer", "noanswer", 0.0),
    ],
)
def test_f1_is_the_harmonic_mean_over_words_and_closed_answers_match_themselves_only(answer, gold, score):
    assert f1(answer, gold) == pytest.approx(score)


def test_the_best_of_several_gold_answers_counts():
    assert exact("lamp", "torch", "lamp") == 1.0
    assert f1("Argand lamp", "lamp", "the Argand oil lamp") == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("cell", "golds"),
    [
        ("Paris", ["Paris"]),
        (" Paris ", ["Paris"]),
        (["Paris", "Lutetia"], ["Paris", "Lutetia"]),
        (("Paris", None, " "), ["Paris"]),
        (numpy.array(["Paris", "Lutetia"], dtype=object), ["Paris", "Lutetia"]),
        (numpy.array([1901]), ["1901"]),
        ('["Paris", "Lutetia"]', ["Paris", "Lutetia"]),
        ("[sic]", ["[sic]"]),
        (1901, ["1901"]),
        ([1901, 2.5], ["1901", "2.5"]),
        (12.0, ["12"]),
        (numpy.float32(-12), ["-12"]),
        ("[12.0, 1e20]", ["12", "100000000000000000000"]),
        (float("inf"), ["inf"]),
        (True, ["True"]),
        ("", []),
        ("[]", []),
        ([], []),
        ([""], []),
        (None, []),
        (float("nan"), []),
    ],
)
def test_gold_answers_are_a_string_or_a_list(cell, golds):
    assert gold_answers(cell) == golds


@pytest.mark.parametrize("cell", [{"text": ["Paris"]}, [["Paris"]], [{"text": "Paris"}], '[{"text": "Paris"}]'])
def test_gold_answers_of_another_shape_are_refused(cell):
    with pytest.raises(TypeError, match="expected a string or a list of strings"):
        gold_answers(cell)


@pytest.mark.parametrize("reward", [ExactMatchReward(), F1Reward()])
def test_a_row_without_gold_answer_is_unscored_and_a_message_without_answer_is_wrong(reward):
    completions, golds = ["<answer>Paris</answer>", "<answer>Paris</answer>", "I do not know."], ["", "Paris", "Paris"]
    assert reward(completions, answer=golds) == [None, 1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>Paris</answer>", "Paris"),
        ("<answer>\nParis\n</answer> Done.", "Paris"),
        ("<answer>Rome</answer> no, <answer>Paris</answer>", "Paris"),
        ("<answer>Rome <answer>Paris</answer>", "Paris"),
        ("<think><answer>Rome</answer></think><answer>Paris</answer>", "Paris"),
        ("<think><answer>Paris</answer></think>", ""),
        ("<think><answer>Paris</answer>", ""),
        ("<answer>Paris</answer><answer></answer>", ""),
        (r"<answer>Paris</answer>\boxed{Rome}", "Paris"),
        (r"So \boxed{Paris}", "Paris"),
        ("The answer is Paris.", "Paris."),
        ("<answer>Paris", "Paris"),
        ("It is Paris, I think.", ""),
        ("", ""),
    ],
)
def test_the_answer_is_the_last_block_else_the_box_else_what_is_announced(text, answer):
    assert short_answer(text, "answer") == answer


def test_the_answer_tag_can_be_named():
    reward = ExactMatchReward(answer_tag="final")
    assert reward(["<final>Paris</final>", "<final>Rome</final><answer>Paris</answer>"], answer=["Paris"] * 2) == [1, 0]
    with pytest.raises(ValueError, match="'exact_match', answer_tag 'a b': is no name of a tag"):
        ExactMatchReward(answer_tag="a b")


def test_only_the_last_assistant_message_answers():
    result = {"role": "tool", "content": "<answer>Paris</answer>"}
    early, silent = {"role": "assistant", "content": "<answer>Paris</answer>"}, {"role": "assistant", "content": ""}
    completions = [[early], [early, result, silent], [silent, result]]
    assert ExactMatchReward()(completions, answer=["Paris"] * 3) == [1.0, 0.0, 0.0]


def test_golden_answers_win_over_solution_and_solution_over_answer():
    reward, paris = ExactMatchReward(), ["<answer>Paris</answer>"]
    assert reward(paris, golden_answers=[["Paris"]], solution=["Rome"], answer=["Rome"]) == [1.0]
    assert reward(paris, solution=["Paris"], answer=["Rome"]) == [1.0]


def test_a_dataset_without_gold_answers_is_refused_before_training():
    ExactMatchReward().check_columns(["prompt", "answer"])
    with pytest.raises(ValueError, match=r"'f1': no gold answers among the columns \['prompt', 'question'\]"):
        F1Reward().check_columns(["question", "prompt"])
    with pytest.raises(ValueError, match="rename the column"):
        F1Reward()(["Paris"], question=["Where?"])


@pytest.mark.parametrize("reward", [ExactMatchReward(), F1Reward("final")])
def test_the_gold_text_of_a_row_scores_1_also_after_pickling(reward):
    copy, rows = pickle.loads(pickle.dumps(reward)), [["The Argand lamp", "lamp"], "no", 1901, "A"]
    assert copy([copy.gold({"answer": row}) for row in rows], answer=rows) == [1.0] * 4
    assert copy.gold({"answer": []}) is None


def test_the_answer_and_the_reason_go_into_the_completions_table():
    logged = {}
    completions = [
        "<answer>Argand lamp</answer>",
        "<answer>" + "x" * 500 + "</answer>",
        "",
        "<answer>lamp</answer>",
        "",
    ]
    F1Reward()(completions, answer=["lamp", "lamp", "lamp", "lamp", None], log_extra=logged.__setitem__)
    assert logged["f1_answer"] == ["Argand lamp", "x" * 200, "", "lamp", ""]
    assert logged["f1_reason"] == ["in part", "different", "no answer", "equal", "no gold answer"]


@given(
    WORDS, st.sampled_from([" ", "  ", "\n", "\t"]), st.sampled_from([str.upper, str.lower, str.title, str.swapcase])
)
def test_exact_match_does_not_see_case_or_whitespace(words, space, change):
    assert exact(space.join(change(word) for word in words), " ".join(words)) == 1.0


@given(WORDS, st.lists(WORDS, min_size=1, max_size=4), st.randoms())
def test_scores_do_not_depend_on_the_order_of_gold_answers_or_words(words, golds, random):
    golds = [" ".join(gold) for gold in golds]
    answer, shuffled = " ".join(words), " ".join(random.sample(words, len(words)))
    others = random.sample(golds, len(golds))
    assert exact(answer, *golds) == exact(answer, *others)
    assert f1(answer, *golds) == f1(shuffled, *others)
    assert exact(answer, *golds) <= f1(answer, *golds) <= 1


@given(st.lists(WORDS, min_size=1, max_size=4), st.randoms())
def test_scores_do_not_depend_on_the_batch(batch, random):
    rows = [(f"<answer>{' '.join(words)}</answer>", "Paris lamp") for words in batch]
    order = random.sample(range(len(rows)), len(rows))
    alone = [F1Reward()([text], answer=[gold])[0] for text, gold in rows]
    together = F1Reward()([rows[i][0] for i in order], answer=[rows[i][1] for i in order])
    assert together == [alone[i] for i in order]


@given(st.text().filter(str.strip))
def test_no_text_becomes_empty(text):
    assert normalize(text).strip()


def test_no_recorded_answer_that_was_judged_wrong_matches_exactly():
    path = SHARED / "data/trajectories/agentprocessbench_hotpotqa.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    completions, golds = [row["messages"] for row in rows], [row["gold"] for row in rows]
    logged = {}
    scores = ExactMatchReward()(completions, golden_answers=golds, log_extra=logged.__setitem__)
    assert not [row["id"] for row, score in zip(rows, scores, strict=True) if score and not row["success"]]
    taken = [
        answer == (row["answer_text"] or "")[:200]
        for answer, row in zip(logged["exact_match_answer"], rows, strict=True)
    ]
    assert sum(taken) >= 0.99 * len(rows)  # one answer quotes its tags
