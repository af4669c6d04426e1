"""Data that lies beside the repository; tests that need it are skipped without it."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("ACPO_TRL_SHARED", Path(__file__).parents[2] / "shared"))


def shared_file(name):
    """Path of a file of the shared data."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not there")
    return path
