"""Records of made-up completions."""

import random

from acpo_trl.records import Record, RewardEntry, TurnRewardEntry


def record(sample=0, num_tokens=6, num_turns=2, seed=0, pieces=None, **changes):
    """A completion with an environment token between its turns and numbers drawn at random."""
    chance = random.Random(f"{seed} {sample}")
    turn_ids = [min(place * (num_turns or 1) // num_tokens, num_turns - 1) for place in range(num_tokens)]
    for place in range(1, num_tokens):
        if turn_ids[place] != turn_ids[place - 1]:
            turn_ids[place - 1] = -1

    def numbers(low, high):
        return [None if turn < 0 else chance.uniform(low, high) for turn in turn_ids]

    reward = float(chance.random() < 0.5)
    values = {
        "step": 0,
        "group": 0,
        "sample": sample,
        "chosen": "random",
        "prompt": "What is 1 + 1?",
        "stop_reason": "done",
        "is_truncated": False,
        "rewards": [RewardEntry("outcome", "outcome", 1.0, reward)],
        "turn_rewards": [TurnRewardEntry("outcome", [None] * (num_turns - 1) + [reward])],
        "turn_estimator": "outcome",
        "credit_rule": "acpo",
        "token_ids": list(range(num_tokens)),
        "pieces": pieces or [f"tok{place} " for place in range(num_tokens)],
        "turn_ids": turn_ids,
        "log_probs": numbers(-3, 0),
        "delta": numbers(0, 1),
        "is_mode": [None if turn < 0 else chance.random() < 0.7 for turn in turn_ids],
        "entropy": numbers(0, 2),
        "advantage": numbers(-2, 2),
        "credit": numbers(0, 3),
        "ratio": numbers(0.9, 1.1),
        "turn_advantages": [chance.uniform(-2, 2) for _ in range(num_turns)],
        "state_keys": [2**62 + place for place in range(num_turns)],
        "action_keys": [2**61 + 10 * sample + place for place in range(num_turns)],
    }
    return Record(**{**values, **changes})
