"""SPA-RL: the worked numbers, the naive reference, what contributions have to add up to, and edge cases."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import progress as naive
from turn_tables import as_lists, close, table

from acpo_trl.advantages import spa_rl
from acpo_trl.advantages.spa_rl import fused_rewards

CANARY = 9.9
OPTIONS = [
    {},
    {"rescale": True, "grounding": "fused"},
    {"baseline": "group", "gamma": 0.9, "alpha": 0.5, "beta": 0.2},
    {"share_rest": True},
]
by_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


def progressing(episodes, size=None, extra=0):
    """A padded table in float64, with values that must not matter where nothing exists."""
    turns = table(naive_rewards(episodes), size, extra)
    contributions = torch.full(turns.values.shape, CANARY, dtype=torch.float64)
    num_tokens, is_valid = torch.full(turns.values.shape, 7), torch.ones(turns.values.shape, dtype=torch.bool)
    for i, episode in enumerate(episodes):
        for k, turn in enumerate(episode):
            contributions[i, k], num_tokens[i, k] = turn["contribution"], turn["tokens"]
            is_valid[i, k] = turn["valid"]
    return turns._replace(contributions=contributions, num_tokens=num_tokens, is_valid=is_valid)


def naive_rewards(episodes):
    return [naive.rewards(episode) for episode in episodes]


def episode_of(contributions, reward, valid=None, tokens=None):
    """The reward on the last turn."""
    length = len(contributions)
    return [
        {"contribution": c, "valid": v, "tokens": t, "reward": reward if k == length - 1 else None}
        for k, (c, v, t) in enumerate(zip(contributions, valid or [True] * length, tokens or [3] * length, strict=True))
    ]


WORKED = episode_of([0.05, 0.0, 0.3, 0.45, 0.2], 1.0, valid=[True, False, True, True, True])

turns_strategy = st.fixed_dictionaries(
    {
        "contribution": st.floats(-1, 1).map(lambda x: round(x, 2)),
        "reward": st.none() | st.sampled_from([0.0, 1.0, 0.3, -0.7]),
        "tokens": st.sampled_from([0, 1, 5]),
        "valid": st.booleans(),
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
@given(case=episode_tables, extra=st.integers(0, 2))
def test_spa_rl_equals_the_naive_one_whatever_stands_where_nothing_exists(options, case, extra):
    episodes, size = case
    advantages, targets = spa_rl(progressing(episodes, size, extra), **options)
    expected, expected_targets = naive.spa_rl(episodes, size, **options)
    assert as_lists(advantages, naive_rewards(episodes)) == close(expected, abs=1e-7)
    assert targets.tolist() == pytest.approx([float("nan") if t is None else t for t in expected_targets], nan_ok=True)


@by_option
@settings(max_examples=20, deadline=None)
@given(case=episode_tables, random=st.randoms())
def test_permuting_a_group_permutes_its_advantages(options, case, random):
    episodes, size = case
    order = random.sample(range(size), size) + random.sample(range(size, 2 * size), size)
    before, after = (spa_rl(progressing(rows, size), **options)[0] for rows in (episodes, [episodes[i] for i in order]))
    assert after.tolist() == close(before[order].tolist(), abs=1e-7)


def test_fused_rewards_of_the_worked_example():
    turns = progressing([WORKED])
    assert fused_rewards(turns)[0].tolist() == pytest.approx([0.55, 0.0, 0.8, 0.95, 0.7])
    assert fused_rewards(turns, beta=0.0, rescale=True)[0].tolist() == pytest.approx([0.05, 0.0, 0.3, 0.45, 0.2])


def test_rewards_to_go_of_the_worked_example():
    """[3, 2.45, 2.45, 1.65, 0.7] beside a completion that gets nothing: the difference at each turn, standardized."""
    nothing = episode_of([0.0] * 5, 0.0, valid=[False] * 5)
    advantages, targets = spa_rl(progressing([WORKED, nothing]), grounding="fused")
    expected = [gap / 2 / (gap / 2**0.5 + 1e-4) for gap in (3.0, 2.45, 2.45, 1.65, 0.7)]
    assert advantages.tolist() == close([expected, [-a for a in expected]], abs=1e-5)
    assert targets.tolist() == [1.0, 0.0]


def test_an_action_that_could_not_be_carried_out_blames_its_own_turn_alone_unless_bonuses_are_fused():
    groups = [WORKED, episode_of([0.2, 0.1, 0.0, 0.1, 0.0], 0.0)]
    valid = [[dict(turn, valid=True) for turn in episode] for episode in groups]
    change = spa_rl(progressing(groups))[0] - spa_rl(progressing(valid))[0]
    assert change.tolist() == close([[0.0, -0.5, 0.0, 0.0, 0.0], [0.0] * 5])
    fused = spa_rl(progressing(groups), grounding="fused")[0] - spa_rl(progressing(valid), grounding="fused")[0]
    assert fused[0, 0].abs() > 1e-5
    assert fused[1, 0].abs() > 1e-5


def test_targets_are_what_exact_contributions_add_up_to():
    turns = progressing([WORKED, episode_of([0.1, -0.4], -0.3)])
    assert spa_rl(turns)[1].tolist() == pytest.approx(
        [turns.contributions[0].sum().item(), turns.contributions[1, :2].sum().item()]
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=5), st.floats(-2, 2))
def test_rescaled_contributions_add_up_to_the_reward_unless_their_sum_is_nothing(contributions, reward):
    fused = fused_rewards(progressing([episode_of(contributions, reward)]), beta=0.0, rescale=True)
    can = abs(sum(contributions)) > 1e-4
    assert fused.sum().item() == pytest.approx(reward if can else sum(contributions), abs=1e-9)


def test_an_estimator_that_has_learned_nothing_shares_the_reward_if_the_rest_is_shared():
    good, bad = (episode_of([0.0, 0.0], reward) for reward in (1.0, 0.0))
    assert fused_rewards(progressing([good, bad]), beta=0.0, share_rest=True).tolist() == [[0.5, 0.5], [0.0, 0.0]]
    assert (spa_rl(progressing([good, bad]))[0] == 0).all()
    advantages = spa_rl(progressing([good, bad]), share_rest=True)[0]
    assert (advantages[0] > 0.7).all()
    assert (advantages[1] < -0.7).all()


def test_turn_without_tokens_is_dropped_and_the_others_absorb_its_share():
    episode = episode_of([0.2, 0.5, 0.3], 1.0, tokens=[3, 0, 3])
    rewards = fused_rewards(progressing([episode]), rescale=True)
    assert rewards[0].nan_to_num(CANARY).tolist() == pytest.approx([0.4 + 0.5, CANARY, 0.6 + 0.5])
    advantages, _ = spa_rl(progressing([episode, episode_of([0.0, 0.9, 0.0], 0.0)]), baseline="group")
    assert advantages[0, 1] == 0


@pytest.mark.parametrize("baseline", ["turn", "group"])
def test_completion_without_a_turn_to_learn_from_has_no_target_and_does_not_count(baseline):
    nothing = [[], episode_of([0.4], 1.0, tokens=[0]), episode_of([0.7, 0.7], None)]
    alone = [WORKED, episode_of([0.1, 0.1], 0.2)]
    advantages, targets = spa_rl(progressing([*alone, *nothing]), baseline=baseline)
    assert targets[2:].isnan().all()
    assert (advantages[2:] == 0).all()
    assert torch.equal(advantages[:2], spa_rl(progressing(alone), baseline=baseline)[0])


def test_truncated_completion_is_fitted_to_the_reward_it_got():
    turns = progressing([episode_of([0.3, 0.3], 0.4), WORKED])
    assert spa_rl(turns)[1].tolist() == [0.4, 1.0]
    assert fused_rewards(turns, beta=0.0, rescale=True)[0, :2].tolist() == pytest.approx([0.2, 0.2])


def test_completions_that_contribute_alike_have_no_advantage():
    turns = progressing([episode_of([0.1, 0.2], 1.0), episode_of([0.1, 0.2], 0.0)])
    assert (spa_rl(turns)[0] == 0).all()


def test_baseline_of_the_turn_does_not_praise_first_turns():
    better, worse = episode_of([0.3, 0.0], 0.3), episode_of([0.2, 0.5], 0.7)
    turns = progressing([better, worse])
    assert (spa_rl(turns)[0][0] < 0).all()
    assert spa_rl(turns, baseline="group")[0][0, 0] > spa_rl(turns, baseline="group")[0][0, 1]
    assert spa_rl(turns)[0][:, 0].sum().item() == pytest.approx(0.0)


def test_policy_learns_nothing_through_contributions():
    contributions = torch.tensor([[0.3, 0.1], [0.2, 0.4]], requires_grad=True)
    turns = progressing([episode_of([0.0, 0.0], 1.0)] * 2)._replace(contributions=contributions)
    assert not spa_rl(turns)[0].requires_grad


@pytest.mark.parametrize("name", ["contributions", "num_tokens", "is_valid"])
def test_missing_field_is_refused_with_what_gives_it(name):
    turns = progressing([WORKED, WORKED])._replace(**{name: None})
    with pytest.raises(ValueError, match=rf"{name} None: .*the trainer gives it.*TurnRewards\(\.\.\., {name}=\.\.\.\)"):
        spa_rl(turns)


def test_unknown_baseline_is_refused():
    with pytest.raises(ValueError, match="baseline 'batch': no such choice; expected one of"):
        spa_rl(progressing([WORKED, WORKED]), baseline="batch")
