"""Texts of single tokens: together they are the whole text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared import shared_file
from tiny import byte_tokenizer
from tokenizers import Tokenizer, decoders, models
from transformers import AutoTokenizer

from acpo_trl.records.pieces import pieces_of

TEXTS = [
    "plain words, and 12 + 30 = 42",
    " naïve café, 价格 42€\n\n🙂👩‍👩‍👧 done",
    "",
    "�",
    "<|im_start|>user\nhi<|im_end|>",
]
BYTES = byte_tokenizer()


@pytest.mark.parametrize("text", TEXTS)
def test_a_character_of_several_tokens_is_told_by_its_last(text):
    ids = BYTES.encode(text)
    pieces = pieces_of(ids, BYTES.decode)
    assert len(pieces) == len(ids)
    assert "".join(pieces) == text
    assert all(len(piece) <= 1 or piece.startswith("<|") for piece in pieces) or "�" in text


def test_an_euro_sign_is_three_bytes():
    assert pieces_of(BYTES.encode("a€b"), BYTES.decode) == ["a", "", "", "€", "b"]


@given(st.lists(st.integers(0, 258), max_size=60))
def test_bytes_that_are_no_text_are_not_lost(ids):
    assert "".join(pieces_of(ids, BYTES.decode)) == BYTES.decode(ids)


@given(st.lists(st.sampled_from([0x80, 0xE2, 0x82, 0xAC, 0x41, 0xF0, 258]), max_size=60))
def test_characters_cut_anywhere_are_not_lost(codes):
    ids = [code if code == 258 else BYTES.encode("A")[0] if code == 0x41 else byte_id(code) for code in codes]
    assert "".join(pieces_of(ids, BYTES.decode)) == BYTES.decode(ids)


def byte_id(code):
    """The token of a byte."""
    char = {0x80: "Ģ", 0xE2: "â", 0x82: "Ĥ", 0xAC: "¬", 0xF0: "ð"}[code]
    return BYTES.convert_tokens_to_ids(char)


@pytest.mark.parametrize("text", TEXTS)
def test_a_real_tokenizer_with_merged_bytes(text):
    tokenizer = AutoTokenizer.from_pretrained(shared_file("data/tokenizers/qwen3_mini"))
    ids = tokenizer.encode(text)
    pieces = pieces_of(ids, tokenizer.decode)
    assert (len(pieces), "".join(pieces)) == (len(ids), tokenizer.decode(ids))


def test_a_tokenizer_that_drops_the_first_space_and_takes_back_text():
    """As Llama's: one byte that is no text makes all bytes around it no text."""
    vocabulary = {"▁a": 0, "b": 1, "<0xE2>": 2, "<0x82>": 3, "<0xAC>": 4, "<0xFF>": 5}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    core.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    assert pieces_of([0, 0, 1], core.decode) == ["a", " a", "b"]
    assert pieces_of([0, 2, 3, 4, 1], core.decode) == ["a", "", "", "€", "b"]
    ids = [0, 2, 3, 4, 5, 1, 0]
    assert "".join(pieces_of(ids, core.decode)) == core.decode(ids) == "a����b a"


def test_the_work_grows_with_the_tokens_even_if_they_are_no_text():
    decoded = []

    def decode(ids):
        decoded.append(len(ids))
        return BYTES.decode(ids)

    for size in (1000, 4000):
        for ids in ([byte_id(0x80)] * size, BYTES.encode("x" * size)):
            decoded.clear()
            pieces_of(ids, decode)
            assert sum(decoded) < 8 * size
