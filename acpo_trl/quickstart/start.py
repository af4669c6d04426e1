"""The folder that a quick start begins from: warm-started model, tokenizer and problems."""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from .model import build_model, build_tokenizer
from .tasks import problems
from .warm_start import NUM_STEPS, warm_start

VERSION = 1  # raise it when the same seed is to give another folder
NUM_TRAIN, NUM_TEST = 8000, 300


def build_start(folder: Path, seed: int, num_steps: int = NUM_STEPS) -> bool:
    """Fill `folder` with `model/`, `train.jsonl` and `test.jsonl`; False if it already held just that."""

    def fill(building: Path) -> None:
        rows = problems(NUM_TRAIN + NUM_TEST, seed)
        write_problems(building, rows[:NUM_TRAIN], rows[NUM_TRAIN:])
        tokenizer = build_tokenizer()
        model = build_model(tokenizer, seed)
        warm_start(model, tokenizer, [row["prompt"] for row in rows[:NUM_TRAIN]], seed, num_steps)
        save(building, model, tokenizer)

    return build_once(folder, {"version": VERSION, "seed": seed, "warm_start_steps": num_steps}, fill)


def build_once(folder: Path, key: Mapping[str, Any], fill: Callable[[Path], None]) -> bool:
    """Let `fill` write into `folder`, unless it was built from an equal `key`; False then.

    The folder appears whole or not at all.
    """
    if read_key(folder) == key:
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as scratch:
        building = Path(scratch) / "start"
        building.mkdir()
        fill(building)
        (building / "key.json").write_text(json.dumps(key))
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
    return True


def write_problems(folder: Path, train: Sequence[Mapping[str, Any]], test: Sequence[Mapping[str, Any]]) -> None:
    """Write `train.jsonl` and `test.jsonl`."""
    for name, rows in {"train": train, "test": test}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def save(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write `model/`."""
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")


def read_key(folder: Path) -> dict | None:
    """Give what `folder` was built from, or None without a finished folder."""
    file = folder / "key.json"
    return json.loads(file.read_text()) if file.exists() else None
