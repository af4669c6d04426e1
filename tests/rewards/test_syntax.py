"""Code is parsed by one thread at a time."""

import ast
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from acpo_trl.rewards import syntax


def test_no_two_threads_parse_at_once(monkeypatch):
    """Up to Python 3.11.7 they can make each other fail: python/cpython#106905."""
    inside, most, original = [], [], ast.parse

    def slow(code):
        inside.append(threading.get_ident())
        most.append(len(inside))
        time.sleep(0.01)
        inside.remove(threading.get_ident())
        return original(code)

    monkeypatch.setattr(syntax.ast, "parse", slow)
    syntax.parse.cache_clear()
    with ThreadPoolExecutor(8) as threads:
        trees = list(threads.map(syntax.parse, [f"x = {number}" for number in range(16)]))
    assert [tree.body[0].value.value for tree in trees] == list(range(16))
    assert most == [1] * 16


@pytest.mark.parametrize("code", ["x =", "a\0b", "(" * 100_000, "-" * 100_000 + "1"])
def test_code_that_does_not_compile_has_no_tree(code):
    assert syntax.parse(code) is None
