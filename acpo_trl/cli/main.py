"""The `acpo-trl` command."""

import argparse
import importlib
import sys

from acpo_trl import __version__

# Name: (module with `run(arguments, prog)`, help). The modules load torch and TRL: only the one asked for is imported.
COMMANDS = {
    "train": ("acpo_trl.cli.train", "fine-tune a causal language model with token-level credit"),
    "evaluate": ("acpo_trl.cli.evaluate", "measure a model on benchmarks, or compare two evaluations"),
    "audit": ("acpo_trl.cli.audit", "compare the blame of credit rules with human step labels"),
    "report": ("acpo_trl.cli.report", "show the recorded credit of a run in a page, or as text"),
    "rewards": ("acpo_trl.cli.check", "check the rewards of a config on its dataset"),
}


def main() -> None:
    """Run the sub-command that the first argument names with the arguments after it."""
    parser = argparse.ArgumentParser(
        prog="acpo-trl",
        description="commands:\n" + "\n".join(f"  {name:<10} {text}" for name, (_, text) in COMMANDS.items()),
        epilog="`acpo-trl COMMAND --help` lists the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    command = parser.parse_args(sys.argv[1:2]).command
    module, _ = COMMANDS[command]
    importlib.import_module(module).run(sys.argv[2:], f"acpo-trl {command}")


if __name__ == "__main__":
    main()
