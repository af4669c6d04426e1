"""Text with its special tokens marked: what somebody wrote never becomes a token of the template."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

# From Unicode's private use area: marked text never holds them as its own, because `TextCodec.mark` marks them too.
OPEN, CLOSE, HERE = "\ue000", "\ue001", "\ue002"


def without_surrogates(text: str) -> str:
    """Give a text that a tokenizer takes: halves of a character joined, and a replacement sign for a lone half."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class TextCodec:
    """Text to ids and back, with marks for special tokens that are to be ordinary text.

    A tool result with `<|im_end|>` in it must end no turn. So `mark` puts a mark in the place of each special token in
    what people and tools wrote, and `encode` can tell it from a special token of the template.

    Args:
        tokenizer: of transformers.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def mark(self, value: Any) -> Any:
        """Give a string, or all in a list or dictionary, with its special tokens marked."""
        if isinstance(value, str):
            return self._markable.sub(lambda match: f"{OPEN}{self._marked.index(match[0])}{CLOSE}", value)
        if isinstance(value, Mapping):
            return {key: self.mark(item) for key, item in value.items()}
        return [self.mark(item) for item in value] if isinstance(value, list | tuple) else value

    def encode(self, text: str) -> list[int]:
        """Give the ids of marked text; special tokens with a mark become ordinary text."""
        ids: list[int] = []
        for index, piece in enumerate(re.split(f"{OPEN}(\\d+){CLOSE}", text)):
            literal = index % 2 == 1
            piece = self._marked[int(piece)] if literal else piece
            ids += self.tokenizer.encode(piece, add_special_tokens=False, split_special_tokens=literal)
        return ids

    def encode_exact(self, text: str) -> list[int]:
        """Give the ids of marked text of the policy.

        Raises:
            ValueError: they decode to something else.
        """
        ids = self.encode(text)
        decoded = self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)
        if decoded != self.plain(text):
            raise ValueError(
                f"text {self.plain(text)!r}: the tokenizer gives it back as {decoded!r} (it may normalise Unicode); "
                "expected the same; normalise the text first or leave the row out."
            )
        return ids

    def plain(self, text: str) -> str:
        """Give the text without marks, as it was."""
        return re.sub(f"{OPEN}(\\d+){CLOSE}", lambda match: self._marked[int(match[1])], text)

    @cached_property
    def _marked(self) -> list[str]:
        added = self.tokenizer.added_tokens_decoder.values()
        special = {token.content for token in added if token.special} | set(self.tokenizer.all_special_tokens)
        return [*sorted(special, key=lambda token: (-len(token), token)), OPEN, CLOSE, HERE]

    @cached_property
    def special(self) -> re.Pattern[str]:
        """Finds special tokens in marked text: those of the template."""
        return _any_of(self._marked[:-3])

    @cached_property
    def _markable(self) -> re.Pattern[str]:
        return _any_of(self._marked)


def _any_of(texts: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, texts)) or "(?!)")
