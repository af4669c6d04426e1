"""Tokenizer and loading options of the model, checked before its weights are read."""

from typing import Any

from accelerate.logging import get_logger
from transformers import AutoProcessor
from trl import ModelConfig

from ..trainer import ACPOConfig

logger = get_logger(__name__)


def load_processor(
    name: str | None, revision: str | None, trust_remote_code: bool, option: str = "model_name_or_path"
) -> Any:
    """The model's tokenizer (or processor), padding on the left as generation needs.

    Args:
        name: of the model, on the Hub or a folder.
        revision: of the Hub.
        trust_remote_code: run code that lies with the model.
        option: that `name` comes from.

    Raises:
        ValueError: no model is named or found, or its tokenizer has no end token.
    """
    if not name:
        raise ValueError(f"{option} None: there is no model; expected a Hub name or a folder; set it.")
    try:
        processor = AutoProcessor.from_pretrained(
            name,
            revision=revision,
            trust_remote_code=trust_remote_code,
            padding_side="left",
            truncation_side="left",
        )
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{option} {name!r}: no tokenizer could be loaded from it ({error}); expected a folder with model and "
            "tokenizer, or a Hub name; check the spelling and the connection."
        ) from error
    check_special_tokens(getattr(processor, "tokenizer", processor), name)
    return processor


def check_special_tokens(tokenizer: Any, name: str) -> None:
    """Raise ValueError without an end token; say what pads when there is no pad token."""
    if tokenizer.eos_token is None:
        raise ValueError(
            f"tokenizer of {name!r}: has no eos token, so no completion could end, nor be padded without a pad token; "
            "expected one; set eos_token in its tokenizer_config.json."
        )
    if not tokenizer("a")["input_ids"]:
        raise ValueError(
            f"tokenizer of {name!r}: encodes text to nothing, as one does that is built from a folder without "
            "tokenizer files; expected tokenizer.json beside the model; save the tokenizer there."
        )
    if tokenizer.pad_token is None:
        logger.warning(f"Tokenizer of {name!r} has no pad token: {tokenizer.eos_token!r} pads, masked out of the loss.")


def model_init_kwargs(model_args: ModelConfig, training_args: ACPOConfig) -> dict[str, Any]:
    """Arguments of `from_pretrained`; `model_init_kwargs` of the config win."""
    return {
        "revision": model_args.model_revision,
        "trust_remote_code": training_args.trust_remote_code,
        "attn_implementation": model_args.attn_implementation,
        "dtype": model_args.dtype,
        **(training_args.model_init_kwargs or {}),
    }
