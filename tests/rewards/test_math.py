"""The reward `math` as TRL calls it."""

import asyncio
import multiprocessing
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from acpo_trl.rewards import MathReward
from acpo_trl.rewards import math as math_module

COMPLETIONS = [r"\boxed{\frac{1}{2}}", r"\boxed{3}", "no answer", r"\boxed{7 \text{ or } 8}"]
GOLDS = ["0.5", "4", "5", "7"]
REWARDS_OF_GOLDS = [1.0, 0.0, 0.0, 0.0]
# math-verify leaves this to sympy, which does not come back.
ENDLESS = r"\int_0^1 x^x \sin(e^{x^2}) \ln(x+\pi) dx"


@pytest.fixture
def fresh(monkeypatch):
    """Verdicts are remembered; this forgets them."""
    monkeypatch.setattr(math_module, "_remembered", {})


def reward_in_child(connection):
    connection.send(MathReward()(COMPLETIONS, solution=GOLDS))


async def reward_in_loop():
    return MathReward()(COMPLETIONS, solution=GOLDS)


def test_reward_is_the_same_in_any_thread_or_loop(fresh):
    reward = MathReward()
    assert reward(COMPLETIONS, solution=GOLDS) == REWARDS_OF_GOLDS
    math_module._remembered.clear()
    with ThreadPoolExecutor(3) as threads:
        batches = list(threads.map(lambda _: reward(COMPLETIONS, solution=GOLDS), range(3)))
    assert batches == [REWARDS_OF_GOLDS] * 3
    math_module._remembered.clear()
    assert asyncio.run(reward_in_loop()) == REWARDS_OF_GOLDS


@pytest.mark.slow
def test_reward_is_the_same_in_a_spawned_process():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=reward_in_child, args=(theirs,), daemon=True)
    process.start()
    assert ours.poll(60)
    assert ours.recv() == REWARDS_OF_GOLDS
    process.join(10)
    assert process.exitcode == 0


@pytest.mark.slow
def test_script_without_main_guard_can_use_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from acpo_trl.rewards import MathReward\n"
        f"print(MathReward()({COMPLETIONS!r}, solution={GOLDS!r}))\n"
        "import sys\n"
        "assert not {'torch', 'trl', 'sympy', 'math_verify'} & set(sys.modules), 'imports something heavy'\n"
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert result.stdout == f"{REWARDS_OF_GOLDS}\n"
    assert result.stderr == ""


def test_reward_can_be_pickled_and_named():
    reward = pickle.loads(pickle.dumps(MathReward(require_box=True)))
    assert (reward.__name__, reward.require_box) == ("math", True)
    assert reward(["Answer: 5", r"\boxed{5}"], answer=["5", "5"]) == [0.0, 1.0]


@pytest.mark.parametrize("gold", ["", " ", r"\boxed{}", None, "None", "nan", "?", "$$", r"\text{}"])
def test_missing_gold_scores_nobody(gold):
    completions = [rf"\boxed{{{gold}}}", r"\boxed{3}", "no answer"]
    assert MathReward()(completions, solution=[gold] * 3) == [None] * 3


@pytest.mark.parametrize("gold", [r"\unknown{3}", "3 4", r"\frac{0}{0}"])
def test_unreadable_gold_equals_its_own_spelling_and_scores_nobody_else(gold):
    completions = [rf"\boxed{{{gold}}}", r"\boxed{3}", "no answer"]
    assert MathReward()(completions, solution=[gold] * 3) == [1.0, None, None]


def test_prose_is_no_gold_even_if_it_is_repeated():
    gold = "The proof follows from the two lemmas above by induction"
    assert MathReward()([rf"\boxed{{{gold}}}"], solution=[gold]) == [None]


def test_solution_comes_before_answer():
    assert MathReward()([r"\boxed{1}"], solution=["1"], answer=["2"]) == [1.0]
    assert MathReward()([r"\boxed{2}"], answer=["2"]) == [1.0]


def test_missing_gold_column_is_named():
    with pytest.raises(ValueError, match=r"reward 'math': no gold answers among the columns \['prompts', 'target'\]"):
        MathReward()(["x"], target=["1"], prompts=["p"])


def test_evidence_is_logged_beside_the_verdict():
    logged = {}
    completions = [r"\boxed{7}", r"\boxed{8}", "nothing", r"\boxed{7 7}"]
    MathReward()(completions, solution=["7"] * 4, log_extra=logged.__setitem__)
    assert logged["math_answer"] == ["7", "8", "", "7 7"]
    assert logged["math_reason"] == ["identical", "different", "no answer", "unreadable answer: unexpected 7"]


@pytest.mark.slow
def test_seconds_are_those_of_the_worker_and_none_for_a_remembered_verdict(fresh):
    reward, first, again = MathReward(limit_s=1.0), {}, {}
    completions = [r"\boxed{\frac{2}{4}}", rf"\boxed{{{ENDLESS}}}", rf"\boxed{{{'1' * 20_000}}}"]
    reward(completions, solution=["1/2"] * 3, log_extra=first.__setitem__)
    reward(completions[:1], solution=["1/2"], log_extra=again.__setitem__)
    short, killed, unread = first["math_seconds"]
    assert 0 < short < 1
    assert 1 <= killed < 5
    assert unread == 0
    assert again == {"math_answer": [r"\frac{2}{4}"], "math_reason": ["equal"], "math_seconds": [0.0]}


def metrics_of(reward, completions, golds):
    logged = {}
    reward(completions, solution=golds, log_metric=logged.__setitem__)
    return logged


@pytest.mark.slow
def test_missing_unreadable_and_unscored_answers_are_shares_apart_from_wrong_ones(fresh):
    completions = [
        r"\boxed{7}",
        r"\boxed{8}",
        "nothing",
        r"\boxed{}",
        r"\boxed{$ $}",
        r"\boxed{7 7}",
        r"\boxed{10^{10^{10}}}",
        rf"\boxed{{{'1' * 20_000}}}",
        rf"\boxed{{{ENDLESS}}}",
        r"\boxed{7}",
    ]
    assert metrics_of(MathReward(limit_s=1.0), completions, ["7"] * 9 + [None]) == {
        "rewards/math/no_answer": 0.3,
        "rewards/math/unreadable": 0.4,
        "rewards/math/unscored": 0.1,
    }


def test_all_wrong_for_want_of_a_thinking_tag_shows_in_the_metrics():
    completions, golds = [r"so \boxed{7}", r"so \boxed{8}"], ["7", "8"]
    assert MathReward(require_thinking=True)(completions, solution=golds) == [0.0, 0.0]
    assert metrics_of(MathReward(require_thinking=True), completions, golds)["rewards/math/no_answer"] == 1.0
    wrong = metrics_of(MathReward(), completions, ["1", "2"])
    assert wrong == {"rewards/math/no_answer": 0.0, "rewards/math/unreadable": 0.0, "rewards/math/unscored": 0.0}


def test_empty_batch_logs_no_share():
    assert metrics_of(MathReward(), [], []) == {}


def test_check_wants_a_column_with_gold_answers():
    MathReward().check_columns(["prompt", "answer"])
    MathReward().check_columns(iter(["solution"]))
    with pytest.raises(ValueError, match=r"no gold answers among the columns \['gold', 'prompt'\]"):
        MathReward().check_columns(["prompt", "gold"])


@pytest.mark.parametrize(
    ("row", "gold"),
    [
        ({"solution": r"so $\boxed{\frac12}$.", "answer": "2"}, r"\boxed{\frac12}"),
        ({"answer": "9 * 2 = 18\n#### 18"}, r"\boxed{18}"),
        ({"answer": 7}, r"\boxed{7}"),
        ({"answer": None}, None),
        ({"solution": " "}, None),
    ],
)
def test_gold_of_a_row_is_its_answer_in_a_box(row, gold):
    assert MathReward().gold(row) == gold


@pytest.mark.parametrize("require_thinking", [False, True])
def test_gold_of_a_row_earns_the_best_score_under_every_requirement(require_thinking):
    reward = MathReward(require_box=True, require_thinking=require_thinking, several_boxes="none", units="strict")
    row = {"answer": r"5\text{ cm}"}
    assert reward([reward.gold(row)], answer=[row["answer"]]) == [1.0]


def test_answer_beyond_the_limit_earns_nothing_and_harms_no_other(fresh):
    reward, logged = MathReward(limit_s=1.0), {}
    answers = [r"\boxed{\frac{2}{4}}", rf"\boxed{{{ENDLESS}}}", r"\boxed{0.5}", r"\boxed{2}"]
    start = time.monotonic()
    assert reward(answers, solution=["1/2"] * 4, log_extra=logged.__setitem__) == [1.0, 0.0, 1.0, 0.0]
    assert logged["math_reason"][1] == "time limit"
    assert time.monotonic() - start < 5


@pytest.mark.slow
def test_gold_beyond_the_limit_scores_nobody(fresh):
    assert MathReward(limit_s=1.0)([r"\boxed{2}"], solution=[ENDLESS]) == [None]


def test_answer_that_is_too_long_earns_nothing_and_such_a_gold_scores_nobody():
    logged = {}
    long = "1+" * 20_000 + "1"
    completions = [rf"\boxed{{{long}}}", r"\boxed{20001}"]
    assert MathReward()(completions, solution=["20001", long], log_extra=logged.__setitem__) == [0.0, None]
    assert logged["math_reason"] == ["too long", "too long"]
    assert len(logged["math_answer"][0]) == 200
