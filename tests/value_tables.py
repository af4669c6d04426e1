"""Completions with a critic's values as tables.

A completion is (turns, end): a turn is (reward, values of its tokens), reward None where unscored; end is the value
behind a completion that a limit ended, None for others. What must not matter holds a canary.
"""

import torch
from hypothesis import strategies as st
from turn_tables import close, table

from acpo_trl.advantages import TokenTable


def valued(completions, extra=0, canary=9.9, end_canary=9.9):
    """A padded table in float64, with an environment token before and after each turn."""
    turns = table([[reward for reward, _ in turns] for turns, _ in completions], extra=extra)
    turns = turns._replace(values=torch.where(turns.exists, turns.values, canary))
    num_tokens, state_values = torch.full(turns.values.shape, 7), torch.full_like(turns.values, canary)
    rows = [tokens_of(turns, canary) for turns, _ in completions]
    width = max(map(len, rows), default=0) + extra
    turn_ids = torch.full((len(rows), width), -1)
    values = torch.full((len(rows), width), canary, dtype=torch.float64)
    for i, (completion, _) in enumerate(completions):
        for k, (_, tokens) in enumerate(completion):
            num_tokens[i, k] = len(tokens)
            state_values[i, k] = tokens[0] if tokens else canary
        for t, (k, value) in enumerate(rows[i]):
            turn_ids[i, t], values[i, t] = k, value
    ends = [end for _, end in completions]
    return turns._replace(
        num_tokens=num_tokens,
        is_truncated=torch.tensor([end is not None for end in ends]),
        state_values=state_values,
        end_values=torch.tensor([end_canary if end is None else end for end in ends], dtype=torch.float64),
        tokens=TokenTable(turn_ids, turn_ids.clamp(min=0), values * 0, 1.0, values),
    )


def tokens_of(turns, canary):
    """(turn id, value) of each token of a completion."""
    laid_out = [(-1, canary)]
    for k, (_, tokens) in enumerate(turns):
        laid_out += [*((k, value) for value in tokens), (-1, canary)]
    return laid_out


def by_turn(entries, completions):
    """(N, K) as lists without turns that do not exist; nothing may stand there."""
    for row, (turns, _) in zip(entries, completions, strict=True):
        assert not row[len(turns) :].nan_to_num(nan=0.0).any()
    return [row[: len(turns)].tolist() for row, (turns, _) in zip(entries, completions, strict=True)]


def by_token(entries, turns):
    """(N, T) as lists of the tokens that the policy produced; nothing may stand elsewhere."""
    assert not entries[turns.tokens.turn_ids < 0].nan_to_num(nan=0.0).any()
    return [row[ids >= 0].tolist() for row, ids in zip(entries, turns.tokens.turn_ids, strict=True)]


numbers = st.floats(-2, 2).map(lambda x: round(x, 3))
completions_strategy = st.lists(
    st.tuples(st.lists(st.tuples(st.none() | numbers, st.lists(numbers, max_size=3)), max_size=4), st.none() | numbers),
    min_size=1,
    max_size=5,
)


def check_permuting(estimate, completions, random):
    """Permuting completions permutes what they get."""
    order = random.sample(range(len(completions)), len(completions))
    before, after = (estimate(valued(rows)) for rows in (completions, [completions[i] for i in order]))
    for one, other in zip(before, after, strict=True):
        assert other.tolist() == close(one[order].tolist(), nan_ok=True)


def check_canary(estimate, completions, canary):
    """What stands where nothing is read makes no difference."""
    clean, dirty = (estimate(valued(completions, 1, it, it)) for it in (0.0, canary))
    for one, other in zip(clean, dirty, strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=0, equal_nan=True)
