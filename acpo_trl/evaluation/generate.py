"""Responses to batches of prompts, with transformers or vLLM."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch

from .plan import Batch


@dataclass(frozen=True)
class Sampling:
    """How responses are drawn."""

    max_new_tokens: int = 2048
    temperature: float = 0.0
    """0 takes the likeliest token."""
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if type(self.max_new_tokens) is not int or self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens {self.max_new_tokens!r}: nothing could be said; expected 1 or more.")
        if not self.temperature >= 0:
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
    """Responses of a transformers model.

    Args:
        model: causal language model, on its device.
        tokenizer: the model's.
        sampling: how responses are drawn.
        is_sharded: every process takes part in each forward, so that all wait for the longest response.
    """

    def __init__(self, model: Any, tokenizer: Any, sampling: Sampling, is_sharded: bool = False) -> None:
        self.model, self.tokenizer, self.sampling, self.is_sharded = model, tokenizer, sampling, is_sharded

    @torch.no_grad()
    def __call__(self, batch: Batch, stop: Sequence[str]) -> list[Response]:
        """One response for each request; leaves the random state as it was."""
        rows = [list(request.prompt_ids) for request in batch.requests]
        inputs = self.tokenizer.pad({"input_ids": rows}, padding_side="left", return_tensors="pt").to(self.model.device)
        devices = [self.model.device] if self.model.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(batch.seed)
            output = self.model.generate(**inputs, **self._options(stop))
        return [self._response(row, stop) for row in output[:, inputs["input_ids"].size(1) :].tolist()]

    def _options(self, stop: Sequence[str]) -> dict[str, Any]:
        options: dict[str, Any] = {"max_new_tokens": self.sampling.max_new_tokens, "synced_gpus": self.is_sharded}
        options |= {"pad_token_id": self.tokenizer.pad_token_id, "repetition_penalty": 1.0}
        if self.sampling.temperature > 0:
            options |= {"do_sample": True, "temperature": self.sampling.temperature, "top_p": self.sampling.top_p}
            options |= {"top_k": 0}
        else:  # the model's own sampling defaults would only be warned about
            options |= {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        return options | ({"stop_strings": list(stop), "tokenizer": self.tokenizer} if stop else {})

    def _response(self, ids: list[int], stop: Sequence[str]) -> Response:
        ends = self.model.generation_config.eos_token_id
        ends = {*(ends if isinstance(ends, list) else [ends]), self.tokenizer.eos_token_id, self.tokenizer.pad_token_id}
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
        params = [
            self.make_params(
                temperature=self.sampling.temperature,
                top_p=self.sampling.top_p,
                max_tokens=self.sampling.max_new_tokens,
                seed=batch.seed + place,
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
