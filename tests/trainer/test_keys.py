"""Keys of states and actions are equal for equal ones, on every process."""

import os
import subprocess
import sys

import pytest

from acpo_trl.rollouts.check import RolloutRow
from acpo_trl.trainer.keys import stable_key, turn_keys


def row(prompt, ids, turn_ids):
    return RolloutRow(prompt, ids, [int(t >= 0) for t in turn_ids], turn_ids, None, [])


def test_states_are_known_by_what_was_shown_and_actions_by_what_was_said():
    one = row([1, 2], [5, 6, 30, 7, 31, 8], [0, 0, -1, 1, -1, 2])
    two = row([1, 2], [9, 30, 7, 32, 8], [0, -1, 1, -1, 2])
    (s1, s2), (a1, a2) = turn_keys([one, two], [3, 3], [[None] * 3] * 2)
    assert [x == y for x, y in zip(s1, s2, strict=True)] == [True, True, False]
    assert [x == y for x, y in zip(a1, a2, strict=True)] == [False, True, True]
    assert len({*s1, *a1}) == 6


def test_name_of_the_environment_is_the_state():
    states, _ = turn_keys([row([1], [5, 30, 6], [0, -1, 1])] * 2, [2, 2], [["a", "b"], ["b", None]])
    assert states[0][1] == states[1][0] == stable_key("b")
    assert states[1][1] == stable_key([30])


def test_turn_without_tokens_has_keys():
    states, actions = turn_keys([row([1], [5, 30], [0, -1])], [2], [[None, None]])
    assert states[0][1] == stable_key([])  # what is shown behind a last turn without tokens cannot be told from its end
    assert actions[0][1] == -1


@pytest.mark.slow
def test_key_of_a_text_does_not_depend_on_the_process():
    program = "from acpo_trl.trainer.keys import stable_key; print(stable_key('kitchen'))"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout == f"{stable_key('kitchen')}\n"
    assert 0 <= stable_key("kitchen") < 2**63
