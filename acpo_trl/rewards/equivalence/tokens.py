"""The tokens of an expression, read from left to right."""

import re

_TOKEN = re.compile(r"\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+|\\[A-Za-z]+|\\.|\S)", re.DOTALL)


class Unreadable(Exception):
    """The text is not what it should be: an expression of numbers, variables and elementary functions."""


class Tokens:
    """A text as tokens, and how far it has been read."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = _TOKEN.findall(text)
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            raise Unreadable("ends too early")
        self.position += 1
        return token

    def skip(self, *tokens: str) -> bool:
        found = self.peek() in tokens
        self.position += found
        return found

    def expect(self, token: str) -> None:
        if not self.skip(token):
            raise Unreadable(f"expected {token}")

    def raw_argument(self) -> str:
        """Give the text of the next argument without evaluating it."""
        if self.peek() != "{":
            return self.take()
        self.take()
        start, depth = self.position, 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.take(), 0)
        return "".join(self.tokens[start : self.position - 1])
