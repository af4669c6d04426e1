"""scripts/setup_env.sh, with an interpreter that only writes down what it is asked to do."""

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TORCH = "-m pip install torch==2.13.0"


@pytest.fixture
def setup(tmp_path):
    """Source the script with a recording interpreter; gives (exit status, pip calls). `fails` matches failing calls."""
    recorder = tmp_path / "python"
    recorder.write_text(
        "#!/bin/sh\n"
        'echo "$*" >> "$RECORD"\n'
        'case "$*" in\n'
        '    "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; touch "$3/bin/activate" ;;\n'
        '    *find_spec*) [ -n "$HAS_TORCH" ] ;;\n'
        '    *"$FAILS"*) [ -z "$FAILS" ] ;;\n'
        "esac\n"
    )
    recorder.chmod(0o755)

    def run(extras="plot", fails="", has_torch="", **settings):
        record = tmp_path / "record"
        record.write_text("")
        environment = {
            "PATH": "/usr/bin:/bin",
            "ACPO_TRL_PYTHON": str(recorder),
            "ACPO_TRL_VENV": str(tmp_path / "venv"),
            "RECORD": str(record),
            "FAILS": fails,
            "HAS_TORCH": has_torch,
            **settings,
        }
        source = f"set -euo pipefail; . scripts/setup_env.sh {extras}"
        done = subprocess.run(["bash", "-c", source], cwd=REPOSITORY, env=environment, capture_output=True, text=True)
        return done.returncode, [call for call in record.read_text().splitlines() if "pip" in call]

    return run


def test_torch_comes_before_the_package(setup):
    assert setup() == (0, [TORCH, "-m pip install -e .[plot]"])


def test_a_complete_environment_is_not_touched_again(setup):
    setup()
    assert setup() == (0, [])
    assert setup(extras="test") == (0, [TORCH, "-m pip install -e .[test]"])
    assert setup() == (0, [])


def test_an_interrupted_installation_is_taken_up_again(setup):
    assert setup(fails="install -e")[0] != 0
    assert setup() == (0, [TORCH, "-m pip install -e .[plot]"])


def test_a_failed_torch_stops_the_installation(setup):
    status, calls = setup(fails="torch==")
    assert status != 0
    assert calls == [TORCH]


def test_torch_in_the_environment_is_kept(setup):
    assert setup(has_torch="yes") == (0, ["-m pip install -e .[plot]"])


def test_torch_may_be_chosen_with_pip_options(setup):
    _, calls = setup(ACPO_TRL_TORCH="torch --pre")
    assert calls[0] == "-m pip install torch --pre"


def test_a_missing_interpreter_says_what_to_set():
    done = subprocess.run(
        ["bash", "-c", "set -euo pipefail; . scripts/setup_env.sh plot"],
        cwd=REPOSITORY,
        env={"PATH": "/usr/bin:/bin", "ACPO_TRL_PYTHON": "python-of-nowhere", "ACPO_TRL_VENV": "/nonexistent/venv"},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "set ACPO_TRL_PYTHON" in done.stderr
