"""Show what each turn estimator says: of a failure of five turns, and against turn credit that is known exactly.

    python scripts/compare_turn_estimators.py [--groups 1000] [--seed 0]

The five turns: a search finds the evidence, a rewritten query goes astray, a correction finds half of it again, a
calculation is wrong, the answer is wrong. The other completion of its group does the same first turn and succeeds.

The known credit: an episode has 3 to 6 turns, two of them decide; each turn is good with probability 0.6, and the
episode succeeds if both deciding turns are good. The true credit of a turn is how much it changes the probability of
success: 0 for a turn that does not decide or comes behind a failure, p^(r-1) - p^r for a good deciding turn with r of
them left, -p^r for a bad one. Equal states are equal positions with equal pasts. With process rewards, deciding turns
are paid 1 or 0 at once.
"""

import argparse
import platform
import random
import time

import torch
from torch import Tensor

from acpo_trl.advantages import TURN_ESTIMATORS, TurnRewards

GROUP_SIZE, PROBABILITY, NAN = 8, 0.6, float("nan")
FAILURE = {"outcome": [NAN, NAN, NAN, NAN, 0.0], "with process": [0.3, -0.3, 0.3, -0.3, -0.5]}
SUCCESS = {"outcome": [NAN, NAN, 1.0], "with process": [0.3, 0.3, 1.0]}


def table(rows: list[list[float]], states: list[list[int]], actions: list[list[int]], size: int) -> TurnRewards:
    """Rows of different lengths as one table."""
    width = max(map(len, rows))

    def padded(values: list[list[float]], fill: float, dtype: torch.dtype) -> Tensor:
        return torch.tensor([[*row, *[fill] * (width - len(row))] for row in values], dtype=dtype)

    return TurnRewards(
        padded(rows, NAN, torch.float64),
        torch.tensor([len(row) for row in rows]),
        size,
        padded(states, -1, torch.long),
        padded(actions, -1, torch.long),
    )


def print_failure() -> None:
    """Advantages of the five turns under each estimator, from the outcome alone and with rewards of the process."""
    states = [[1, 2, 3, 4, 5], [1, 2, 6]]
    actions = [[1, 2, 3, 4, 5], [1, 6, 7]]
    print("Advantages of a failure of five turns, beside a success of three")
    for rewards in FAILURE:
        turns = table([FAILURE[rewards], SUCCESS[rewards]], states, actions, 2)
        print(f"\n{rewards:18} {'search':>8} {'astray':>8} {'repair':>8} {'sum':>8} {'answer':>8}")
        for name, estimator in TURN_ESTIMATORS.items():
            print(f"{name:18}", *(f"{value:8.3f}" for value in estimator(turns)[0].tolist()))


def episode(dice: random.Random, num_turns: int, deciding: list[int]) -> dict[str, list]:
    """One episode with the true credit of its turns."""
    credit, process, states, actions, failed = [], [], [], [], False
    left, past = len(deciding), 0
    for turn in range(num_turns):
        good = dice.random() < PROBABILITY
        states.append(1000 * turn + past)
        actions.append(int(good))
        decides = turn in deciding
        process.append(float(good) if decides else NAN)
        value = 0.0 if failed else PROBABILITY**left
        if decides:
            left -= 1
            failed = failed or not good
            past = 2 * past + int(good) + 1
        credit.append((0.0 if failed else PROBABILITY**left) - value)
    outcome = [NAN] * (num_turns - 1) + [float(not failed)]
    both = [*(0.0 if p != p else p for p in process[:-1]), (process[-1] if deciding[-1] == num_turns - 1 else 0.0)]
    both[-1] += outcome[-1]
    return {"credit": credit, "outcome": outcome, "with process": both, "states": states, "actions": actions}


def print_comparison(num_groups: int, seed: int) -> None:
    """Correlation with the true credit, and the noise around it, over turns of all groups."""
    dice = random.Random(seed)
    episodes = []
    for _ in range(num_groups):
        num_turns = dice.randint(3, 6)
        deciding = sorted(dice.sample(range(num_turns - 1), 2))
        for _ in range(GROUP_SIZE):
            length = max(num_turns + dice.choice([-1, 0, 0]), deciding[-1] + 1)
            episodes.append(episode(dice, length, deciding))
    column = {name: [e[name] for e in episodes] for name in episodes[0]}
    credit = torch.tensor([c for row in column["credit"] for c in row], dtype=torch.float64)
    print(f"\nTrue credit against estimates, {num_groups} groups of {GROUP_SIZE}, {len(credit)} turns, seed {seed}")
    print(f"{'':18} {'outcome alone':>24} {'with process':>24}")
    print(f"{'':18} {'correlation':>14} {'noise':>9} {'correlation':>14} {'noise':>9}")
    for name, estimator in TURN_ESTIMATORS.items():
        line = f"{name:18}"
        for rewards in FAILURE:
            turns = table(column[rewards], column["states"], column["actions"], GROUP_SIZE)
            correlation, noise = against(credit, estimator(turns)[turns.exists])
            line += f" {correlation:14.3f} {noise:9.2f}"
        print(line, flush=True)


def against(credit: Tensor, estimate: Tensor) -> tuple[float, float]:
    """Correlation, and the variance around the best multiple of the credit in units of its own."""
    correlation = torch.corrcoef(torch.stack([credit, estimate]))[0, 1].item()
    return correlation, (1 / correlation**2 - 1) if correlation else float("inf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    started = time.perf_counter()
    print_failure()
    print_comparison(arguments.groups, arguments.seed)
    machine = f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}"
    print(f"\n{time.perf_counter() - started:.1f} s on {machine}")


if __name__ == "__main__":
    main()
