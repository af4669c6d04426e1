import math
import os
from collections import Counter, OrderedDict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acpo_trl.sandbox.inside.wire import Channel, pack, unpack


def refuse(*value):
    raise LookupError(value)


def crossed(value):
    return unpack(pack(value, refuse), refuse)


atoms = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
atoms |= st.complex_numbers(allow_nan=False) | st.fractions() | st.decimals(allow_nan=False)
hashable = st.recursive(atoms, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
plain = st.recursive(
    hashable,
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(hashable, inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.slow
@given(plain)
@settings(max_examples=40, deadline=None)
def test_plain_data_arrives_as_it_was(value):
    arrived = crossed(value)
    assert arrived == value
    assert type(arrived) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        math.inf,
        -0.0,
        "\ud800",
        "\0",
        (),
        [()],
        {(1, 2): [3]},
        {1: 2, "1": 3},
        deque([1]),
        range(3, 9, 2),
    ],
)
def test_edge_values_arrive_as_they_were(value):
    assert repr(crossed(value)) == repr(value)


def test_very_large_integers_arrive():
    assert crossed(-(10**5000)) == -(10**5000)


def test_nan_arrives():
    assert math.isnan(crossed(float("nan")))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (namedtuple("P", "x y")(1, 2), (1, 2)),
        (type("L", (list,), {"__eq__": lambda self, other: True})([1]), [1]),
        (type("I", (int,), {"__eq__": lambda self, other: True, "__hash__": int.__hash__})(4), 4),
    ],
)
def test_a_subclass_arrives_as_the_plain_type(value, expected):
    arrived = crossed(value)
    assert arrived == expected
    assert type(arrived) is type(expected)


def test_types_of_plain_data_cross_and_no_other_names_do():
    assert [crossed(kind) for kind in (int, str, list)] == [int, str, list]
    for message in ({"type": "type"}, {"type": "eval"}, {"builtin": "eval"}, {"object": 0}):
        with pytest.raises(LookupError):
            unpack(message, refuse)


def test_other_objects_are_referred():
    assert pack([object()], lambda value: {"object": 7}) == [{"object": 7}]
    assert unpack([{"object": 7}], lambda tag, place: (tag, place)) == [("object", 7)]


def test_a_list_that_contains_itself_is_refused():
    endless: list = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested too deeply"):
        pack(endless, refuse)


def test_exact_kinds_stay_apart():
    assert [type(crossed(value)) for value in (True, 1, 1.0, Fraction(1), Decimal(1))] == [
        bool,
        int,
        float,
        Fraction,
        Decimal,
    ]


@pytest.mark.parametrize("message", [b"", b"\0\0", b"\xff\xff\xff\xff", b"\0\0\0\1{", b"\0\0\0\7" + b"[" * 7])
def test_what_is_no_message_is_the_end(message):
    reading, writing = os.pipe()
    os.write(writing, message)
    os.close(writing)
    with pytest.raises(EOFError):
        Channel(reading, -1).receive()
    os.close(reading)
