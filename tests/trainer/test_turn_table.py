"""The turns of recorded completions in trackers."""

import sys
from types import SimpleNamespace

import pytest
from recorded import record

from acpo_trl.records import TurnRewardEntry
from acpo_trl.trainer.turn_table import show_turns, turn_rows

ONE = record(
    num_tokens=4,
    num_turns=2,
    pieces=["a", "!", "b", "c"],
    turn_ids=[0, -1, 1, 1],
    credit=[0.5, None, 1.0, 3.0],
    turn_advantages=[0.25, None],
    turn_rewards=[TurnRewardEntry("outcome", [None, 1.0]), TurnRewardEntry("process", [0.5, None])],
)


def test_a_row_has_what_was_said_and_what_it_was_given():
    common = {"step": 0, "group": 0, "sample": 0}
    assert turn_rows([ONE]) == [
        {**common, "turn": 0, "text": "a", "reward_outcome": None, "reward_process": 0.5, "advantage": 0.25}
        | {"credit": 0.5, "tokens": 1},
        {**common, "turn": 1, "text": "bc", "reward_outcome": 1.0, "reward_process": None, "advantage": None}
        | {"credit": 2.0, "tokens": 2},
    ]


@pytest.fixture
def trackers(monkeypatch):
    """Stand-ins for the trackers, and what they were given."""
    given = {}
    for name in ("wandb", "trackio"):
        table = SimpleNamespace(run="open", Table=lambda dataframe: dataframe)
        table.log = lambda content, name=name: given.update({name: content})
        monkeypatch.setitem(sys.modules, name, table)
    mlflow = SimpleNamespace(log_table=lambda table, artifact_file: given.update(mlflow={artifact_file: table}))
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    return given


def test_each_tracker_of_the_run_that_can_show_a_table_gets_it(trackers):
    show_turns([ONE], ["tensorboard", "wandb", "mlflow"])
    assert list(trackers) == ["wandb", "mlflow"]
    assert trackers["wandb"]["credit/turns"]["text"].tolist() == ["a", "bc"]
    assert trackers["mlflow"]["credit/turns.json"]["advantage"][0] == 0.25
    show_turns([ONE], ["trackio"])
    assert "trackio" in trackers


def test_a_tracker_without_a_run_is_left_alone(trackers):
    sys.modules["wandb"].run = None
    show_turns([ONE], ["wandb"])
    show_turns([], ["mlflow"])
    assert trackers == {}
