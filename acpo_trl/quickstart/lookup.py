"""The embedded task of several turns: `lookup` with tags, shown by a player who does not know which sign to follow."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any

import torch
from tokenizers import AddedToken
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from ..envs import Lookup, TaggedTools, lookup_tasks
from ..envs.lookup import QUESTION
from ..rollouts import Episode, episode_from_tagged, to_tensors
from .model import build_model, train_tokenizer
from .start import build_once, save, write_problems
from .warm_start import BATCH_SIZE, fit

VERSION = 1  # raise it when the same seed is to give another folder
NUM_TRAIN, NUM_TEST = 4000, 300
TEST_SEED = 1_000_000  # added to the seed: held-out decks are other ones
MAX_HOPS = 4
MAX_TURNS = 8
# So the demonstrations show the protocol, but not which sign is the right one.
FOLLOW = 0.5
NUM_STEPS = 250
TAGS = ("<look>", "</look>", "<information>", "</information>", "<answer>", "</answer>")

make_environment = partial(TaggedTools, Lookup)


def build_lookup_start(folder: Path, seed: int, num_steps: int = NUM_STEPS) -> bool:
    """Fill `folder` like `build_start`, for `lookup` with 1 to `MAX_HOPS` cards on the path."""

    def fill(building: Path) -> None:
        train = lookup_tasks(NUM_TRAIN, seed, max_hops=MAX_HOPS)
        write_problems(building, train, lookup_tasks(NUM_TEST, TEST_SEED + seed, max_hops=MAX_HOPS))
        tokenizer = build_lookup_tokenizer()
        model = build_model(tokenizer, seed)
        rng = random.Random(seed)
        shown = [episode_from_tagged(row["prompt"], demonstration(row, rng), tokenizer) for row in train]
        fit(model, batches(shown, tokenizer.pad_token_id, rng), num_steps)
        save(building, model, tokenizer)

    return build_once(folder, {"version": VERSION, "seed": seed, "warm_start_steps": num_steps}, fill)


def build_lookup_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer in which a tag is one token, and so is a sign with what it points to (`=k`, `!3`)."""
    environment = make_environment()
    environment.reset(**lookup_tasks(1, seed=0)[0])
    complaints = [environment.step(action).observation for action in ("", "<look>?</look>")]
    tokenizer = train_tokenizer([f"user\n{QUESTION}", "assistant\n", *complaints] * 10, vocab_size=400)
    signed = [sign + target for sign, target in product("=!", ascii_lowercase + digits)]
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in (*TAGS, *signed)])
    return tokenizer


def demonstration(row: Mapping[str, Any], rng: random.Random, follow: float = FOLLOW) -> str:
    """Give the text of an episode of a player who knows the tags, but throws a coin for the sign on each card.

    Args:
        row: of `lookup_tasks`.
        rng: throws the coin.
        follow: the probability that it says `=`.
    """
    environment = make_environment()
    environment.reset(**row)
    text, card = "", row["path"][0]
    for _ in range(MAX_TURNS):
        action = f"<answer>{card}</answer>" if card.isdigit() else f"<look>{card}</look>"
        step = environment.step(action)
        text += action + step.observation
        if step.done:
            break
        targets = dict(re.findall("([=!])(.)", step.observation))
        card = targets["=" if rng.random() < follow else "!"]
    return text


def batches(episodes: Sequence[Episode], pad_token_id: int, rng: random.Random) -> Iterator[dict[str, Tensor]]:
    """Give endless batches of random episodes; only what the player wrote has labels."""
    while True:
        batch = to_tensors(rng.choices(episodes, k=BATCH_SIZE), pad_token_id)
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        is_action = torch.cat([torch.zeros_like(batch["prompt_mask"]), batch["tool_mask"]], dim=1).bool()
        yield {
            "input_ids": ids,
            "attention_mask": torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
            "labels": ids.masked_fill(~is_action, -100),
        }
