"""What an estimator was given to know."""

from typing import Any

from .needs import NEEDS
from .table import TurnRewards

KEYS = (
    "(N, K) integers; the trainer gives them, from the environment's names of states, else from the tokens shown and "
    "sampled"
)
SOURCES = {**NEEDS, "state_keys": KEYS, "action_keys": KEYS}


def given(turns: TurnRewards, name: str) -> Any:
    """The table's entry called `name`.

    Raises:
        ValueError: the table has none.
    """
    entry = getattr(turns, name)
    if entry is None:
        what = f": {SOURCES[name]}" if name in SOURCES else ""
        raise ValueError(
            f"{name} None: the estimator cannot work without; expected what TurnRewards says{what}; the trainer gives "
            f"it; to a table of your own pass TurnRewards(..., {name}=...)."
        )
    return entry
