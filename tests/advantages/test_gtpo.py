"""GTPO, GRPO-S and trajectory GTPO: the worked numbers, the naive references, and edge cases."""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import gtpo as naive
from turn_tables import close, table

from acpo_trl.advantages import TokenTable, grpo_s, gtpo, gtpo_trajectory
from acpo_trl.advantages.gtpo import shaped_rewards
from acpo_trl.advantages.gtpo_trajectory import conflicts

CANARY = 9.9
SEPARATE = {"normalization": "separate"}
ESTIMATORS = {
    "gtpo": (gtpo, naive.gtpo),
    "gtpo, separate": (
        lambda turns: gtpo(turns, alpha2=0.5, entropy_floor=0.1, **SEPARATE),
        lambda rows, size: naive.gtpo(rows, size, alpha2=0.5, floor=0.1, joint=False),
    ),
    "grpo_s": (grpo_s, naive.grpo_s),
    "grpo_s, separate": (
        lambda turns: grpo_s(turns, **SEPARATE),
        lambda rows, size: naive.grpo_s(rows, size, joint=False),
    ),
    "gtpo_trajectory": (gtpo_trajectory, lambda rows, size: naive.gtpo_trajectory(rows, size, 0.2)),
    "gtpo_trajectory, begun in doubt": (
        lambda turns: gtpo_trajectory(turns._replace(tokens=turns.tokens._replace(initial_entropy=1.0)), gamma=0.3),
        lambda rows, size: naive.gtpo_trajectory(rows, size, 1.0, gamma=0.3),
    ),
}
by_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def sampled(completions, size=None, gap=0, extra=0, initial_entropy=0.2):
    """One turn with all tokens, or with `gap` one for each, and as many tokens of the environment before each.

    What must not matter is NaN, or a token that would be in conflict.
    """
    turns = table([[reward] if tokens or reward is not None else [] for reward, tokens in completions], size)
    turns = turns._replace(values=turns.values.masked_fill(~turns.exists, CANARY))
    shape = len(completions), (gap + 1) * max((len(tokens) for _, tokens in completions), default=0) + extra
    turn_ids, ids = torch.full(shape, -1), torch.full(shape, 5)
    entropies = torch.full(shape, torch.nan, dtype=torch.float64)
    for i, (_, tokens) in enumerate(completions):
        for t, (token, entropy) in enumerate(tokens):
            place = gap + t * (gap + 1)
            turn_ids[i, place], ids[i, place], entropies[i, place] = t if gap else 0, token, entropy
    return turns._replace(tokens=TokenTable(turn_ids, ids, entropies, initial_entropy))


def of_tokens(advantages, turns, completions):
    """Lists of the advantages of the policy's tokens; all others are exactly 0."""
    is_action = turns.tokens.turn_ids >= 0
    assert (advantages[~is_action] == 0).all()
    return [row[mask].tolist() for row, mask, _ in zip(advantages, is_action, completions, strict=True)]


def with_entropies(*rows):
    """Of (reward, entropies)."""
    return [(reward, list(enumerate(entropies))) for reward, entropies in rows]


def with_ids(*rows):
    """Of (reward, ids), all with entropy 0.1."""
    return [(reward, [(token, 0.1) for token in ids]) for reward, ids in rows]


token = st.tuples(st.integers(4, 6), st.sampled_from([0.0, 0.1, 0.5, 0.9, 2.0]))
completion = st.tuples(st.none() | st.sampled_from([0.0, 1.0, 0.3, -0.7]), st.lists(token, max_size=5))
groups_of_completions = st.integers(1, 4).flatmap(
    lambda size: st.tuples(st.lists(completion, min_size=2 * size, max_size=2 * size), st.just(size))
)


@pytest.mark.slow
@by_estimator
@settings(max_examples=60, deadline=None)
@given(case=groups_of_completions, gap=st.integers(0, 2), extra=st.integers(0, 2))
def test_estimator_equals_the_naive_one_whatever_the_environment_and_padding(name, case, gap, extra):
    (completions, size), (estimate, expected) = case, ESTIMATORS[name]
    turns = sampled(completions, size, gap, extra)
    assert of_tokens(estimate(turns), turns, completions) == close(expected(completions, size), abs=1e-6)


@by_estimator
@settings(max_examples=20, deadline=None)
@given(case=groups_of_completions, random=st.randoms())
def test_permuting_a_group_permutes_its_advantages(name, case, random):
    (completions, size), (estimate, _) = case, ESTIMATORS[name]
    order = random.sample(range(size), size) + random.sample(range(size, 2 * size), size)
    before, after = (estimate(sampled(rows, size)) for rows in (completions, [completions[i] for i in order]))
    assert after.tolist() == close(before[order].tolist(), abs=1e-6)


@by_estimator
@settings(max_examples=20, deadline=None)
@given(case=groups_of_completions)
def test_groups_do_not_meet(name, case):
    (completions, size), (estimate, _) = case, ESTIMATORS[name]
    both = estimate(sampled(completions, size))
    alone = estimate(sampled([*completions[:size], *[(None, tokens) for _, tokens in completions[size:]]], size))
    assert both[:size].tolist() == close(alone[:size].tolist(), abs=1e-6)


# Worked numbers

ENTROPIES = [(1.0, [0.5, 1.0, 0.2]), (1.0, [1.5, 0.5]), (0.0, [0.2, 0.8]), (0.0, [0.6, 0.4, 1.0])]


def test_rewards_of_the_worked_example():
    entropies = torch.tensor([[0.5, 1.0, 0.2], [1.5, 0.5, torch.nan], [0.2, 0.8, torch.nan], [0.6, 0.4, 1.0]])
    is_success = torch.tensor([[True], [True], [False], [False]])
    columns = torch.arange(3) + 3 * (~is_success).long()
    rewards = shaped_rewards(entropies, is_success, columns, 1.0, 0.1).nan_to_num(CANARY)
    expected = [[1.05, 1.133333, 1.1], [1.15, 1.066667, CANARY], [-1.15, -1.066667, CANARY], [-1.05, -1.133333, -1.1]]
    assert rewards.tolist() == close(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("normalization", "expected"),
    [
        (
            "separate",
            [[-1.315587, 0.877058, 0.0], [1.315587, -0.877058], [-1.315587, 0.877058], [1.315587, -0.877058, 0.0]],
        ),
        (
            "joint",
            [
                [0.953976, 1.029689, 0.999404],
                [1.044831, 0.969119],
                [-1.044831, -0.969119],
                [-0.953976, -1.029689, -0.999404],
            ],
        ),
    ],
)
@pytest.mark.parametrize("gap", [0, 1])
def test_gtpo_has_the_worked_numbers_with_and_without_an_environment(normalization, expected, gap):
    completions = with_entropies(*ENTROPIES)
    turns = sampled(completions, gap=gap)
    assert of_tokens(gtpo(turns, normalization=normalization), turns, completions) == close(expected, abs=1e-5)


def test_separate_normalisation_makes_two_of_five_tokens_of_successes_negative_and_joint_none():
    def negative(normalization):
        return (gtpo(sampled(with_entropies(*ENTROPIES)), normalization=normalization)[:2] < -1e-6).sum().item()

    assert (negative("separate"), negative("joint")) == (2, 0)


def test_grpo_s_has_the_worked_numbers():
    means, is_success = torch.tensor([[0.566667], [1.0], [0.5], [0.666667]]), torch.tensor([[1], [1], [0], [0]]).bool()
    rewards = shaped_rewards(means, is_success, is_success.long(), 1.0, 0.1).flatten()
    expected = [1.07234, 1.12766, -1.114286, -1.085714]
    assert rewards.tolist() == pytest.approx(expected, abs=1e-5)
    turns = sampled(with_entropies(*ENTROPIES))
    std = (sum(r * r for r in expected) / 4) ** 0.5  # their mean is 0
    assert grpo_s(turns)[:, 0].tolist() == pytest.approx([r / std for r in expected], abs=1e-5)
    assert grpo_s(turns, **SEPARATE)[:, 0].tolist() == pytest.approx([-1.0, 1.0, -1.0, 1.0], abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.floats(0.001, 3), min_size=1, max_size=4), min_size=1, max_size=5), st.booleans())
def test_second_terms_of_a_column_sum_up_to_alpha2_times_how_many_reach_it(rows, succeeds):
    entropies = torch.full((len(rows), 4), torch.nan, dtype=torch.float64)
    for row, values in zip(entropies, rows, strict=True):
        row[: len(values)] = torch.tensor(values)
    columns = torch.arange(4).expand_as(entropies)
    sign = 1 if succeeds else -1
    rewards = shaped_rewards(entropies, torch.tensor([[succeeds]] * len(rows)), columns, 1.0, 0.1)
    alive = (~entropies.isnan()).sum(dim=0)
    assert (sign * rewards - 1.0).nansum(dim=0).tolist() == pytest.approx((0.1 * alive).tolist(), abs=1e-6)
    assert (sign * rewards).nansum().item() == pytest.approx(1.1 * alive.sum().item())  # the mean is alpha1 + alpha2


@settings(max_examples=60, deadline=None)
@given(st.lists(completion, min_size=2, max_size=6))
@example(with_entropies((1.0, [0.001] * 20), (1.0, [3.0] * 20), (0.0, [0.5, 0.5])))  # 4.8 % of the tokens
def test_joint_normalisation_keeps_the_sign_unless_a_side_has_too_few_tokens(completions):
    turns = sampled(completions)
    signs = [1 if reward > 0 else -1 for reward, tokens in completions if reward is not None for _ in tokens]
    least = min(signs.count(1), signs.count(-1)) / max(len(signs), 1)
    if least > 0.1 / (2 * 1.1):
        advantages = of_tokens(gtpo(turns), turns, completions)
        for (reward, _), row in zip(completions, advantages, strict=True):
            assert reward is None or all(a > 0 if reward > 0 else a < 0 for a in row)


def test_a_single_failed_token_among_many_successes_lets_sure_ones_turn_negative():
    completions = with_entropies((1.0, [0.001] * 30), (1.0, [3.0] * 30), (0.0, [0.5]))
    assert gtpo(sampled(completions))[0].max() < 0


def test_sure_token_of_a_failure_does_not_take_its_whole_column():
    completions = with_entropies((1.0, [0.5]), (0.0, [0.0]), (0.0, [0.5]))
    sure, floored = gtpo(sampled(completions)), gtpo(sampled(completions), entropy_floor=0.5)
    assert sure.isfinite().all()
    assert sure[1, 0] < sure[2, 0] < 0
    assert floored[1, 0] == floored[2, 0]


@pytest.mark.parametrize("estimate", [gtpo, grpo_s])
def test_success_is_a_reward_above_the_given_one(estimate):
    completions = with_entropies((0.6, [0.5, 0.2]), (0.4, [0.1, 0.2]))
    assert (estimate(sampled(completions), success_above=0.5)[1, :2] < 0).all()
    all_succeed = estimate(sampled(completions))
    assert all_succeed[0, 0] > 0 > all_succeed[1, 0]  # standardized among themselves, by their entropies


# Edge cases

STRICT = ["gtpo", "gtpo, separate", "grpo_s", "grpo_s, separate"]


@pytest.mark.parametrize("name", STRICT)
@pytest.mark.parametrize(
    "completions",
    [
        with_entropies((1.0, [0.5, 1.0, 0.2])),
        with_entropies((1.0, [0.3] * 3), (1.0, [0.3] * 3), (1.0, [0.3] * 3)),
        with_entropies((0.0, [0.0] * 3), (0.0, [0.0])),
        with_entropies((None, [0.5]), (None, [0.1])),
        with_entropies((1.0, []), (0.0, [])),
    ],
    ids=["group of one", "equal successes", "equal failures", "unscored", "no tokens"],
)
def test_without_anything_to_compare_there_is_no_advantage(name, completions):
    turns = sampled(completions, extra=1)
    advantages = ESTIMATORS[name][0](turns._replace(values=turns.values.float()))
    assert advantages.dtype == torch.float32
    assert advantages.abs().sum() < 1e-5


@by_estimator
def test_rounding_in_single_precision_is_no_spread(name):
    completions = with_entropies(*[(1.0, [0.1, 0.2, 0.3, 0.7])] * 7)
    turns = sampled(completions)
    tokens = turns.tokens._replace(entropies=turns.tokens.entropies.float())
    advantages = ESTIMATORS[name][0](turns._replace(values=turns.values.float(), tokens=tokens))
    assert torch.allclose(advantages, advantages[0, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        *[(name, left_out) for name in ESTIMATORS for left_out in [(None, [(5, 0.4), (6, 0.1)]), (None, [])]],
        *[(name, (1.0, [])) for name in STRICT],
    ],
)
def test_completion_without_reward_or_tokens_is_as_if_it_were_not_there(name, left_out):
    completions = with_entropies(*ENTROPIES)
    estimate = ESTIMATORS[name][0]
    advantages = estimate(sampled([*completions, left_out]))
    assert (advantages[-1] == 0).all()
    assert advantages[:4].tolist() == close(estimate(sampled(completions)).tolist(), abs=1e-12)


def test_truncated_completion_is_compared_as_far_as_it_goes():
    """The third token of a success stands alone: what follows the cut of the other one counts nowhere."""
    short, long = (1.0, [0.5]), (1.0, [0.5, 0.1, 2.0])
    advantages = gtpo(sampled(with_entropies(short, long, (0.0, [0.5, 0.5, 0.5]))))
    assert advantages[1].tolist() == pytest.approx([advantages[0, 0].item()] * 3)


def test_missing_tokens_are_refused_with_what_gives_them():
    for estimate in (gtpo, grpo_s, gtpo_trajectory):
        with pytest.raises(ValueError, match=r"tokens None: .*TurnRewards\(\.\.\., tokens=\.\.\.\)"):
            estimate(table([[1.0], [0.0]]))


def test_unknown_normalization_is_refused():
    for estimate in (gtpo, grpo_s):
        with pytest.raises(ValueError, match="normalization 'none': no such choice"):
            estimate(sampled(with_entropies(*ENTROPIES)), normalization="none")


# Trajectory GTPO


def conflicts_of(*rows, gap=0):
    completions = with_ids(*rows)
    tokens = sampled(completions, gap=gap).tokens
    signs = torch.tensor([[reward] for reward, _ in rows]).sign()
    found = conflicts(tokens, signs, torch.zeros(len(rows), 1, dtype=torch.long))
    return [row[mask].int().tolist() for row, mask in zip(found, tokens.turn_ids >= 0, strict=True)]


@pytest.mark.parametrize("gap", [0, 2])
def test_conflicts_of_the_worked_example(gap):
    """Shared by place are 5, 7 and 9; in the second of each kind, the token before the last breaks the run."""
    found = conflicts_of((1.0, [5, 7, 9]), (1.0, [5, 8, 9]), (-1.0, [5, 6, 9]), (-1.0, [4, 7, 9]), gap=gap)
    assert found == [[1, 1, 1], [1, 0, 1], [1, 0, 1], [0, 1, 1]]


def test_shared_token_inside_is_no_conflict():
    assert conflicts_of((1.0, [4, 7, 8]), (-1.0, [5, 7, 9])) == [[0, 0, 0], [0, 0, 0]]


def test_ends_are_shared_by_their_distance_from_the_end():
    assert conflicts_of((1.0, [1, 2, 8, 9]), (-1.0, [3, 8, 9])) == [[0, 0, 1, 1], [0, 1, 1]]


def test_completions_at_the_mean_or_of_the_same_sign_share_no_conflict():
    assert conflicts_of((1.0, [5]), (0.0, [5]), (1.0, [5])) == [[0], [0], [0]]


def test_conflicts_count_twice_in_successes_and_not_at_all_in_failures():
    completions = with_ids((1.0, [5, 7, 9]), (0.0, [5, 8, 6]))
    turns = sampled(completions)
    advantage = 0.5 / (0.5**0.5 + 1e-4)
    praise, blame = advantage - 0.1 * 0.1, -advantage - 0.1 * 0.1
    assert gtpo_trajectory(turns).tolist() == close([[2 * praise, praise, praise], [0.0, blame, blame]], abs=1e-6)


def test_completion_at_the_mean_keeps_the_weight_one_despite_rounding():
    turns = sampled(with_ids((0.1, [5, 7]), (0.2, [5, 7]), (0.3, [5, 7])))
    assert gtpo_trajectory(turns)[1].tolist() == pytest.approx([-0.01, -0.01], abs=1e-6)


@pytest.mark.parametrize(("initial_entropy", "keeps"), [(math.log(2) + 1e-6, True), (math.log(2), False), (0.1, False)])
def test_hesitant_completion_counts_only_if_the_policy_began_hesitant(initial_entropy, keeps):
    completions = [(1.0, [(4, 0.6), (5, 0.9)]), (0.0, [(6, 0.6), (7, 0.7)])]  # means 0.75 and 0.65, no conflict
    advantages = gtpo_trajectory(sampled(completions, initial_entropy=initial_entropy))
    assert bool((advantages[0] != 0).all()) is keeps
    assert advantages[1, 1].item() == pytest.approx(-0.70700679 - 0.065, abs=1e-6)


@pytest.mark.parametrize("rewards", [[1.0], [0.5, 0.5], [1.0, None]], ids=["group of one", "no spread", "one scored"])
def test_term_of_the_entropy_stays_where_rewards_say_nothing(rewards):
    advantages = gtpo_trajectory(sampled(with_entropies(*[(reward, [0.2, 0.6]) for reward in rewards])), gamma=0.5)
    assert advantages[0].tolist() == pytest.approx([-0.2, -0.2])
    if rewards[-1] is None:
        assert (advantages[1] == 0).all()
