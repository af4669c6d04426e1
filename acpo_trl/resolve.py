"""Look a choice up by name in a table, or import it by dotted path."""

import difflib
import importlib
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def resolve(name: str, table: Mapping[str, T], option: str) -> T:
    """Give the entry of `table` called `name`, or the object at the dotted path `name`.

    Args:
        name: a key of `table`, or `package.module.attribute`.
        table: the built-in choices.
        option: what the user sets, for the error message.

    Raises:
        ValueError: `name` is neither a key nor an importable path.
    """
    if name in table:
        return table[name]
    module, _, attribute = str(name).rpartition(".")
    if not module:
        near = difflib.get_close_matches(str(name), table, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "use a name from the list, or write your own as a dotted path."
        raise ValueError(f"{option} {name!r}: no such name; expected one of {sorted(table)} or a dotted path; {hint}")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{option} {name!r}: cannot be imported ({error}); expected one of {sorted(table)} or an importable "
            "`package.module.attribute`; check the spelling and that the package is installed or on PYTHONPATH."
        ) from error
