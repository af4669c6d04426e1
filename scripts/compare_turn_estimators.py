"""Show what each turn estimator says: of a failure of five turns, of turns with known credit, and of format errors.

    python scripts/compare_turn_estimators.py [--groups 1000] [--seed 0]

The five turns: a search finds the evidence, a rewritten query goes astray, a correction finds half of it again, a
calculation is wrong, the answer is wrong. The other completion of its group does the same first turn and succeeds.
What estimators ask beside rewards are inputs of the example, printed with it, and were measured nowhere.

The known credit: an episode has 3 to 6 turns, two of them decide; each turn is good with probability 0.6, and the
episode succeeds if both deciding turns are good. The true credit of a turn is how much it changes the probability of
success: 0 for a turn that does not decide or comes behind a failure, p^(r-1) - p^r for a good deciding turn with r of
them left, -p^r for a bad one. Equal states are equal positions with equal pasts. With process rewards, deciding turns
are paid 1 or 0 at once. What estimators ask is answered exactly, so theirs are upper bounds:
  values (of turns and tokens)   the mean sum of rewards from the turn on: of the outcome, the probability of success
  contributions                  r[k] + V[k+1] - V[k] + V[0] / K of these values: they add up to the rewards
  beliefs                        log of the probability of success before the turn, of 0.01 at least
  tokens                         one for each turn, good or bad; entropy 0.673 nats everywhere: it tells nothing
  observations                   names of states: equal or not alike at all, so gigpo_similar is gigpo
  validity                       every action is valid, no episode is cut off
A line "noisy" answers once more with values and probabilities that are off by a normal error of deviation 0.2. The
line "lam 0" is turn_ppo with gamma 1 and lam 0: with exact values of the outcome it is the true credit.

The format errors: the same episodes, their outcome alone, and each turn is malformed with probability 0.2, paid -1 of
the kind `format`; the outcome does not mind, `is_valid` does. For `separate` and `mixed` kinds: the mean absolute
change of the advantages of well-formed turns by the format errors. Critics are exact, for `mixed` of the summed reward.
"""

import argparse
import platform
import time
from collections.abc import Callable, Mapping
from functools import partial

import torch
from known_credit import GROUP_SIZE, NAN, OUTCOME, PROCESS, SCORINGS, Episode, play_groups, table, with_critic
from torch import Tensor

from acpo_trl.advantages import KIND_ESTIMATORS, TURN_ESTIMATORS, TurnRewards, combine, mixed, spa_rl, turn_ppo
from acpo_trl.advantages.kinds import Credit, Estimator
from acpo_trl.advantages.needs import advantages_of, needs_of

STEPS = ("search", "astray", "repair", "sum", "answer")
FAILURE_CHANCES, SUCCESS_CHANCES = [0.5, 0.7, 0.4, 0.55, 0.2], [0.5, 0.7, 0.9]
FAILURE = Episode(
    {OUTCOME: [NAN, NAN, NAN, NAN, 0.0], PROCESS: [0.3, -0.3, 0.3, -0.3, -0.5]},
    dict.fromkeys(SCORINGS, FAILURE_CHANCES),
    FAILURE_CHANCES,
    states=[1, 2, 3, 4, 5],
    actions=[1, 2, 3, 4, 5],
    entropies=[0.3, 0.6, 0.5, 0.4, 0.2],
)
SUCCESS = Episode(
    {OUTCOME: [NAN, NAN, 1.0], PROCESS: [0.3, 0.3, 1.0]},
    dict.fromkeys(SCORINGS, SUCCESS_CHANCES),
    SUCCESS_CHANCES,
    states=[1, 2, 6],
    actions=[1, 6, 7],
    entropies=[0.3, 0.4, 0.1],
)
ASKED = {"beliefs", "state_values", "contributions", "token_values"}  # what somebody has to estimate
NOISE, FAULT_RATE = 0.2, 0.2
ONES = {"outcome": 1.0, "format": 1.0}


def print_failure() -> None:
    """Advantages of the five turns under each estimator, from the outcome alone and with rewards of the process."""
    print("Advantages of a failure of five turns, beside a success of three")
    print("Inputs of the example: values V, chances of success, whose logarithms are beliefs; entropies; contributions")
    print("r[k] + V[k+1] - V[k] + V[0] / K of these values. The success has V", SUCCESS_CHANCES, "and")
    print("entropies", SUCCESS.entropies)
    for scoring in SCORINGS:
        turns = table([FAILURE, SUCCESS], scoring, 2)
        print(f"\n{scoring:22}", *(f"{step:>8}" for step in STEPS))
        inputs = {"input V": turns.state_values, "input entropy": turns.tokens.entropies}
        for name, values in {**inputs, "input contribution": turns.contributions}.items():
            print(f"{name:22}", *(f"{value:8.3f}" for value in values[0].tolist()))
        for name, estimator in TURN_ESTIMATORS.items():
            advantages = advantages_of(estimator(turns))[0].tolist()
            print(f"{name:22}", *(f"{value + 0.0:8.3f}" for value in advantages))  # no -0


def comparison(num_groups: int, seed: int) -> dict[str, list[float]]:
    """For each estimator the correlation with the true credit, and the noise around it, under each scoring in turn."""
    episodes = play_groups(num_groups, seed)
    exact, noisy = ({s: table(episodes, s, GROUP_SIZE, noise) for s in SCORINGS} for noise in (0.0, NOISE))
    credit = torch.tensor([c for e in episodes for c in e.credit], dtype=torch.float64)
    figures = {}
    one_step = partial(turn_ppo, gamma=1.0, lam=0.0)
    for name, estimator in {**TURN_ESTIMATORS, "turn_ppo, lam 0": one_step}.items():
        figures[name] = agreement(estimator, exact, credit)
        if needs_of(estimator) & ASKED:
            figures[f"{name}, noisy"] = agreement(estimator, noisy, credit)
    return figures


def agreement(estimator: Estimator, tables: Mapping[str, TurnRewards], credit: Tensor) -> list[float]:
    """Correlation and noise on each table."""
    # A turn is one token: advantages of tokens are those of turns.
    return [x for turns in tables.values() for x in against(credit, advantages_of(estimator(turns))[turns.exists])]


def against(credit: Tensor, estimate: Tensor) -> tuple[float, float]:
    """Correlation, and the variance around the best multiple of the credit in units of its own."""
    correlation = torch.corrcoef(torch.stack([credit, estimate]))[0, 1].item()
    return correlation, (1 / correlation**2 - 1) if correlation else float("inf")


def isolation(num_groups: int, seed: int) -> dict[str, list[float]]:
    """For each estimator what format errors change for well-formed turns under `separate` and `mixed`.

    The third figure is the mean absolute advantage of these turns without format errors.
    """
    turns = table(play_groups(num_groups, seed), OUTCOME, GROUP_SIZE)
    dice = torch.Generator().manual_seed(seed)
    faults = turns.exists & (torch.rand(turns.values.shape, generator=dice, dtype=torch.float64) < FAULT_RATE)
    figures = {}
    for name, estimator in {**TURN_ESTIMATORS, "spa_rl, fused": partial(spa_rl, grounding="fused")}.items():
        apart = partial(combine, estimators={**KIND_ESTIMATORS, "outcome": estimator})
        separate, _ = change(apart, turns, faults, "separate")
        figures[name] = [separate, *change(partial(mixed, estimator=estimator), turns, faults, "mixed")]
    return figures


def change(treat: Callable[..., Credit], turns: TurnRewards, faults: Tensor, kinds: str) -> tuple[float, float]:
    """Mean absolute change by the faults, and mean absolute advantage without them, over well-formed turns."""
    is_well_formed = turns.exists & ~faults
    clean = treat(with_faults(turns, torch.zeros_like(faults), kinds, 0.0), ONES).advantages[is_well_formed]
    broken = treat(with_faults(turns, faults, kinds, FAULT_RATE), ONES).advantages[is_well_formed]
    return (broken - clean).abs().mean().item(), clean.abs().mean().item()


def with_faults(turns: TurnRewards, faults: Tensor, kinds: str, rate: float) -> dict[str, TurnRewards]:
    """Tables of outcomes and formats; under `mixed` the critic knows what format errors cost on average."""
    turns = turns._replace(is_valid=turns.exists & ~faults)
    penalties = -faults.double().masked_fill(~turns.exists, NAN)
    outcomes = turns
    if kinds == "mixed":
        left = turns.num_turns.unsqueeze(1) - torch.arange(faults.size(1))
        summed = turns._replace(values=turns.values.nan_to_num(nan=0.0) + penalties)
        outcomes = with_critic(summed, turns.state_values - rate * left)._replace(values=turns.values)
    return {"outcome": outcomes, "format": turns._replace(values=penalties)}


def print_comparison(num_groups: int, seed: int) -> None:
    print(f"\nTrue credit against estimates, {num_groups} groups of {GROUP_SIZE}, seed {seed}")
    print(f"{'':22}", *(f"{scoring:>24}" for scoring in SCORINGS))
    print(f"{'':22}" + f" {'correlation':>14} {'noise':>9}" * 2)
    for name, (correlation, noise, *process) in comparison(num_groups, seed).items():
        print(f"{name:22} {correlation:14.3f} {noise:9.2f} {process[0]:14.3f} {process[1]:9.2f}")


def print_isolation(num_groups: int, seed: int) -> None:
    print(f"\nMean |change| of the advantages of well-formed turns by format errors elsewhere, {num_groups} groups")
    print(f"{'':22} {'separate':>14} {'mixed':>14} {'mixed, in % of mean |advantage|':>32}")
    for name, (separate, together, size) in isolation(num_groups, seed).items():
        print(f"{name:22} {separate:14g} {together:14.3f} {100 * together / size:32.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    started = time.perf_counter()
    print_failure()
    print_comparison(arguments.groups, arguments.seed)
    print_isolation(arguments.groups, arguments.seed)
    machine = f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}"
    print(f"\n{time.perf_counter() - started:.1f} s on {machine}")


if __name__ == "__main__":
    main()
