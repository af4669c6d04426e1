"""Plain data between a program and its tests: JSON with a tag for what JSON does not have.

Nothing else crosses, so the tests never touch an object whose class the program wrote.
"""

import json
import os
import struct
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

MAX_MESSAGE_BYTES = 32 * 2**20
_MAX_JSON_INT = 2**63
_MAX_DEPTH = 200
_SEQUENCES = {kind.__name__: kind for kind in (tuple, set, frozenset, deque)}
_ATOMS = {kind.__name__: kind for kind in (Decimal, Fraction)}
_TYPES = {kind.__name__: kind for kind in (bool, int, float, complex, str, bytes, tuple, list, set, frozenset, dict)}
_PLAIN = (bool, int, float, complex, str, bytes, bytearray, tuple, list, set, frozenset, deque, dict)


class Channel:
    """A stream of messages over two descriptors, which may be the same.

    Raises:
        EOFError: from `receive`: the other side ended, or does not keep to the format.
        OSError: from `send`: the other side ended.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = reading, writing

    def send(self, message: object) -> None:
        body = json.dumps(message, separators=(",", ":")).encode()
        view = memoryview(struct.pack("!I", len(body)) + body)
        while view:
            view = view[os.write(self.writing, view) :]

    def receive(self) -> Any:
        (size,) = struct.unpack("!I", self._read(4))
        if size > MAX_MESSAGE_BYTES:
            raise EOFError("message too long")
        try:
            return json.loads(self._read(size))
        except (ValueError, RecursionError) as error:
            raise EOFError("not a message") from error

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            part = os.read(self.reading, min(size, 2**20))
            if not part:
                raise EOFError("closed")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def pack(value: Any, refer: Callable[[object], dict], depth: int = 0) -> Any:
    """Give the value as JSON data.

    Args:
        value: plain data; a value of a subclass of a plain type crosses as that type.
        refer: gives the message for a value that is not plain, or raises.

    Raises:
        ValueError: it is nested too deeply, or contains itself.
    """
    kind = type(value)
    if value is None or kind in (bool, str, float):
        return value
    if kind is int:
        return value if -_MAX_JSON_INT < value < _MAX_JSON_INT else {"int": hex(value)}
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    if kind is list:
        return [pack(item, refer, depth + 1) for item in value]
    if kind is dict:
        return {"dict": [[pack(key, refer, depth + 1), pack(item, refer, depth + 1)] for key, item in value.items()]}
    if kind.__name__ in _SEQUENCES and kind is _SEQUENCES[kind.__name__]:
        return {kind.__name__: [pack(item, refer, depth + 1) for item in value]}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind in (bytes, bytearray):
        return {kind.__name__: value.decode("latin-1")}
    if kind in (Decimal, Fraction):
        return {kind.__name__: str(value)}
    if kind is range:
        return {"range": [pack(item, refer) for item in (value.start, value.stop, value.step)]}
    if kind is type and value in _TYPES.values():
        return {"type": value.__name__}
    for plain in _PLAIN:
        if issubclass(kind, plain):
            return pack(plain(value), refer, depth + 1)
    return refer(value)


def unpack(data: Any, resolve: Callable[[str, Any], object]) -> Any:
    """Give the value of JSON data.

    Args:
        data: what `pack` gave; from an untrusted side it may be anything.
        resolve: gives the value for the message of something that is not plain: its tag and its content.

    Raises:
        ValueError, TypeError: it is no such data.
    """
    if isinstance(data, list):
        return [unpack(item, resolve) for item in data]
    if not isinstance(data, dict):
        return data
    ((tag, content),) = data.items()
    if tag == "int":
        return int(content, 16)
    if tag == "dict":
        return {unpack(key, resolve): unpack(item, resolve) for key, item in content}
    if tag in _SEQUENCES:
        return _SEQUENCES[tag](unpack(item, resolve) for item in content)
    if tag == "complex":
        return complex(*content)
    if tag in ("bytes", "bytearray"):
        raw = content.encode("latin-1")
        return raw if tag == "bytes" else bytearray(raw)
    if tag == "type":
        return _TYPES[content]
    if tag in _ATOMS:
        return _ATOMS[tag](content)
    if tag == "range":
        return range(*(unpack(item, resolve) for item in content))
    return resolve(tag, content)
