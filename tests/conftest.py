"""Fixtures around the tiny model of `tiny.py`."""

import os

# Before anything imports a library that reads them.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import pytest
from hypothesis import settings
from tiny import build_trainer, byte_tokenizer

# The same examples in every run: a red test is somebody's change.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def tokenizer():
    return byte_tokenizer()


@pytest.fixture
def make_trainer(tmp_path):
    """`build_trainer` with its output in a temporary folder."""
    return lambda **settings: build_trainer(**{"output_dir": str(tmp_path / "run"), **settings})
