"""The reward `code` on the shared cases, and on programs with known verdicts."""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import pytest

from acpo_trl.rewards.code import CodeReward
from acpo_trl.sandbox import Bubblewrap, SandboxError

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("ACPO_TRL_SHARED", ROOT.parent / "shared"))
CASES = SHARED / "cases" / "code.jsonl"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _bubblewrap_works():
    try:
        Bubblewrap().close()
    except SandboxError as error:
        pytest.skip(str(error))


def cases():
    return [json.loads(line) for line in CASES.read_text().splitlines()] if CASES.exists() else []


def columns_of(tests):
    """Give the dataset columns for the tests of a case."""
    columns = {"entry_point": tests.get("entry_point", "")}
    if tests["type"] == "stdio":
        columns["tests"] = [{"input": case["stdin"], "output": case["stdout"]} for case in tests["cases"]]
    elif tests["type"] == "call":
        columns["tests"] = tests["cases"]
    elif tests["type"] == "humaneval":
        columns |= {"test": tests["test"], "starter_code": tests["prompt"]}
    else:
        columns["test"] = tests["code"]
    return columns


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_shared_case(case, tmp_path, monkeypatch):
    for name, value in case.get("setup", {}).get("parent_env", {}).items():
        monkeypatch.setenv(name, value)
    canary = tmp_path / "canary"
    canary.write_text("x")
    programs = case["text"] if case["kind"] == "batch" else [case["text"]]
    programs = [text.replace("{CANARY_DIR}", str(tmp_path)).replace("{CANARY_FILE}", str(canary)) for text in programs]
    if case["kind"] != "response":
        programs = [f"`````python\n{program}\n`````" for program in programs]
    columns = {name: [value] * len(programs) for name, value in columns_of(case["tests"]).items()}
    reward = CodeReward(tolerance=case["tests"].get("float_tolerance", 0.0), num_workers=2)

    started = time.monotonic()
    scores = reward(programs, **columns)

    assert time.monotonic() - started < case.get("time_limit_s", 30.0)
    assert canary.exists()
    expected = case["expected"]
    if "scores" in expected:
        assert scores == expected["scores"]
    elif "score" in expected:
        assert scores == [expected["score"]]
    elif not expected.get("pass_allowed"):
        assert scores == [float(expected["pass"])]


@pytest.fixture(scope="module")
def benchmark():
    path = ROOT / "scripts" / "benchmark_code.py"
    spec = importlib.util.spec_from_file_location("benchmark_code", path)
    module = sys.modules["benchmark_code"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not module.SHARED.exists():
        pytest.skip("no shared data")
    return module


@pytest.mark.parametrize(
    ("name", "share"),
    [("humaneval", 1.0), ("humaneval_pro", 1.0), ("mbpp", 1.0), ("mbpp_pro", 1.0), ("responses", 0.99)],
)
def test_known_programs_get_their_known_verdicts(benchmark, name, share):
    sandbox = Bubblewrap()
    assert benchmark.check(name, sandbox) >= share
    sandbox.close()
