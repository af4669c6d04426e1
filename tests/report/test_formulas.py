"""The formulas of the page are those of the package."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from acpo_trl.advantages import TURN_ESTIMATORS, TokenTable, TurnRewards
from acpo_trl.credit import CREDIT_RULES, Gate, TokenStats

SCRIPT = Path(__file__).parent / "formulas.js"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
CHOICES = [
    ("outcome", {"gamma": 0.9}),
    ("outcome", {}),
    ("process", {"gamma": 0.7}),
    ("discounted", {"gamma": 0.95, "failure": -1}),
    ("discounted", {"gamma": 0.5, "failure": 0}),
    ("mt_grpo", {}),
    ("mt_grpo", {"alpha": 0.5}),
    ("gigpo", {"gamma": 0.95}),
    ("gigpo", {"omega": 0.5, "gamma": 1.0}),
    ("gtpo", {}),
]


def random_group(chance):
    """Completions as the page has them: few values, so that equal ones, equal states and unscored ones occur."""
    group = []
    for _ in range(chance.randint(1, 5)):
        num_turns = chance.choice([0, 1, 1, 2, 3, 4])
        is_unscored = chance.random() < 0.15
        sizes = [chance.choice([0, 1, 2, 3]) for _ in range(num_turns)]
        turns = [-1, *(turn for number, size in enumerate(sizes) for turn in [*[number] * size, -1])]
        group.append(
            {
                "rewards": [
                    None
                    if is_unscored or chance.random() < 0.2
                    else chance.choice([0.0, 0.0, 1.0, -0.5, chance.random()])
                    for _ in range(num_turns)
                ],
                "states": [0 if number == 0 else chance.randint(0, 3) for number in range(num_turns)],
                "actions": [-1 if size == 0 else chance.randint(0, 9) for size in sizes],
                "turns": turns,
                "entropy": [None if turn < 0 else chance.choice([0.0, chance.random() * 2]) for turn in turns],
            }
        )
    return group


def table_of(group):
    """The same as the package has it."""
    width = max(1, *(len(c["rewards"]) for c in group))
    length = max(len(c["turns"]) for c in group)

    def padded(rows, size, missing, dtype=torch.float64):
        return torch.tensor(
            [[missing if v is None else v for v in row] + [missing] * (size - len(row)) for row in rows], dtype=dtype
        )

    turn_ids = padded([c["turns"] for c in group], length, -1, torch.long)
    return TurnRewards(
        padded([c["rewards"] for c in group], width, torch.nan),
        torch.tensor([len(c["rewards"]) for c in group]),
        len(group),
        state_keys=padded([c["states"] for c in group], width, -1, torch.long),
        action_keys=padded([c["actions"] for c in group], width, -1, torch.long),
        num_tokens=torch.tensor([[c["turns"].count(turn) for turn in range(width)] for c in group]),
        tokens=TokenTable(turn_ids, turn_ids, padded([c["entropy"] for c in group], length, torch.nan), 1.0),
    )


def expected(group, name, options):
    advantages = TURN_ESTIMATORS[name](table_of(group), **options)
    sizes = [len(c["turns" if name == "gtpo" else "rewards"]) for c in group]
    return [row[:size].tolist() for row, size in zip(advantages, sizes, strict=True)]


@needs_node
def test_page_and_package_agree_on_a_thousand_random_records():
    chance = random.Random(0)
    groups = [random_group(chance) for _ in range(1000)]
    tokens = [
        {
            "rule": rule,
            "gate": gate,
            "delta": chance.random(),
            "isMode": chance.random() < 0.5,
            "positive": chance.random() < 0.5,
        }
        for _ in range(1000)
        for rule, gate in (("acpo", 1.0), ("acpo", 2.0), ("acpo_as_written", 1.0), ("uniform", 1.0))
    ]
    given = json.dumps({"groups": groups, "choices": CHOICES, "tokens": tokens})
    done = subprocess.run(["node", str(SCRIPT)], input=given, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    num_different = 0
    for group, estimates in zip(groups, found["estimates"], strict=True):
        for (name, options), estimate in zip(CHOICES, estimates, strict=True):
            wanted = expected(group, name, options)
            assert len(wanted) == len(estimate)
            for ours, theirs in zip(wanted, estimate, strict=True):
                assert theirs == pytest.approx(ours, abs=1e-6), (name, options, group)
                num_different += any(value != 0 for value in ours)
    assert num_different > 5000
    for token, credit in zip(tokens, found["credits"], strict=True):
        sign = 1.0 if token["positive"] else -1.0
        mode = torch.tensor([[1 - token["delta"]]], dtype=torch.float64).log()
        stats = TokenStats(
            mode,
            mode,
            torch.tensor([[token["isMode"]]]),
            mode,
            torch.tensor([[True]]),
            Gate(token["gate"], token["gate"]),
        )
        rule = CREDIT_RULES[token["rule"]](stats, torch.tensor([[sign]], dtype=torch.float64))
        assert credit == pytest.approx(rule.item(), abs=1e-6), token
