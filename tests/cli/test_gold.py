"""Rewards on their own gold answers."""

import asyncio

import pytest
from transformers import TrainerState

from acpo_trl.cli.gold import BATCH
from acpo_trl.cli.gold import check_reward as check
from acpo_trl.rewards import JudgeError, reward

ROWS = [{"prompt": f"{n}+1=", "solution": str(n + 1), "level": n} for n in range(BATCH + 3)]


def check_reward(reward, rows, is_chat=False, **more):
    return check(reward, rows, rows, is_chat, **more)


class Echo:
    """Pays for the row's answer in bold; the row's level says what goes wrong."""

    def __init__(self, faults=()):
        self.faults = dict(faults)
        self.sizes = []

    def gold(self, row):
        return None if self.faults.get(row["level"]) == "no gold" else f"**{row['solution']}**"

    def __call__(self, completions, solution, level, log_extra, **columns):
        self.sizes.append(len(completions))
        if any(self.faults.get(n) == "raise" for n in level):
            raise KeyError("lost")
        if any(self.faults.get(n) == "judge" for n in level):
            raise JudgeError("the judge is out")
        log_extra("echo_reason", [f"level {n}" for n in level])
        paid = [float(text == f"**{right}**") for text, right in zip(completions, solution, strict=True)]
        return [self.faults.get(n, score) for n, score in zip(level, paid, strict=True)]


def test_every_gold_answer_is_right_in_batches():
    echo, done = Echo(), []
    checked = check_reward(echo, ROWS, progress=done.append)
    assert checked.right == list(range(BATCH + 3)) and checked.is_fine
    assert echo.sizes == done == [BATCH, 3] * 2  # its own answers, then those of other rows
    assert checked.said[1].text == "**2**" and checked.said[1].reason == "level 1"


def test_wrong_unscored_and_missing_gold_answers_are_told_apart():
    checked = check_reward(Echo({1: 0.0, 2: None, 3: float("nan"), 4: "no gold", 5: 0.9}), ROWS[:7])
    assert (checked.right, checked.wrong) == ([0, 6], [1, 5])
    assert (checked.unscored, checked.no_gold, checked.raised) == ([2, 3], [4], [])
    assert not checked.is_fine


def test_unscored_gold_answers_are_no_failure_unless_all_are():
    assert check_reward(Echo({0: None}), ROWS[:2]).is_fine
    assert not check_reward(Echo({0: None, 1: None}), ROWS[:2]).is_fine
    assert check_reward(Echo({0: "no gold"}), ROWS[:1]).is_fine


def test_exception_is_told_with_its_row_and_the_others_are_scored():
    checked = check_reward(Echo({1: "raise"}), ROWS[:3])
    assert (checked.right, checked.raised) == ([0, 2], [1])
    assert checked.said[1].reason == "KeyError: 'lost'"
    assert not checked.is_fine


def test_failure_of_a_judge_leaves_its_row_unscored():
    checked = check_reward(Echo({1: "judge"}), ROWS[:3])
    assert (checked.right, checked.unscored, checked.raised) == ([0, 2], [1], [])
    assert checked.said[1].reason == "the judge is out" and checked.is_fine


def test_exception_in_gold_is_told_with_its_row():
    class Broken(Echo):
        def gold(self, row):
            return {0: "**1**"}[row["level"]]

    checked = check_reward(Broken(), ROWS[:2])
    assert (checked.right, checked.raised) == ([0], [1]) and not checked.is_fine


@pytest.mark.parametrize("text", [7, ["**1**"], b"**1**"])
def test_gold_answer_that_is_no_text_is_an_error_of_the_reward(text):
    class Numbers(Echo):
        def gold(self, row):
            return text

    checked = check_reward(Numbers(), ROWS[:1])
    assert checked.raised == [0] and not checked.is_fine
    assert checked.said[0].reason == (
        f"TypeError: gold gave the {type(text).__name__} {text!r}; expected text, or None if it knows none"
    )


@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError, GeneratorExit])
def test_reward_that_exits_has_raised(kind):
    class Exits(Echo):
        def gold(self, row):
            if row["level"] == 0:
                raise kind(0)
            return super().gold(row)

        def __call__(self, completions, level, **columns):
            if 1 in level:
                raise kind(0)
            return super().__call__(completions, level=level, **columns)

    checked = check_reward(Exits(), ROWS[:3])
    assert (checked.raised, checked.right) == ([0, 1], [2])
    assert checked.said[1].reason == f"{kind.__name__}: 0"


def test_async_reward_that_exits_has_raised_and_goes_on():
    async def exits(completions, level, **columns):
        await asyncio.sleep(0)
        if 0 in level:
            raise SystemExit(0)
        return [1.0] * len(completions)

    checked = check_reward(exits, ROWS[:2])
    assert checked.raised == [0] and checked.said[1].score == 1.0


def test_interrupt_from_the_keyboard_ends_the_check():
    def interrupted(completions, **columns):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_reward(interrupted, ROWS[:1])


def test_exception_without_text_is_told_by_its_kind():
    class Mute(Exception):
        def __str__(self):
            raise KeyError("no text")

    def mute(completions, **columns):
        raise Mute

    assert check_reward(mute, ROWS[:1]).said[0].reason == "Mute: (no text: its __str__ raised KeyError)"


def test_exception_that_comes_in_company_only_counts_for_all():
    def lonely(completions, **columns):
        if len(completions) > 1:
            raise RuntimeError("too many")
        return [1.0]

    checked = check_reward(lonely, ROWS[:3])
    assert checked.raised == [0, 1, 2] and checked.said[0].reason == "RuntimeError: too many"


@pytest.mark.parametrize(
    ("scores", "reason"),
    [([], "returned 0 rewards; expected a list of 1 numbers"), (["good"], "returned the str 'good' for completion 0")],
)
def test_reward_must_give_one_number_for_each_completion(scores, reason):
    checked = check_reward(lambda completions, **columns: scores, ROWS[:1])
    assert reason in checked.said[0].reason and checked.raised == [0]


def test_best_score_of_a_cost_is_zero():
    @reward(kind="cost")
    class Length(Echo):
        def __call__(self, completions, **columns):
            return [float(len(text) > 6) for text in completions]

    checked = check_reward(Length(), [ROWS[0], {**ROWS[1], "solution": "long"}])
    assert (checked.right, checked.wrong) == ([0], [1])


def test_gold_answer_that_equals_its_own_text_only_is_unread():
    def literal(completions, solution, **columns):
        return [1.0 if text == right else None for text, right in zip(completions, solution, strict=True)]

    literal.gold = lambda row: row["solution"]
    checked = check_reward(literal, ROWS[:2])
    assert (checked.right, checked.unread, checked.fooled) == ([0, 1], [0, 1], []) and not checked.is_fine


def test_unread_and_unscored_gold_answers_fail_together_and_pass_beside_one_that_is_read():
    def score(completions, solution, **columns):
        known = {"read": {"read": 1.0}.get, "copy": {"copy": 1.0}.get, "none": {}.get}
        return [
            0.0 if right == "read" and text != right else known[right](text)
            for text, right in zip(completions, solution, strict=True)
        ]

    score.gold = lambda row: row["solution"]
    rows = [{"prompt": "a", "solution": text} for text in ("copy", "none", "read")]
    checked = check_reward(score, rows)
    assert (checked.right, checked.unread, checked.unscored) == ([0, 2], [0], [1]) and checked.is_fine
    assert not check_reward(score, rows[:2]).is_fine


def test_reward_that_takes_any_answer_is_found_out():
    def generous(completions, **columns):
        return [1.0 for _ in completions]

    generous.gold = lambda row: row["solution"]
    rows = [{"prompt": "a", "solution": text} for text in ("1", "1", "2", "3")]
    # Row 0 has the answer of the row behind it.
    assert check_reward(generous, rows).fooled == [1, 2, 3]


def test_exception_for_the_answer_of_another_row_counts():
    def fussy(completions, solution, **columns):
        if completions != solution:
            raise KeyError(completions[0])
        return [1.0 for _ in completions]

    fussy.gold = lambda row: row["solution"]
    checked = check_reward(fussy, ROWS[:2])
    assert (checked.right, checked.raised) == ([0, 1], [0, 1]) and not checked.is_fine


def test_gold_sees_the_prompt_of_the_dataset():
    class Continuing:
        def gold(self, row):
            return row["prompt"] + "2"

        def __call__(self, prompts, completions, **columns):
            assert prompts == [[{"role": "user", "content": "Q: 1+1="}]]
            return [float(completion == [{"role": "assistant", "content": "1+1=2"}]) for completion in completions]

    row = {"prompt": [{"role": "user", "content": "Q: 1+1="}]}
    assert check(Continuing(), [row], [{"prompt": "1+1="}], is_chat=True).right == [0]


def test_function_gets_the_bare_answers_of_the_dataset_and_no_verdict():
    seen = []

    def length(completions, **columns):
        seen.extend(completions)
        return [len(text) for text in completions]

    checked = check_reward(length, [{"prompt": "a", "solution": 12}, {"prompt": "b", "solution": None}])
    assert seen == ["12", ""] and [said.score for said in checked.said] == [2.0, 0.0]
    assert not checked.has_gold and checked.is_fine


def test_reward_is_called_with_the_keywords_of_training():
    calls = []

    def spy(**given):
        given["log_metric"]("length", 1.0)
        calls.append(given)
        return [1.0]

    row = {
        "prompt": [{"role": "user", "content": "1+1="}],
        "solution": "two units",
        "tests": ["a"],
        "completion_ids": 0,
    }
    check_reward(spy, [row], is_chat=True)
    (given,) = calls
    assert isinstance(given.pop("trainer_state"), TrainerState)
    assert callable(given.pop("log_extra")) and callable(given.pop("log_metric"))
    assert given == {
        "prompts": [[{"role": "user", "content": "1+1="}]],
        "completions": [[{"role": "assistant", "content": "two units"}]],
        "completion_ids": [[0, 1]],
        "solution": ["two units"],
        "tests": [["a"]],
    }


def test_async_reward_keeps_its_event_loop():
    loops = set()

    async def slow(completions, **columns):
        await asyncio.sleep(0)
        loops.add(asyncio.get_running_loop())
        return [0.5] * len(completions)

    checked = check_reward(slow, ROWS)
    assert {said.score for said in checked.said} == {0.5} and len(loops) == 1
