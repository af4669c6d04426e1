"""Completions with everything that an estimator may ask for, as tables.

What must not matter holds a canary, or a key that would match.
"""

from typing import NamedTuple

import torch
from hypothesis import strategies as st
from reference.turns import z
from turn_tables import table

from acpo_trl.advantages import TURN_ESTIMATORS, TokenTable
from acpo_trl.advantages.needs import advantages_of


class Token(NamedTuple):
    id: int = 5
    entropy: float = 0.5
    value: float = 0.0
    """What the critic expects before it."""


class Turn(NamedTuple):
    reward: float | None = None
    """None where nobody scored the turn."""
    tokens: tuple[Token, ...] = (Token(), Token())
    state: str = "a"
    action: str = "X"
    belief: float = -1.0
    contribution: float = 0.0
    is_valid: bool = True


class Completion(NamedTuple):
    turns: tuple[Turn, ...] = ()
    end: float | None = None
    """What the critic expects behind a completion that a limit ended; None for others."""


def facts(completions, size=None, extra=0, canary=9.9):
    """A padded table in float64, with an environment token before and after each turn."""
    turns = table([[turn.reward for turn in turns] for turns, _ in completions], size, extra)

    def of_turns(fact, filler):
        entries = torch.full(turns.values.shape, filler, dtype=torch.float64 if isinstance(filler, float) else None)
        for row, completion in zip(entries, completions, strict=True):
            for k, turn in enumerate(completion.turns):
                row[k] = fact(turn)
        return entries

    return turns._replace(
        values=turns.values.masked_fill(~turns.exists, canary),
        state_keys=of_turns(lambda turn: ord(turn.state), ord("a")),
        action_keys=of_turns(lambda turn: ord(turn.action) if turn.tokens else -1, ord("X")),
        num_tokens=of_turns(lambda turn: len(turn.tokens), 7),
        is_valid=of_turns(lambda turn: turn.is_valid, False),
        is_truncated=torch.tensor([end is not None for _, end in completions]),
        observations=[[5 * turn.state for turn in turns] + ["aaaaa"] for turns, _ in completions],
        beliefs=of_turns(lambda turn: turn.belief, canary),
        state_values=of_turns(lambda turn: turn.tokens[0].value if turn.tokens else canary, canary),
        end_values=torch.tensor([canary if end is None else end for _, end in completions], dtype=torch.float64),
        contributions=of_turns(lambda turn: turn.contribution, canary),
        tokens=token_table([turns for turns, _ in completions], extra, canary),
    )


def token_table(rows, extra, canary):
    """Tokens of rows of turns; the policy began sure of itself."""
    environment = (-1, Token(5, canary, canary))
    laid_out = [
        [environment, *(entry for k, turn in enumerate(row) for entry in (*((k, t) for t in turn.tokens), environment))]
        for row in rows
    ]
    width = max(map(len, laid_out), default=0) + extra
    padded = [row + [environment] * (width - len(row)) for row in laid_out]
    turn_ids, ids = (torch.tensor([[pick(entry) for entry in row] for row in padded]) for pick in (of_turn, of_id))
    entropies, values = (
        torch.tensor([[getattr(token, name) for _, token in row] for row in padded], dtype=torch.float64)
        for name in ("entropy", "value")
    )
    return TokenTable(turn_ids, ids, entropies, 0.2, values)


def of_turn(entry):
    return entry[0]


def of_id(entry):
    return entry[1].id


def by_turn(advantages, turns):
    """(N, K) or (N, T) as lists of the turns that exist, or of the tokens that the policy produced; 0 elsewhere."""
    is_there = turns.exists if advantages.shape == turns.values.shape else turns.tokens.turn_ids >= 0
    assert (advantages[~is_there] == 0).all()
    return [row[mask].tolist() for row, mask in zip(advantages, is_there, strict=True)]


def credit(name, completions, **options):
    """What the estimator of that name gives, as `by_turn` has it."""
    turns = facts(completions)
    return by_turn(advantages_of(TURN_ESTIMATORS[name](turns, **options)), turns)


def standardized(rows):
    """z-scores over the entries of all rows."""
    flat = iter(z([value for row in rows for value in row]))
    return [[next(flat) for _ in row] for row in rows]


numbers = st.sampled_from([0.0, 1.0, 0.3, -0.7, 0.25])
turns_strategy = st.builds(
    Turn,
    reward=st.none() | numbers,
    tokens=st.lists(st.builds(Token, st.integers(5, 6), st.sampled_from([0.1, 0.5, 0.9]), numbers), max_size=2).map(
        tuple
    ),
    state=st.sampled_from("ab"),
    action=st.sampled_from("XY"),
    belief=st.sampled_from([-4.0, -1.0, -0.5]),
    contribution=numbers,
    is_valid=st.booleans(),
)
completions_strategy = st.builds(Completion, st.lists(turns_strategy, max_size=3).map(tuple), st.none() | numbers)
tables = st.integers(1, 3).flatmap(
    lambda size: st.tuples(st.lists(completions_strategy, min_size=2 * size, max_size=2 * size), st.just(size))
)
"""Completions of two groups, and how many are in each."""
