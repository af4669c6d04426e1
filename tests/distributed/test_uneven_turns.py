"""Processes whose episodes have different numbers of turns."""

import pytest
from test_two_processes import launch


@pytest.mark.slow
@pytest.mark.parametrize("how", ["apart", "together"])
def test_processes_with_different_numbers_of_turns_train(how):
    assert launch(2, "uneven_turns.py", how).count("every process made its calls") == 2
