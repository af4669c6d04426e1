"""Errors of reward functions name function and completion, and an unknown reward never becomes 0."""

import asyncio
import functools
import pickle

import numpy as np
import pytest
import torch

from acpo_trl.rewards import JudgeError, reward
from acpo_trl.trainer.guard import AsyncGuardedReward, guard

TEXTS = ["4", "zero", "8", "16"]


def inverse(completions, **columns):
    """Fails for completions that are no number."""
    return [1 / float(text) for text in completions]


async def async_inverse(completions, **columns):
    return inverse(completions)


def call(function, completions=TEXTS, on_error="raise", logged=None, **columns):
    logged = {} if logged is None else logged
    (guarded,) = guard([function], on_error)
    result = guarded(
        prompts=["p"] * len(completions),
        completions=completions,
        completion_ids=[[1]] * len(completions),
        trainer_state=None,
        log_extra=logged.__setitem__,
        log_metric=lambda name, value: None,
        **columns,
    )
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


def returns(value):
    def fixed(completions, **columns):
        return value

    return fixed


@pytest.mark.parametrize("function", [inverse, async_inverse])
def test_exception_stops_the_run_with_the_function_and_the_first_completion_that_causes_it(function):
    message = (
        f"reward function '{function.__name__}' raised ValueError: could not convert .*first for completion 1: 'zer"
    )
    with pytest.raises(RuntimeError, match=message) as caught:
        call(function)
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("function", [inverse, async_inverse])
def test_exception_leaves_only_its_own_completions_unscored_when_asked_for(function, caplog):
    logged = {}
    assert call(function, on_error="none", logged=logged) == [0.25, None, 0.125, 0.0625]
    assert f"reward function '{function.__name__}' failed for completions [1] of 4" in caplog.text
    (column,) = logged
    assert column == f"{function.__name__}_error"
    assert [bool(error) for error in logged[column]] == [False, True, False, False]
    assert "ValueError: could not convert string to float: 'zero'" in logged[column][1]


@pytest.mark.parametrize("error", [JudgeError("no answer"), ConnectionError("refused"), TimeoutError("30 s")])
def test_failure_of_a_judge_leaves_completions_unscored_by_default(error):
    def judged(completions, **columns):
        if "zero" in completions:
            raise error
        return [1.0 for _ in completions]

    assert call(judged) == [1.0, None, 1.0, 1.0]


def test_judge_that_is_down_is_not_asked_for_every_completion():
    asked = []

    def judged(completions, **columns):
        asked.append(len(completions))
        raise JudgeError("down")

    logged = {}
    assert call(judged, completions=["x"] * 10, logged=logged) == [None] * 10
    assert asked == [10, 1, 1, 1]
    assert logged["judged_error"] == ["JudgeError: down"] * 3 + ["not asked: the judge is down"] * 7


def test_failures_of_single_completions_do_not_silence_the_rest():
    texts = ["a", "b", "c", "d", "2"]
    assert call(inverse, completions=texts, on_error="none") == [None, None, None, None, 0.5]


def test_exception_of_the_whole_batch_is_told_from_one_of_a_completion():
    def compares(completions, **columns):
        if len(completions) > 1:
            raise KeyError("level")
        return [0.0]

    with pytest.raises(RuntimeError, match=r"'compares' raised KeyError: 'level' for 4 completions together, for none"):
        call(compares)
    assert call(compares, on_error="none") == [0.0] * 4


@pytest.mark.parametrize("on_error", ["raise", "none"])
@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "returned the NoneType None; expected a list of 4 numbers"),
        ([1.0, 0.0], "returned 2 rewards; expected a list of 4"),
        (1.0, "returned the float 1.0; expected a list"),
        ({"a": 1}, "returned the dict"),
        ("1111", "returned the str '1111'"),
        ({1.0, 2.0, 3.0, 4.0}, "returned the set"),
        ([10**400, 0.0, 0.0, 0.0], "returned the int 1000"),
        ([0.0, np.str_("1"), 0.0, 0.0], "returned the str_"),
        ([0.0, 0.0, float("-inf"), 0.0], "returned -inf for completion 2"),
        ([1.0, "0.5", 0.0, 0.0], "returned the str '0.5' for completion 1"),
        ([1.0, 0.0, [1.0], 0.0], r"returned the list \[1.0\] for completion 2"),
        ([1.0, 0.0, 0.0, 1j], "returned the complex 1j for completion 3"),
    ],
)
def test_result_of_wrong_form_always_stops_the_run(result, message, on_error):
    with pytest.raises(ValueError, match=f"reward function 'fixed' {message}"):
        call(returns(result), on_error=on_error)


@pytest.mark.parametrize(
    "result",
    [[True, None, 2, 0.5], np.array([1, np.nan, 2, 0.5]), torch.tensor([1, torch.nan, 2, 0.5]), (1, None, 2, 0.5)],
)
def test_numbers_of_every_type_are_taken(result):
    scores = call(returns(result))
    assert (scores[0], scores[2], scores[3]) == (1.0, 2.0, 0.5)
    assert scores[1] is None or np.isnan(scores[1])


def test_evidence_of_scored_completions_survives_the_failure_of_another():
    def explains(completions, log_extra, **columns):
        log_extra("length", [len(text) for text in completions])
        return inverse(completions)

    logged = {}
    call(explains, on_error="none", logged=logged)
    assert logged["length"] == [1, None, 1, 2]


def test_evidence_of_wrong_length_stops_the_run():
    def explains(completions, log_extra, **columns):
        log_extra("length", [1])
        return [0.0] * len(completions)

    with pytest.raises(ValueError, match="reward function 'explains' logged 1 values in 'length'; expected 4"):
        call(explains)


def test_each_completion_keeps_its_columns_when_scored_alone():
    def scaled(completions, factor, environments, **columns):
        assert len(factor) == len(environments) == len(completions)
        return [f / float(text) for f, text in zip(factor, completions, strict=True)]

    assert call(scaled, on_error="none", factor=[1, 2, 4, 8], environments=list("abcd")) == [0.25, None, 0.5, 0.5]


def test_name_label_and_kind_of_call_stay():
    @reward(kind="cost", weight=0.5)
    async def slow(completions, **columns):
        return [0.0]

    (guarded,) = guard([slow], "raise")
    assert isinstance(guarded, AsyncGuardedReward)
    assert (guarded.__name__, guarded.declaration.kind, guarded.declaration.weight) == ("slow", "cost", 0.5)
    assert guard([functools.partial(inverse, x=1)], "raise")[0].__name__ == "inverse"


def test_function_named_like_a_kind_does_not_share_its_log_column():
    def cost(completions, **columns):
        return [0.0]

    assert guard([cost], "raise")[0].__name__ == "cost_reward"


def test_guarded_reward_can_be_pickled():
    (guarded,) = pickle.loads(pickle.dumps(guard([inverse], "none")))
    assert (guarded.function, guarded.on_error) == (inverse, "none")


def test_reward_models_and_their_names_are_left_alone():
    model = torch.nn.Linear(1, 1)
    assert guard(["a/model", model], "raise") == ["a/model", model]


class TimeLimit(BaseException):
    """As math-verify's, which is no Exception."""


class Untold(Exception):
    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize("error", [TimeLimit("30 s"), Untold()])
def test_errors_of_every_type_are_told_apart(error):
    def judged(completions, **columns):
        if "zero" in completions:
            raise error
        return [1.0 for _ in completions]

    assert call(judged, on_error="none") == [1.0, None, 1.0, 1.0]
    with pytest.raises(RuntimeError, match=f"reward function 'judged' raised {type(error).__name__}.*completion 1"):
        call(judged)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_program_is_no_error_of_a_reward(error):
    def stops(completions, **columns):
        raise error

    with pytest.raises(error):
        call(stops, on_error="none")


@pytest.mark.parametrize(
    "log",
    [
        lambda extra, metric: extra(5, [1] * 4),
        lambda extra, metric: metric("b", "x"),
        lambda extra, metric: metric(1, 1),
    ],
)
def test_evidence_that_trl_cannot_log_names_the_function(log):
    def logs(completions, log_extra, log_metric, **columns):
        log(log_extra, log_metric)
        return [0.0] * len(completions)

    with pytest.raises(ValueError, match="reward function 'logs' logged"):
        call(logs)
