"""How often a model is right on held-out problems, and how sure that is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from ..rewards import MathReward
from .warm_start import question

NUM_SAMPLES = 4
TEMPERATURE = 1.0  # as in training
MAX_NEW_TOKENS = 56


@dataclass
class Estimate:
    """A mean with a 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:6.2f} [{self.low:.2f}, {self.high:.2f}]"

    def change_to(self, later: "Estimate") -> str:
        """Give the difference of the means in words."""
        return f"{later.mean - self.mean:+.2f}"


class Accuracy(Estimate):
    """A share in 0 to 1."""

    def __str__(self) -> str:
        return f"{self.mean:6.1%} [{self.low:.1%}, {self.high:.1%}]"

    def change_to(self, later: Estimate) -> str:
        return f"{100 * (later.mean - self.mean):+.1f} points"


def measure(model_folder: Path, rows: Sequence[dict[str, str]], seed: int = 0) -> dict[str, Accuracy]:
    """Give the accuracy of `sampled` answers (mean of `NUM_SAMPLES`) and of `greedy` ones on `rows`."""
    tokenizer = AutoTokenizer.from_pretrained(model_folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(model_folder).eval()
    torch.manual_seed(seed)
    sampling = {"do_sample": True, "temperature": TEMPERATURE, "top_k": 0, "num_return_sequences": NUM_SAMPLES}
    return {
        "sampled": score(answer(model, tokenizer, rows, **sampling), rows),
        "greedy": score(answer(model, tokenizer, rows, do_sample=False), rows),
    }


@torch.no_grad()
def answer(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rows: Sequence[dict[str, str]], **generation: object
) -> list[str]:
    """Give the model's answers, those to one problem side by side."""
    questions = [question(tokenizer, row["prompt"]) for row in rows]
    inputs = tokenizer(questions, return_tensors="pt", padding=True)
    outputs = model.generate(**inputs, max_new_tokens=MAX_NEW_TOKENS, **generation)
    return tokenizer.batch_decode(outputs[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


def score(answers: Sequence[str], rows: Sequence[dict[str, str]]) -> Accuracy:
    """Give the accuracy of `answers`, an equal number for each row, by the reward that trained the model."""
    repeats = len(answers) // len(rows)
    scores = MathReward()(answers, solution=[row["solution"] for row in rows for _ in range(repeats)])
    known = [score for score in scores if score is not None]
    return wilson(sum(known) / len(known), len(rows))


def wilson(mean: float, n: int) -> Accuracy:
    """Give Wilson's 95 % score interval around the share `mean` of `n` problems.

    Several samples a problem only narrow the true interval, so for their mean this one is on the safe side.
    """
    z2 = 1.96**2
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (mean * (1 - mean) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return Accuracy(mean, centre - half, centre + half)
