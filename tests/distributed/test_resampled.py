"""Groups that teach nothing are replaced where they lie, in rounds of all processes."""

import pytest
from test_two_processes import launch


@pytest.mark.slow
def test_two_processes_replace_a_group_of_one_of_them():
    assert launch(2, "resampled.py").count("both processes went through the extra round") == 2
