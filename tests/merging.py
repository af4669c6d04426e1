"""A tokenizer on which decoding and encoding again changes ids."""

from tiny import CHAT_TEMPLATE
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAIR_ID = 256


def merging_tokenizer():
    """The byte tokenizer with a merge: `a` and `b` (ids 64 and 65) become 256 if encoded, and stay two if sampled."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(alphabet)} | {"ab": PAIR_ID}
    core = Tokenizer(models.BPE(vocab=vocab, merges=[("a", "b")]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
