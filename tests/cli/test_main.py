"""The `acpo-trl` command."""

import subprocess
import sys

import pytest

from acpo_trl import __version__
from acpo_trl.cli import main as command


def test_help_lists_the_commands_without_loading_torch():
    command = [sys.executable, "-X", "importtime", "-m", "acpo_trl.cli.main", "--help"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert "  train  " in run.stdout
    assert "argparse" in run.stderr and "torch" not in run.stderr


def test_command_gets_the_arguments_after_its_name(monkeypatch):
    calls = []
    monkeypatch.setattr("acpo_trl.cli.train.run", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(sys, "argv", ["acpo-trl", "train", "--config", "x.yaml", "--help"])
    command.main()
    assert calls == [(["--config", "x.yaml", "--help"], "acpo-trl train")]


def test_mistyped_command_is_named(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["acpo-trl", "trian"])
    with pytest.raises(SystemExit):
        command.main()
    assert "invalid choice: 'trian'" in capsys.readouterr().err


def test_version_is_the_packages(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["acpo-trl", "--version"])
    with pytest.raises(SystemExit):
        command.main()
    assert capsys.readouterr().out == f"{__version__}\n"
