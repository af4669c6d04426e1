"""Responses to batches of prompts, with transformers or vLLM."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch.nn.utils.rnn import pad_sequence

from .plan import Batch


@dataclass(frozen=True)
class Sampling:
    """How responses are drawn.

    Raises:
        ValueError: a number that cannot be.
    """

    max_new_tokens: int = 2048
    temperature: float = 0.0
    """0 takes the likeliest token."""
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if type(self.max_new_tokens) is not int or self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens {self.max_new_tokens!r}: nothing could be said; expected 1 or more.")
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature {self.temperature!r}: expected 0 (the likeliest token) or more.")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p {self.top_p!r}: expected a share above 0 and up to 1.")


class Response(NamedTuple):
    """What the model said."""

    text: str
    """Without special tokens and without what follows a stop string."""
    num_tokens: int
    is_truncated: bool
    """The limit of tokens ended it."""


class Generator(Protocol):
    """Gives one response for each request of a batch, the same for the same batch."""

    def __call__(self, batch: Batch, stop: Sequence[str]) -> list[Response]: ...


class TransformersGenerator:
    """Responses of a transformers model in evaluation mode.

    Args:
        model: causal language model, on its device.
        tokenizer: the model's, with a pad token.
        sampling: how responses are drawn; the model's own defaults for it count for nothing.
    """

    def __init__(self, model: Any, tokenizer: Any, sampling: Sampling) -> None:
        self.model, self.tokenizer, self.sampling = model, tokenizer, sampling

    @torch.no_grad()
    def __call__(self, batch: Batch, stop: Sequence[str]) -> list[Response]:
        """One response for each request; leaves the random state as it was."""
        device = self.model.device
        rows = [torch.tensor(request.prompt_ids, dtype=torch.long) for request in batch.requests]
        ids = pad_sequence(rows, True, self.tokenizer.pad_token_id, "left").to(device)
        mask = pad_sequence([torch.ones_like(row) for row in rows], True, 0, "left").to(device)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(batch.seed)
            output = self.model.generate(input_ids=ids, attention_mask=mask, **self._options(stop))
        return [self._response(row, stop) for row in output[:, ids.size(1) :].tolist()]

    def _options(self, stop: Sequence[str]) -> dict[str, Any]:
        options: dict[str, Any] = {
            "max_new_tokens": self.sampling.max_new_tokens,
            "pad_token_id": self.tokenizer.pad_token_id,
            "eos_token_id": self._ends,
            "repetition_penalty": 1.0,
            "use_cache": True,
        }
        if self.sampling.temperature > 0:
            options |= {"do_sample": True, "temperature": self.sampling.temperature}
            options |= {"top_p": self.sampling.top_p, "top_k": 0}
        else:  # the model's own sampling defaults would only be warned about
            options |= {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        return options | ({"stop_strings": list(stop), "tokenizer": self.tokenizer} if stop else {})

    @property
    def _ends(self) -> list[int]:
        """What may end a response: models of chats say the end of a turn in one of them."""
        said = self.model.generation_config.eos_token_id
        ends = [*(said if isinstance(said, list) else [said]), self.tokenizer.eos_token_id]
        return sorted({end for end in ends if end is not None})

    def _response(self, ids: list[int], stop: Sequence[str]) -> Response:
        ends = {*self._ends, self.tokenizer.pad_token_id}
        length = next((place for place, token in enumerate(ids) if token in ends), None)
        spoken = ids if length is None else ids[:length]
        text, was_stopped = cut_at(self.tokenizer.decode(spoken, skip_special_tokens=True), stop)
        is_whole = length is not None or was_stopped or len(ids) < self.sampling.max_new_tokens
        return Response(text, len(spoken), not is_whole)


class VLLMGenerator:
    """Responses of a vLLM engine; each request has a seed of its own.

    Args:
        engine: a `vllm.LLM`.
        sampling: how responses are drawn.
        make_params: `vllm.SamplingParams`.
        lora: a `vllm.lora.request.LoRARequest`, or None.
    """

    def __init__(self, engine: Any, sampling: Sampling, make_params: Callable[..., Any], lora: Any = None) -> None:
        self.engine, self.sampling, self.make_params, self.lora = engine, sampling, make_params, lora

    def __call__(self, batch: Batch, stop: Sequence[str]) -> list[Response]:
        """One response for each request."""
        params = [
            self.make_params(
                temperature=self.sampling.temperature,
                top_p=self.sampling.top_p,
                max_tokens=self.sampling.max_new_tokens,
                seed=(batch.seed + place) % 2**63,
                stop=list(stop) or None,
            )
            for place in range(len(batch.requests))
        ]
        prompts = [{"prompt_token_ids": list(request.prompt_ids)} for request in batch.requests]
        outputs = self.engine.generate(prompts, params, use_tqdm=False, lora_request=self.lora)
        first = [output.outputs[0] for output in outputs]
        return [Response(said.text, len(said.token_ids), said.finish_reason == "length") for said in first]


def cut_at(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop string in it, and whether there is one."""
    places = [text.find(string) for string in stop if string in text]
    return (text[: min(places)], True) if places else (text, False)
