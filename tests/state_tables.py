"""Episodes of (state, action, reward) as tables with keys. Action None: no tokens; reward None: unscored."""

import torch
from hypothesis import strategies as st
from turn_tables import table


def rewards_of(episodes):
    return [[reward for _, _, reward in episode] for episode in episodes]


def keyed(episodes, size=None, extra=0, offset=0):
    """A padded table in float64; another offset gives the same states and actions other keys."""
    turns = table(rewards_of(episodes), size, extra)
    names = sorted({str(name) for episode in episodes for turn in episode for name in turn[:2]})
    states, actions = (torch.full(turns.values.shape, -1) for _ in range(2))
    for i, episode in enumerate(episodes):
        for k, (state, action, _) in enumerate(episode):
            states[i, k] = 7 * names.index(str(state)) + offset
            actions[i, k] = -1 if action is None else 7 * names.index(str(action)) + offset
    return turns._replace(state_keys=states, action_keys=actions)


def episodes_of(texts, outcomes):
    """Episodes such as "aX bY", a state and an action for each turn; the outcome belongs to the last turn."""
    return [
        [(turn[0], turn[1:], outcome if k == len(text.split()) - 1 else None) for k, turn in enumerate(text.split())]
        for text, outcome in zip(texts, outcomes, strict=True)
    ]


turns_strategy = st.tuples(
    st.sampled_from("abc"), st.sampled_from(["X", "Y", None]), st.none() | st.sampled_from([0.0, 1.0, 0.3, -0.7])
)
episode_tables = st.integers(1, 4).flatmap(
    lambda size: st.tuples(
        st.lists(st.lists(turns_strategy, max_size=4), min_size=2 * size, max_size=2 * size), st.just(size)
    )
)
