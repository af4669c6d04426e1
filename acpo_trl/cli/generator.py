"""The model of an evaluation: found and told apart from others before its weights are read, then loaded."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from ..evaluation.generate import Generator, Sampling, TransformersGenerator, VLLMGenerator

NUM_CHUNKS, CHUNK_BYTES = 16, 2**16
ADAPTER_CONFIG = "adapter_config.json"


@dataclass(frozen=True)
class ModelChoice:
    """Which model, and how it is loaded."""

    name: str
    adapter: str | None = None
    """Folder or Hub name of a LoRA adapter."""
    revision: str | None = None
    dtype: str = "auto"
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    vllm_options: Mapping[str, Any] | None = None
    """Arguments of `vllm.LLM`; None: transformers generates."""

    def __post_init__(self) -> None:
        if self.dtype != "auto" and not isinstance(getattr(torch, self.dtype, None), torch.dtype):
            raise ValueError(f"dtype {self.dtype!r}: is none of torch; expected auto, float32, bfloat16 or float16.")

    @property
    def tokenizer(self) -> str:
        """Where the tokenizer lies: beside the adapter, if it was saved there."""
        has_own = self.adapter is not None and (Path(self.adapter) / "tokenizer_config.json").is_file()
        return self.adapter if self.adapter is not None and has_own else self.name


class Known(NamedTuple):
    """What is known of a model without its weights."""

    identity: dict[str, Any]
    """As JSON, another one for other weights."""
    max_length: int | None
    """How many tokens it can read."""


def choose_model(model: str, adapter: str | None, **how: Any) -> ModelChoice:
    """The choice, with the base model in front where `model` is the folder of an adapter.

    Raises:
        ValueError: an adapter on an adapter.
    """
    file = Path(model) / ADAPTER_CONFIG
    if not file.is_file() or (Path(model) / "config.json").is_file():
        return ModelChoice(model, adapter, **how)
    if adapter is not None:
        raise ValueError(
            f"model {model!r} is an adapter, and adapter {adapter!r} is another; expected one of them; name the base "
            "model with `model`."
        )
    base = json.loads(file.read_text(encoding="utf-8"))["base_model_name_or_path"]
    return ModelChoice(base, model, **how)


def look_at(choice: ModelChoice) -> Known:
    """What the configuration and the files of a model tell.

    Raises:
        ValueError: there is no such model, or no such adapter.
    """
    try:
        config = AutoConfig.from_pretrained(
            choice.name, revision=choice.revision, trust_remote_code=choice.trust_remote_code
        )
    except (OSError, ValueError) as error:
        raise ValueError(
            f"model {choice.name!r}: no configuration could be loaded from it ({' '.join(str(error).split())}); "
            "expected the folder of a model, or a Hub name; check the spelling and the connection."
        ) from error
    if choice.adapter is not None and not (Path(choice.adapter) / ADAPTER_CONFIG).is_file():
        raise ValueError(f"adapter {choice.adapter!r}: has no {ADAPTER_CONFIG}; expected the folder of an adapter.")
    identity = {
        "name": choice.name,
        "commit": getattr(config, "_commit_hash", None),
        "weights": weights_digest(Path(choice.name)),
        "adapter": choice.adapter,
        "adapter_weights": weights_digest(Path(choice.adapter)) if choice.adapter else None,
        "dtype": choice.dtype,
        "backend": "transformers" if choice.vllm_options is None else "vllm",
    }
    return Known(identity, getattr(config.get_text_config(), "max_position_embeddings", None))


def weights_digest(folder: Path) -> str | None:
    """A digest of chunks from all over the weights, which training changes everywhere; None if there is no folder."""
    if not folder.is_dir():
        return None
    digest = blake2b(digest_size=16)
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin"), *folder.glob("*config.json")]):
        size = path.stat().st_size
        digest.update(f"{path.name} {size} ".encode())
        with path.open("rb") as file:
            for place in range(NUM_CHUNKS):
                file.seek(place * max(size - CHUNK_BYTES, 0) // (NUM_CHUNKS - 1))
                digest.update(file.read(CHUNK_BYTES))
    return digest.hexdigest()


def load_generator(choice: ModelChoice, tokenizer: Any, sampling: Sampling, device: Any) -> Generator:
    """The model, ready to answer."""
    if choice.vllm_options is not None:
        return load_vllm(choice, sampling)
    return TransformersGenerator(load_model(choice, device), tokenizer, sampling)


def load_model(choice: ModelChoice, device: Any) -> Any:
    """The model of transformers in evaluation mode, with its adapter."""
    model = AutoModelForCausalLM.from_pretrained(
        choice.name,
        revision=choice.revision,
        trust_remote_code=choice.trust_remote_code,
        dtype=choice.dtype,
        attn_implementation=choice.attn_implementation,
    )
    if choice.adapter is not None:
        model.load_adapter(choice.adapter)
    return model.to(device).eval()


def check_vllm(choice: ModelChoice, num_processes: int) -> None:
    """Raise ValueError if vLLM is wanted and cannot be had."""
    if choice.vllm_options is None:
        return
    if num_processes > 1:
        raise ValueError(
            f"use_vllm in {num_processes} processes: each would load the model anew; expected one process; set "
            "tensor_parallel_size or data_parallel_size in vllm_options."
        )
    try:
        import vllm  # noqa: F401
    except ImportError as error:
        raise ValueError(f"use_vllm: vllm cannot be imported ({error}); run `pip install 'acpo-trl[vllm]'`.") from error


def load_vllm(choice: ModelChoice, sampling: Sampling) -> VLLMGenerator:
    """The model in an engine of vLLM."""
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    engine = LLM(
        **{
            "model": choice.name,
            "revision": choice.revision,
            "dtype": choice.dtype,
            "trust_remote_code": choice.trust_remote_code,
            "enable_lora": choice.adapter is not None,
            **(choice.vllm_options or {}),
        }
    )
    lora = None if choice.adapter is None else LoRARequest("adapter", 1, choice.adapter)
    return VLLMGenerator(engine, sampling, SamplingParams, lora)
