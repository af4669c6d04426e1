"""How a model fares on held-out tasks of `lookup`: success, turns and invalid calls."""

import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoTokenizer, PrinterCallback

from ..rollouts import MultiTurnRollout
from ..trainer import ACPOConfig, ACPOTrainer
from .accuracy import TEMPERATURE, Estimate, wilson
from .lookup import MAX_TURNS, make_environment

# As in training.
ROLLOUT: dict[str, Any] = {"max_turns": MAX_TURNS, "max_turn_tokens": 4, "stop_strings": ["</look>", "</answer>"]}
MAX_COMPLETION_LENGTH = 128
BATCH_SIZE = 100

Turns = Sequence[Mapping[str, float | None]]


def measure_episodes(model_folder: Path, rows: Sequence[Mapping[str, Any]], seed: int = 0) -> dict[str, Estimate]:
    """Give what `summarize` says about one sampled episode for each of `rows`."""
    return summarize(play(model_folder, rows, seed))


def play(model_folder: Path, rows: Sequence[Mapping[str, Any]], seed: int) -> list[Turns]:
    """Give the rewards of each turn, by kind, of an episode for each of `rows`."""
    episodes: list[Turns] = []

    def keep(completions: Sequence[Any], turn_rewards: Sequence[Turns], **columns: Any) -> list[float]:
        episodes.extend(turn_rewards)
        return [0.0] * len(completions)

    dataset = Dataset.from_list([dict(row) for row in rows])
    with tempfile.TemporaryDirectory() as scratch:
        trainer = ACPOTrainer(
            str(model_folder),
            keep,
            arguments(scratch),
            train_dataset=dataset,
            processing_class=AutoTokenizer.from_pretrained(model_folder),
            rollout_func=MultiTurnRollout(make_environment, **ROLLOUT),
        )
        trainer.remove_callback(PrinterCallback)
        torch.manual_seed(seed)
        trainer.evaluate(dataset)
    return episodes


def arguments(output_dir: str) -> ACPOConfig:
    """Give the settings of an evaluation on a CPU, one episode a task."""
    return ACPOConfig(
        output_dir,
        use_cpu=True,
        bf16=False,
        report_to="none",
        disable_tqdm=True,
        per_device_eval_batch_size=BATCH_SIZE,
        num_generations_eval=1,
        max_completion_length=MAX_COMPLETION_LENGTH,
        temperature=TEMPERATURE,
    )


def summarize(episodes: Sequence[Turns]) -> dict[str, Estimate]:
    """Give the share of episodes with success, the turns an episode has, and the share with an invalid call.

    An episode without answer is no success.

    Args:
        episodes: rewards of each turn by kind, as `TaggedTools` gives them.
    """
    num_right = sum(turns[-1]["outcome"] == 1.0 for turns in episodes)
    num_invalid = sum(any(turn["format"] != 0.0 for turn in turns) for turns in episodes)
    return {
        "success": wilson(num_right / len(episodes), len(episodes)),
        "turns": mean_estimate([len(turns) for turns in episodes]),
        "invalid": wilson(num_invalid / len(episodes), len(episodes)),
    }


def mean_estimate(values: Sequence[float]) -> Estimate:
    """Give the mean of two or more values with the 95 % interval of the normal distribution."""
    mean = statistics.fmean(values)
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)
