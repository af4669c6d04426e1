"""A tokenizer on which decoding and encoding again changes ids."""

from tiny import byte_tokenizer
from tokenizers import models, pre_tokenizers

PAIR_ID = 255


def merging_tokenizer():
    """The byte tokenizer with a merge: `a` and `b` (ids 64 and 65) become 255 if encoded, and stay two if sampled."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: index for index, letter in enumerate(alphabet[:PAIR_ID])} | {"ab": PAIR_ID}
    tokenizer = byte_tokenizer()
    tokenizer.backend_tokenizer.model = models.BPE(vocab=vocab, merges=[("a", "b")])
    return tokenizer
