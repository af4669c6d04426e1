"""What a model makes of each token of a solution."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .solutions import Solution

SEPARATOR = "\n\n"
TOO_LONG, EMPTY_STEP = "longer than the model can read", "with a step that has no token"
CHUNK = 256  # positions whose distributions are held at once


@dataclass(frozen=True)
class TokenScores:
    """The S tokens of a solution's steps, those of the environment left out."""

    steps: Tensor
    """(S,), which step a token belongs to: the one in which its first character lies."""
    log_probs: Tensor
    """(S,) in nats, as all here in float32."""
    mode_log_probs: Tensor
    """(S,), of the likeliest token."""
    is_mode: Tensor
    """(S,) bool."""
    entropies: Tensor
    """(S,) in nats."""


@dataclass(frozen=True)
class Encoded:
    """A solution as the model reads it."""

    ids: Tensor
    """(L,)."""
    steps: Tensor
    """(L,), -1 for tokens of the problem and the environment."""


def score_solutions(
    solutions: Sequence[Solution], model: Any, tokenizer: Any, batch_size: int = 4, max_length: int | None = None
) -> Iterator[tuple[Solution, TokenScores | str]]:
    """Scores of each solution, those of like length together; or why it has none, TOO_LONG or EMPTY_STEP.

    Args:
        solutions: failed ones.
        model: causal language model in evaluation mode.
        tokenizer: a fast one; with a chat template the problem is a message of the user.
        batch_size: solutions in a forward.
        max_length: tokens that the model can read.

    Raises:
        ValueError: a tokenizer that cannot say where its tokens begin.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError("tokenizer: cannot say where its tokens begin in the text; expected a fast one.")
    encoded = [(solution, encode(solution, tokenizer)) for solution in solutions]
    fitting = []
    for solution, code in encoded:
        if max_length is not None and len(code.ids) > max_length:
            yield solution, TOO_LONG
        elif len(set(code.steps.tolist()) - {-1}) < solution.num_steps:
            yield solution, EMPTY_STEP
        else:
            fitting.append((solution, code))
    fitting.sort(key=lambda pair: len(pair[1].ids))
    for start in range(0, len(fitting), batch_size):
        batch = fitting[start : start + batch_size]
        scores = _score([code for _, code in batch], model)
        yield from zip([solution for solution, _ in batch], scores, strict=True)


def encode(solution: Solution, tokenizer: Any) -> Encoded:
    """The problem and the solution as tokens with their steps."""
    has_chat = bool(tokenizer.chat_template)
    if has_chat:
        message = [{"role": "user", "content": solution.problem}]
        prompt = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
    else:
        prompt = f"{solution.problem}{SEPARATOR}"
    text, ends = prompt, [(len(prompt), -1)]
    for segment in solution.segments:
        text += segment.text + SEPARATOR
        ends.append((len(text), -1 if segment.step is None else segment.step))
    found = tokenizer(text, add_special_tokens=not has_chat, return_offsets_mapping=True)
    special = set(tokenizer.all_special_ids)
    steps = []
    place = 0
    for token, (first, _) in zip(found["input_ids"], found["offset_mapping"], strict=True):
        while place < len(ends) - 1 and first >= ends[place][0]:
            place += 1
        steps.append(-1 if token in special else ends[place][1])
    return Encoded(torch.tensor(found["input_ids"]), torch.tensor(steps))


@torch.no_grad()
def _score(batch: Sequence[Encoded], model: Any) -> list[TokenScores]:
    ids = pad_sequence([code.ids for code in batch], batch_first=True).to(model.device)
    mask = pad_sequence([torch.ones_like(code.ids) for code in batch], batch_first=True).to(model.device)
    logits = model(input_ids=ids, attention_mask=mask).logits
    return [_scores_of(code, row) for code, row in zip(batch, logits, strict=True)]


def _scores_of(code: Encoded, logits: Tensor) -> TokenScores:
    where = (code.steps[1:] >= 0).nonzero().squeeze(1)  # the first token of all has nothing before it
    targets = code.ids[1:][where]
    parts = []
    for places, wanted in zip(where.split(CHUNK), targets.split(CHUNK), strict=True):
        log_probs = logits[places].float().log_softmax(dim=-1).cpu()
        own = log_probs.gather(1, wanted.unsqueeze(1)).squeeze(1)
        mode = log_probs.amax(dim=1)
        parts.append((own, mode, own == mode, -(log_probs.exp() * log_probs).nan_to_num(nan=0.0).sum(dim=1)))
    own, mode, is_mode, entropies = (torch.cat(column) for column in zip(*parts, strict=True))
    return TokenScores(code.steps[1:][where], own, mode, is_mode, entropies)
