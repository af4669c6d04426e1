"""Does a rollout keep the contract of docs/concepts/turns.md? Run on every batch before it is padded."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple


class RolloutError(ValueError):
    """A rollout that would train tokens nobody sampled, or leave out sampled ones."""


class RolloutRow(NamedTuple):
    """One completion as it goes into training."""

    prompt_ids: Sequence[int]
    completion_ids: Sequence[int]
    """(T,)"""
    action_mask: Sequence[int]
    """(T,), 1 for tokens that the policy produced."""
    turn_ids: Sequence[int]
    """(T,), -1 where the mask is 0."""
    log_probs: Sequence[float] | None
    cut_turns: Sequence[bool]
    """(K,), turns of which tokens behind a stop string were dropped; may be shorter."""
    num_spoken: int | None = None
    """How many turns have a token, by other evidence than the mask; None if there is none."""


def check_form(row: RolloutRow, index: int, vocab_size: int) -> None:
    """Raise RolloutError unless lengths agree, ids have an embedding, the mask is 0 or 1, and turns go upwards."""
    length = len(row.completion_ids)
    for name, values in (("mask", row.action_mask), ("turn ids", row.turn_ids), ("log-probabilities", row.log_probs)):
        if values is not None and len(values) != length:
            raise RolloutError(
                f"completion {index}: length mismatch, {len(values)} {name} for {length} tokens; expected one for each."
            )
    if not length:
        raise RolloutError(f"completion {index}: has no token; expected at least one, such as an EOS with mask 0.")
    last = 0
    for position, (token, action, turn) in enumerate(
        zip(row.completion_ids, row.action_mask, row.turn_ids, strict=True)
    ):
        where = f"completion {index}, position {position}"
        if not 0 <= token < vocab_size:
            raise RolloutError(f"{where}: id {token} has no embedding; expected 0 to {vocab_size - 1}.")
        if action not in (0, 1):
            raise RolloutError(f"{where}: mask is {action!r}; expected 1 (the policy's token) or 0.")
        if (turn >= 0) != bool(action):
            raise RolloutError(
                f"{where}: turn id {turn} where the mask is {action}; expected -1 exactly where it is 0."
            )
        if action and turn < last:
            raise RolloutError(f"{where}: turn order, turn {turn} behind turn {last}; expected turns to go upwards.")
        last = max(last, turn)


def check_count(row: RolloutRow, index: int) -> None:
    """Raise RolloutError unless the mask shows as many turns with tokens as were taken."""
    found = len(turn_spans(row.turn_ids))
    if row.num_spoken is not None and found != row.num_spoken:
        raise RolloutError(
            f"completion {index}: its mask shows {found} turns with tokens, but {row.num_spoken} were taken; expected "
            "1 for every token that the policy sampled, and 0 between turns."
        )


class Sampled:
    """What the policy sampled in a generation batch, by the tokens it had before it."""

    def __init__(self) -> None:
        self.calls: dict[tuple[int, ...], list[list[int]]] = defaultdict(list)

    def record(self, prompt_ids: Sequence[Sequence[int]], completion_ids: Sequence[Sequence[int]]) -> None:
        """Keep a generation call: for each row the tokens that the policy saw, and those it sampled."""
        for prompt, completion in zip(prompt_ids, completion_ids, strict=True):
            self.calls[tuple(prompt)].append(list(completion))

    def check(self, row: RolloutRow, index: int, decode: Callable[[Sequence[int]], str]) -> None:
        """Raise RolloutError unless each turn of the row is what the policy sampled behind exactly these tokens.

        The last turn may be shorter, if the row ends with it, and a cut one too.
        """
        length = len(row.completion_ids)
        for turn, start, end in turn_spans(row.turn_ids):
            trained = list(row.completion_ids[start:end])
            may_be_short = end == length or (turn < len(row.cut_turns) and row.cut_turns[turn])
            candidates = self.calls.get((*row.prompt_ids, *row.completion_ids[:start]))
            if candidates is None:
                raise RolloutError(
                    f"completion {index}, position {start}: the policy was never asked to continue the tokens before "
                    f"turn {turn}, which end with {decode([*row.prompt_ids, *row.completion_ids[:start]][-20:])!r}; "
                    "expected the ids that it saw, neither decoded and encoded again nor masked otherwise."
                )
            if not any(_matches(trained, sampled, may_be_short) for sampled in candidates):
                at = max(_common(trained, sampled) for sampled in candidates)
                nearest = max(candidates, key=lambda sampled: _common(trained, sampled))
                raise RolloutError(
                    f"completion {index}, position {start + at}: turn {turn} would train {trained[at : at + 8]} "
                    f"({decode(trained)!r}), but the policy sampled {nearest[at : at + 8]} ({decode(nearest)!r})."
                )


def turn_spans(turn_ids: Sequence[int]) -> list[tuple[int, int, int]]:
    """Give (turn, first position, position behind the last) of each run of equal turn ids that are not -1."""
    spans: list[tuple[int, int, int]] = []
    for position, turn in enumerate(turn_ids):
        if turn < 0:
            continue
        if spans and spans[-1][0] == turn and spans[-1][2] == position:
            spans[-1] = (turn, spans[-1][1], position + 1)
        else:
            spans.append((turn, position, position + 1))
    return spans


def _matches(trained: list[int], sampled: list[int], may_be_short: bool) -> bool:
    return trained == (sampled[: len(trained)] if may_be_short else sampled)


def _common(left: list[int], right: list[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
