"""The attacks of scripts/attack_sandbox.py: none succeeds, none leaves anything."""

import importlib.util
import sys
from pathlib import Path

import pytest

from acpo_trl.sandbox import ProcessSandbox, run

PATH = Path(__file__).parents[2] / "scripts" / "attack_sandbox.py"
spec = importlib.util.spec_from_file_location("attack_sandbox", PATH)
attack_sandbox = sys.modules["attack_sandbox"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(attack_sandbox)
ATTACKS = attack_sandbox.read_attacks()
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ATTACKS]
# They do no harm where nothing holds them back.
HARMLESS = ["files: read a secret at home", "files: through a symbolic link", "processes: see others"]


@pytest.fixture(scope="module")
def reach(bubblewrap):
    with attack_sandbox.target(bubblewrap) as made:
        yield made


@pytest.mark.parametrize("name", SLOW)
def test_attack_fails(reach, name):
    result = attack_sandbox.attempt(reach, name, *ATTACKS[name])
    assert (result.breaches, result.leftovers) == ([], [])


def test_there_are_attacks_of_every_kind():
    kinds = {name.partition(":")[0] for name in ATTACKS}
    assert kinds == {"network", "files", "secrets", "processes", "rights", "exhaust", "leave", "forge"}
    assert len(ATTACKS) >= 100


@pytest.mark.parametrize("name", HARMLESS)
def test_the_attacks_succeed_where_there_are_no_walls(reach, name):
    program = reach.fill(ATTACKS[name][0])
    assert b"BREACH" in run(ProcessSandbox(), program).output
