"""The folder that a quick start begins from: warm-started model, tokenizer and problems."""

import json
import shutil
import tempfile
from pathlib import Path

from .model import build_model, build_tokenizer
from .tasks import problems
from .warm_start import NUM_STEPS, warm_start

VERSION = 1  # raise it when the same seed is to give another folder
NUM_TRAIN, NUM_TEST = 8000, 300


def build_start(folder: Path, seed: int, num_steps: int = NUM_STEPS) -> bool:
    """Fill `folder` with `model/`, `train.jsonl` and `test.jsonl`; False if it already held just that.

    The folder appears whole or not at all.
    """
    key = {"version": VERSION, "seed": seed, "warm_start_steps": num_steps}
    if read_key(folder) == key:
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as scratch:
        building = Path(scratch) / "start"
        building.mkdir()
        fill(building, seed, num_steps)
        (building / "key.json").write_text(json.dumps(key))
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
    return True


def fill(folder: Path, seed: int, num_steps: int) -> None:
    """Write problems, then build, train and write the model."""
    rows = problems(NUM_TRAIN + NUM_TEST, seed)
    for name, part in {"train": rows[:NUM_TRAIN], "test": rows[NUM_TRAIN:]}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    tokenizer = build_tokenizer()
    model = build_model(tokenizer, seed)
    print(f"Warm start of a model with {model.num_parameters():,} parameters:", flush=True)
    warm_start(model, tokenizer, [row["prompt"] for row in rows[:NUM_TRAIN]], seed, num_steps)
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")


def read_key(folder: Path) -> dict | None:
    """Give what `folder` was built from, or None without a finished folder."""
    file = folder / "key.json"
    return json.loads(file.read_text()) if file.exists() else None
