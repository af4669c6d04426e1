"""Python code as a tree."""

import ast
import threading
from functools import lru_cache

# Up to Python 3.11.7, threads that parse at once can make each other fail with a SystemError (python/cpython#106905).
_ALONE = threading.Lock()


@lru_cache(maxsize=32)
def parse(code: str) -> ast.Module | None:
    """The tree of the code; None if it does not compile. Any number of threads may call this at once."""
    try:
        with _ALONE:
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
