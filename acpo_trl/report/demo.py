"""A made-up record: a failure of five turns beside a success, the worked example of docs/concepts/turn_estimators.md.

A search finds the evidence, a rewritten query goes astray, a correction finds half of it again, a calculation is wrong,
the answer is wrong. The other completion does the same first turn and succeeds. Log-probabilities are invented. The
recorded advantages are those of `outcome` with `kinds: mixed` for the rewards of the process, and the credit is `acpo`.
"""

import math
from hashlib import blake2b

from ..records import Record, RewardEntry, TurnRewardEntry
from .load import Run

PROMPT = "How many more people live in the larger of the two cities than in the smaller one?"
# Per turn: text of the policy, reward of the process, what the environment answers.
FAILURE = (
    ("search population Arford", 0.3, "Arford: 120,000 inhabitants."),
    ("search Arford football club", -0.3, "Arford United, founded in 1902."),
    ("search population Beldon", 0.3, "Beldon: about 80 thousand."),
    ("120 minus 80 is 50", -0.3, "noted"),
    ("The answer is 50,000.", -0.5, ""),
)
SUCCESS = (
    ("search population Arford", 0.3, "Arford: 120,000 inhabitants."),
    ("search population Beldon", 0.3, "Beldon: about 80 thousand."),
    ("The answer is 40,000.", 0.5, ""),
)
SURE, UNSURE = 0.03, 0.55


def demo_run() -> Run:
    """The two completions as a run."""
    completions = [(FAILURE, 0.0, -1), (SUCCESS, 1.0, 1)]
    totals = [sum(turn[1] for turn in turns) + outcome for turns, outcome, _ in completions]
    spread = abs(totals[0] - totals[1]) / 2
    advantage = spread / (spread * math.sqrt(2) + 1e-4)
    return Run(
        "Five turns, one failure",
        [
            _record(sample, turns, outcome, sign * advantage)
            for sample, (turns, outcome, sign) in enumerate(completions)
        ],
    )


def _record(sample: int, turns: tuple[tuple[str, float, str], ...], outcome: float, advantage: float) -> Record:
    pieces: list[str] = []
    turn_ids: list[int] = []
    for number, (said, _, answered) in enumerate(turns):
        words = said.split(" ")
        own = [f"{word} " for word in words[:-1]] + [words[-1]]
        shown = [f"\n{answered}\n"] if answered else []
        pieces += own + shown
        turn_ids += [number] * len(own) + [-1] * len(shown)
    # Names and numbers are where the made-up policy hesitates; it takes its second choice where digits are wrong.
    unsure = [any(c.isdigit() or c.isupper() for c in piece) for piece in pieces]
    modes = ["50" not in piece for piece in pieces]
    deltas = [UNSURE if u else SURE for u in unsure]
    is_own = [turn >= 0 for turn in turn_ids]
    log_probs = [math.log((1 - d) if m else 0.3) for d, m in zip(deltas, modes, strict=True)]
    entropies = [0.9 if u else 0.12 for u in unsure]
    credits = [_acpo(d, m, advantage > 0) for d, m in zip(deltas, modes, strict=True)]
    vocabulary = {word: place for place, word in enumerate(sorted(set(pieces)))}

    def of_policy(values: list[float]) -> list[float | None]:
        return [value if own else None for value, own in zip(values, is_own, strict=True)]

    size = len(turns)
    return Record(
        step=0,
        group=0,
        sample=sample,
        chosen="random",
        prompt=PROMPT,
        stop_reason="done",
        is_truncated=False,
        rewards=[RewardEntry("outcome", "outcome", 1.0, outcome)],
        turn_rewards=[
            TurnRewardEntry("outcome", [None] * (size - 1) + [outcome]),
            TurnRewardEntry("process", [reward for _, reward, _ in turns]),
        ],
        turn_estimator="outcome",
        credit_rule="acpo",
        token_ids=[vocabulary[piece] for piece in pieces],
        pieces=pieces,
        turn_ids=turn_ids,
        log_probs=of_policy(log_probs),
        delta=of_policy(deltas),
        is_mode=[mode if own else None for mode, own in zip(modes, is_own, strict=True)],
        entropy=of_policy(entropies),
        advantage=of_policy([advantage] * len(pieces)),
        credit=of_policy(credits),
        ratio=of_policy([1.0] * len(pieces)),
        turn_advantages=[advantage] * size,
        state_keys=[_key(turns[:number]) for number in range(size)],
        action_keys=[hash_of(turn[0]) for turn in turns],
    )


def _acpo(delta: float, is_mode: bool, is_positive: bool) -> float:
    if is_mode:
        return 1 + 2 * delta if is_positive else 2 * (1 - delta)
    return 3 * delta if is_positive else 3 * (1 - delta)


def _key(before: tuple[tuple[str, float, str], ...]) -> int:
    return hash_of("|".join(turn[0] for turn in before))


def hash_of(text: str) -> int:
    """A number for a text, the same in every run."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
