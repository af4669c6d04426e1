"""Texts of single tokens."""

from collections.abc import Callable, Sequence
from itertools import pairwise

_UNFINISHED = "\ufffd"
_SHORT = 8
"""Tokens that a character may well take."""


def pieces_of(ids: Sequence[int], decode: Callable[[list[int]], str]) -> list[str]:
    """The text that each token adds; put together, they are the whole text.

    A token that ends inside a character adds "", and the one that ends the character adds it. Each token is decoded
    behind the ones before it, for some tokenizers drop the space in front of the first. The work grows with the number
    of tokens only.

    Args:
        ids: tokens.
        decode: gives the text of tokens, special ones too.
    """
    pieces: list[str] = []
    context, start = 0, 0  # what was decoded last, and the first token whose text is still to come
    shown = ""
    for end in range(1, len(ids) + 1):
        is_last, waiting = end == len(ids), end - start
        # Bytes that are no text may go on and on: then one looks less and less often.
        is_asked = is_last or waiting <= _SHORT or waiting & (waiting - 1) == 0
        text = decode(list(ids[context:end])) if is_asked else _UNFINISHED
        if text.endswith(_UNFINISHED) and not is_last:
            pieces.append("")
            continue
        pieces.append(text[len(shown) :])
        context, start = start, end
        shown = decode(list(ids[context:end]))
    whole = decode(list(ids)) if ids else ""
    return pieces if "".join(pieces) == whole else _cut(whole, [len(piece) for piece in pieces])


def _cut(whole: str, lengths: Sequence[int]) -> list[str]:
    """A text in pieces of these lengths, the last of which takes the rest: where a token changes text before it."""
    ends = [0]
    for length in lengths[:-1]:
        ends.append(ends[-1] + length)
    return [whole[start:end] for start, end in pairwise([*ends, max(len(whole), ends[-1])])]
