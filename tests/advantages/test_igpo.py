"""IGPO: the worked numbers, the naive reference, where gains go, and edge cases."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import progress as naive
from turn_tables import as_lists, close, table

from acpo_trl.advantages import igpo, outcome
from acpo_trl.advantages.igpo import information_gains

BELIEFS = [[-4.0, -1.5, -1.2], [-4.0, -3.2, -3.9]]
CANARY = 9.9

PROBABILITY = {"gain": "prob"}
JOINT = {"normalization": "joint"}
OPTIONS = [({}, {}), (PROBABILITY | JOINT, {"log": False, "joint": True}), (JOINT, {"joint": True})]
by_option = pytest.mark.parametrize(("options", "naive_options"), OPTIONS, ids=["default", "first form", "log joint"])


def believing(episodes, size=None, extra=0):
    """A padded table in float64, with values that must not matter where nothing exists."""
    turns = table(naive_rewards(episodes), size, extra)
    beliefs = torch.full(turns.values.shape, CANARY, dtype=torch.float64)
    num_tokens = torch.full(turns.values.shape, 7)
    for i, episode in enumerate(episodes):
        for k, turn in enumerate(episode):
            beliefs[i, k] = torch.nan if turn["belief"] is None else turn["belief"]
            num_tokens[i, k] = turn["tokens"]
    return turns._replace(beliefs=beliefs, num_tokens=num_tokens)


def naive_rewards(episodes):
    return [naive.rewards(episode) for episode in episodes]


def episodes_of(beliefs, outcomes):
    """The outcome on the last turn; every turn has tokens."""
    return [
        [{"belief": b, "reward": reward if k == len(row) - 1 else None, "tokens": 1} for k, b in enumerate(row)]
        for row, reward in zip(beliefs, outcomes, strict=True)
    ]


turns_strategy = st.fixed_dictionaries(
    {
        "belief": st.none() | st.floats(-6, 0).map(lambda x: round(x, 2)),
        "reward": st.none() | st.sampled_from([0.0, 1.0, 0.3, -0.7]),
        "tokens": st.sampled_from([0, 1, 5]),
    }
)
episode_tables = st.integers(1, 4).flatmap(
    lambda size: st.tuples(
        st.lists(st.lists(turns_strategy, max_size=4), min_size=2 * size, max_size=2 * size), st.just(size)
    )
)


@pytest.mark.slow
@by_option
@settings(max_examples=60, deadline=None)
@given(case=episode_tables, extra=st.integers(0, 2), gamma=st.sampled_from([1.0, 0.5]))
def test_igpo_equals_the_naive_one_whatever_stands_where_nothing_exists(options, naive_options, case, extra, gamma):
    episodes, size = case
    advantages = igpo(believing(episodes, size, extra), gamma=gamma, **options)
    expected = naive.igpo(episodes, size, gamma=gamma, **naive_options)
    assert as_lists(advantages, naive_rewards(episodes)) == close(expected, abs=1e-7)


@by_option
@settings(max_examples=20, deadline=None)
@given(case=episode_tables, random=st.randoms())
def test_permuting_a_group_permutes_its_advantages(options, naive_options, case, random):
    episodes, size = case
    order = random.sample(range(size), size) + random.sample(range(size, 2 * size), size)
    before, after = (igpo(believing(rows, size), **options) for rows in (episodes, [episodes[i] for i in order]))
    assert after.tolist() == close(before[order].tolist(), abs=1e-7)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(st.floats(-6, 0), min_size=3, max_size=3), min_size=2, max_size=4),
    st.floats(-3, 3),
    st.floats(-3, 3),
)
def test_neither_the_first_belief_nor_the_level_of_outcomes_matters(beliefs, shift, by):
    outcomes = [0.5 * i for i in range(len(beliefs))]
    one = igpo(believing(episodes_of(beliefs, outcomes)))
    other = igpo(
        believing(episodes_of([[b + shift for b in row] for row in beliefs], [reward + by for reward in outcomes]))
    )
    assert torch.allclose(one, other, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-6, 0), st.sampled_from([0, 3])).map(
            lambda pair: {"belief": pair[0], "reward": 1.0, "tokens": pair[1]}
        ),
        min_size=1,
        max_size=6,
    )
)
def test_gains_telescope_to_the_change_of_belief_even_through_turns_without_tokens(episode):
    episode[0]["tokens"] = 2
    gains = information_gains(believing([episode]))
    assert gains.nansum().item() == pytest.approx(episode[-1]["belief"] - episode[0]["belief"], abs=1e-9)


@pytest.mark.parametrize(
    ("pair", "gain", "probability_gain"), [([-4.0, -1.5], 2.5, 0.204815), ([-2.0, -3.2], -1.2, -0.0945731)]
)
def test_gains_of_the_worked_example(pair, gain, probability_gain):
    turns = believing(episodes_of([pair], [1.0]))
    assert information_gains(turns)[0, 0].item() == pytest.approx(gain)
    assert information_gains(turns, "prob")[0, 0].item() == pytest.approx(probability_gain, abs=1e-6)


@pytest.mark.parametrize(
    ("gain", "normalization", "gamma", "expected"),
    [
        ("prob", "joint", 0.0, [[-0.0259505, -0.378887, 2.188241], [-0.533753, -0.653395, -0.596256]]),
        ("prob", "joint", 1.0, [[1.783404, 1.809354, 2.188241], [-1.783404, -1.24965, -0.596256]]),
        ("log", "separate", 0.0, [[1.532293, -0.366887, 0.999998], [0.0647448, -1.230151, -0.999998]]),
        ("log", "separate", 1.0, [[2.165404, 0.633111, 0.999998], [-2.165404, -2.230149, -0.999998]]),
    ],
)
def test_igpo_has_the_worked_numbers(gain, normalization, gamma, expected):
    turns = believing(episodes_of(BELIEFS, [1.0, 0.0]))
    assert igpo(turns, gain=gain, normalization=normalization, gamma=gamma).tolist() == close(expected, abs=1e-5)


def test_log_gains_drown_the_outcome_if_normalised_jointly():
    answer, search = (
        igpo(believing(episodes_of(BELIEFS, [1.0, 0.0])), gain="log", normalization="joint", gamma=0.0)[0, k].item()
        for k in (2, 0)
    )
    assert (answer, search) == pytest.approx((0.351911, 1.860101), abs=1e-5)


def test_gain_of_exactly_zero_does_not_merge_turns():
    turns = believing(episodes_of([[-2.0, -2.0, -1.0, -1.0], [-2.0, -3.0, -3.0, -3.0]], [1.0, 0.0]))
    assert information_gains(turns)[:, :3].tolist() == [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    scale = (1 / 3 + 1e-8) ** 0.5 + 1e-6
    gains = [[0.0, 1 / scale, 0.0, 0.999998], [-1 / scale, 0.0, 0.0, -0.999998]]
    assert igpo(turns, gamma=0.0).tolist() == close(gains, abs=1e-5)


def test_gain_of_a_turn_without_tokens_goes_to_the_turn_before():
    episodes = episodes_of([[-4.0, -3.0, -1.0, -1.0], [-4.0] * 4], [1.0, 0.0])
    episodes[0][1]["tokens"] = 0
    turns = believing(episodes)
    assert information_gains(turns)[0].nan_to_num(CANARY).tolist() == [3.0, CANARY, 0.0, CANARY]
    assert igpo(turns)[0, 1] == 0


def test_nobody_earned_the_gain_before_the_first_token():
    episodes = episodes_of([[-4.0, -3.0, -1.0]], [1.0])
    episodes[0][0]["tokens"] = 0
    assert information_gains(believing(episodes))[0].nan_to_num(CANARY).tolist() == [CANARY, 2.0, CANARY]


def test_outcome_of_a_last_turn_without_tokens_reaches_the_turns_before():
    episodes = episodes_of([[-4.0, -4.0], [-4.0, -4.0]], [1.0, 0.0])
    for episode in episodes:
        episode[1]["tokens"] = 0
    assert igpo(believing(episodes)).tolist() == close([[0.999998, 0.0], [-0.999998, 0.0]], abs=1e-5)


@by_option
def test_unknown_belief_is_no_gain_of_zero(options, naive_options):
    beliefs = [[-4.0, -1.0, -0.5, 0.0], [-4.0, -3.0, -2.0, 0.0]]
    unknown = [*beliefs, [None, None, None, None]]
    joined = igpo(believing(episodes_of(unknown, [1.0, 0.0, 0.5])), **options, gamma=0.0)
    gains = [row[:3] for row in joined.tolist()]
    assert gains[2] == [0.0, 0.0, 0.0]
    if not options:
        assert gains[:2] == close(igpo(believing(episodes_of(beliefs, [1.0, 0.0])), gamma=0.0)[:, :3].tolist())


def test_tiny_gains_in_probability_stay_tiny():
    turns = believing(episodes_of([[-18.0, -14.0, -14.0], [-18.0] * 3], [1.0, 0.0]))
    assert igpo(turns, gain="prob", gamma=0.0)[:, :2].abs().max() < 0.01


@by_option
@pytest.mark.parametrize(
    ("beliefs", "outcomes"),
    [
        ([[-4.0, -1.0, -2.0]], [1.0]),
        ([[-4.0, -1.0, -2.0], [-3.0, -2.0]], [1.0, None]),
        ([[-4.0, -3.9, -3.8]] * 2, [0.1, 0.1]),
        ([[], []], [None, None]),
    ],
    ids=["group of one", "one scored", "zero spread", "no turn"],
)
def test_nothing_to_compare_with_gives_no_advantage(options, naive_options, beliefs, outcomes):
    advantages = igpo(believing(episodes_of(beliefs, outcomes)), **options)
    if options and outcomes[0] == 0.1:  # gains and outcomes are compared with each other
        assert advantages[0].tolist() == advantages[1].tolist()
    else:
        assert advantages.abs().sum() < 1e-9


@pytest.mark.parametrize("options", [{}, PROBABILITY | JOINT])
def test_single_turns_have_their_outcome_only(options):
    turns = believing(episodes_of([[-4.0], [-1.0], [-2.0], [-3.0]], [1.0, 0.5, 0.0, 0.0]))
    advantages = igpo(turns, **options)
    grpo = outcome(turns)
    assert (advantages / grpo).flatten().tolist() == pytest.approx([(4 / 3) ** 0.5] * 4, rel=1e-3)  # of the population


def test_truncated_completion_is_judged_at_its_last_turn():
    turns = believing(episodes_of([[-4.0, -4.0, -4.0], [-4.0, -4.0]], [1.0, 0.0]))
    assert igpo(turns).tolist() == close([[0.999998] * 3, [-0.999998, -0.999998, 0.0]], abs=1e-5)


@pytest.mark.parametrize("options", [{"gain": "logs"}, {"normalization": "group"}])
def test_unknown_choice_is_refused(options):
    with pytest.raises(ValueError, match=r"'(logs|group)': no such choice; expected one of"):
        igpo(believing(episodes_of(BELIEFS, [1.0, 0.0])), **options)


@pytest.mark.parametrize("name", ["beliefs", "num_tokens"])
def test_missing_field_is_refused_with_what_gives_it(name):
    turns = believing(episodes_of(BELIEFS, [1.0, 0.0]))._replace(**{name: None})
    with pytest.raises(ValueError, match=rf"{name} None: .*the trainer gives it.*TurnRewards\(\.\.\., {name}=\.\.\.\)"):
        igpo(turns)
