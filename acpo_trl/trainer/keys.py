"""Keys of states and actions: equal numbers for equal ones, the same on every process."""

from array import array
from collections.abc import Sequence
from hashlib import blake2b

from ..rollouts.check import RolloutRow, turn_spans


def stable_key(value: str | Sequence[int]) -> int:
    """A non-negative 63-bit number for a text or for token ids; Python's own hash of a text differs by process."""
    data = value.encode() if isinstance(value, str) else array("q", value).tobytes()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1


def turn_keys(
    rows: Sequence[RolloutRow], num_turns: Sequence[int], state_names: Sequence[Sequence[str | None]]
) -> tuple[list[list[int]], list[list[int]]]:
    """Keys of the state that each turn starts from, and of what the policy did there; -1 if it did not say a token.

    A state that the environment does not name is known by the tokens shown since the turn before, the prompt at first.

    Args:
        rows: completions.
        num_turns: K of each.
        state_names: what the environment calls the states, for each completion and turn.
    """
    states, actions = [], []
    for row, count, names in zip(rows, num_turns, state_names, strict=True):
        spans = {turn: (start, end) for turn, start, end in turn_spans(row.turn_ids)}
        row_states, row_actions, behind = [], [], 0
        for turn in range(count):
            start, end = spans.get(turn, (behind, behind))
            shown = row.prompt_ids if turn == 0 else row.completion_ids[behind:start]
            name = names[turn]
            row_states.append(stable_key(list(shown) if name is None else name))
            row_actions.append(stable_key(list(row.completion_ids[start:end])) if turn in spans else -1)
            behind = end
        states.append(row_states)
        actions.append(row_actions)
    return states, actions
