"""Which checkpoint a run starts from."""

import json
import re
from pathlib import Path

from accelerate import PartialState
from accelerate.logging import get_logger

logger = get_logger(__name__)

NEWEST = ("true", "auto", "last")
NONE = ("none", "false")


def find_checkpoint(output_dir: str, wanted: str | bool | None) -> str | None:
    """The checkpoint folder to resume from, or None to start afresh.

    Args:
        output_dir: where the run keeps its `checkpoint-<step>` folders.
        wanted: `true`, `auto` or `last` for the newest complete checkpoint of `output_dir`; a folder; or None.

    Raises:
        ValueError: `wanted` is a folder that holds no complete checkpoint.
    """
    choice = str(wanted).lower()
    if choice in NONE:
        warn_of_checkpoints(output_dir)
        return None
    if choice in NEWEST:
        return newest_checkpoint(output_dir)
    if not is_complete(Path(str(wanted))):
        raise ValueError(
            f"resume_from_checkpoint {wanted!r}: holds no readable trainer_state.json, which a finished save always "
            f"has; expected a checkpoint folder, or one of {list(NEWEST)} for the newest complete one of output_dir."
        )
    return str(wanted)


def newest_checkpoint(output_dir: str) -> str | None:
    """The complete checkpoint of the highest step; says which folders it passes over and when there is none."""
    say = PartialState().print  # once, whatever the number of processes
    for folder in checkpoints(output_dir):
        if is_complete(folder):
            say(f"Resuming from {folder}.")
            return str(folder)
        say(f"Skipping {folder}: no readable trainer_state.json, so its save was interrupted.")
    say(f"No complete checkpoint in {output_dir!r}: starting afresh.")
    return None


def checkpoints(output_dir: str) -> list[Path]:
    """`checkpoint-<step>` folders, highest step first, complete or not."""
    steps = {
        int(match[1]): folder
        for folder in Path(output_dir).glob("checkpoint-*")
        if (match := re.fullmatch(r"checkpoint-(\d+)", folder.name))
    }
    return [steps[step] for step in sorted(steps, reverse=True)]


def is_complete(folder: Path) -> bool:
    """Whether the save of a checkpoint was finished: transformers writes trainer_state.json last."""
    try:
        return "global_step" in json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def warn_of_checkpoints(output_dir: str) -> None:
    """Say what a fresh run does to the checkpoints of an earlier one."""
    if found := checkpoints(output_dir):
        logger.warning(
            f"output_dir {output_dir!r} already holds {found[0].name}, and this run starts afresh: it writes over "
            "checkpoints of the same step, `save_total_limit` may remove others, and a later automatic resume would "
            "take the highest step of either run. Pass --resume_from_checkpoint auto to continue, or another "
            "--output_dir."
        )
