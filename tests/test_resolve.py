"""Names and dotted paths."""

import math

import pytest

from acpo_trl.resolve import resolve


def test_names_come_from_the_table_and_paths_from_modules():
    assert resolve("one", {"one": 1}, "option") == 1
    assert resolve("math.pi", {"one": 1}, "option") == math.pi


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("on", "option 'on': no such name.*did you mean 'one'"),
        ("zzz", "write your own as a dotted path"),
        ("nowhere.thing", "option 'nowhere.thing': cannot be imported"),
        ("math.tau2", "cannot be imported"),
    ],
)
def test_errors_name_option_value_choices_and_remedy(name, message):
    with pytest.raises(ValueError, match=message) as error:
        resolve(name, {"one": 1}, "option")
    assert "['one']" in str(error.value)
