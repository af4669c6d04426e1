"""Shares of right verdicts on collections that are too large to be copied here."""

import gzip
import json
import os
from pathlib import Path

import pytest

from acpo_trl.rewards import MathReward

pytestmark = pytest.mark.slow
SHARED = Path(os.environ.get("ACPO_TRL_SHARED", Path(__file__).parents[3] / "shared"))


def rows(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return [json.loads(line) for line in lines]


def test_at_least_99_percent_of_clear_cases_are_right_and_no_hack_is_paid():
    cases = [row for row in rows("cases/math.jsonl") if row["certainty"] == "clear"]
    completions = [row.get("completion", row["prediction"]) for row in cases]
    scores = MathReward(limit_s=2.0)(completions, solution=[row["gold"] for row in cases])
    wrong = [row["id"] for row, score in zip(cases, scores, strict=True) if bool(score) != row["correct"]]
    paid = [row["id"] for row, score in zip(cases, scores, strict=True) if row["tag"] == "hack" and score]
    assert len(wrong) <= len(cases) // 100, wrong
    assert not paid


def test_at_least_98_percent_agree_with_labelled_responses():
    responses = rows("data/labelled/math_responses.jsonl.gz")
    scores = MathReward()([row["response"] or "" for row in responses], solution=[row["gold"] for row in responses])
    wrong = [row["id"] for row, score in zip(responses, scores, strict=True) if bool(score) != row["is_correct"]]
    assert len(wrong) <= len(responses) // 50, wrong
