"""The tests' side: stand-ins for the names and objects of the program, which is another process.

A stand-in forwards calls, attributes, items and iteration. It never forwards a comparison, a truth value, arithmetic or
`in`: their outcome would be the program's word, and their operand would tell it the expected value.
"""

import builtins
from collections.abc import Callable, Iterator
from typing import Any

from .wire import Channel, pack, unpack


class ProgramEnded(Exception):
    """The program is gone, or no longer keeps to the format."""


class Unsupported(Exception):
    """The tests ask for something that cannot be done over the border."""


class Program:
    """The program behind a channel.

    Set `allow_objects` where its functions may give objects of its own classes, not only plain data and iterators.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.allow_objects = False
        self.stand_ins: dict[int, Remote] = {}
        self.is_ready = False
        self.num_requests = 0
        self.unsupported = ""
        self.end: ProgramEnded | None = None

    def wait_until_ready(self) -> None:
        """Return when the program has run once from top to bottom; raise what it raised."""
        self._reply()
        self.is_ready = True

    def name(self, expression: str) -> "Remote":
        """Give the stand-in for a name of the program, or for an expression such as `Solution().solve`.

        It is looked up at its first use, so that a missing name fails the test that needs it.
        """
        return Remote(self, lambda: self._ask(do="name", name=expression)["object"])

    def call(self, place: int, positional: tuple, named: dict) -> Any:
        packed = [self._pack(value) for value in positional]
        reply = self._exchange(do="call", on=place, positional=packed, named=self._pack(named))
        for index, value in reply.get("changed", {}).items():
            _replace(positional[int(index)], self._unpack(value))
        return self._unpack(reply["value"])

    def get(self, place: int, name: str) -> Any:
        return self._unpack(self._ask(do="get", on=place, name=name))

    def set(self, place: int, name: str, value: object) -> None:
        self._ask(do="set", on=place, name=name, value=self._pack(value))

    def next(self, place: int) -> Any:
        reply = self._exchange(do="next", on=place)
        if "is_end" in reply:
            raise StopIteration
        return self._unpack(reply["value"])

    def _pack(self, value: object) -> Any:
        try:
            return pack(value, _refer)
        except Unsupported as error:
            self.unsupported = str(error)
            raise

    def _unpack(self, data: Any) -> Any:
        try:
            return unpack(data, self._stand_in)
        except (ValueError, LookupError, RecursionError, AttributeError, OverflowError) as error:
            raise self._ended(f"not a value: {error}") from error

    def _stand_in(self, tag: str, place: Any) -> object:
        if not isinstance(place, int):
            raise ValueError(f"unknown tag {tag!r}")
        if tag == "iterator":
            return RemoteIterator(self, place)
        if not self.allow_objects:
            raise TypeError("the program gave an object of a class of its own, not plain data")
        return self.stand_ins.setdefault(place, Remote(self, lambda: place))

    def _ask(self, **request: Any) -> Any:
        return self._exchange(**request)["value"]

    def _exchange(self, **request: Any) -> dict:
        self.num_requests += 1
        if self.end:
            raise self.end
        try:
            self.channel.send(request)
        except OSError as error:
            raise self._ended("it ended") from error
        return self._reply()

    def _reply(self) -> dict:
        try:
            reply = self.channel.receive()
        except (EOFError, OSError) as error:
            raise self._ended(str(error)) from error
        if isinstance(reply, dict) and "value" in reply:
            return reply
        raise self._error(reply)

    def _error(self, reply: Any) -> Exception:
        try:
            names, message = [str(name) for name in reply["error"]], str(reply["message"])
            kinds = [getattr(builtins, name, None) for name in names]
        except (TypeError, KeyError) as error:
            return self._ended(f"not a reply: {error}")
        kind = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)), RuntimeError)
        # A class that means "no more" to a loop around the call would give the loop an early, clean end.
        if issubclass(kind, _LOOP_ENDS) or kind in (Exception, RuntimeError):
            return RuntimeError(f"{names[0] if names else 'error'}: {message}")
        return ValueError(message) if issubclass(kind, UnicodeError) else kind(message)

    def _ended(self, why: str) -> ProgramEnded:
        self.end = ProgramEnded(why)
        return self.end


_LOOP_ENDS = (StopIteration, StopAsyncIteration)


class Remote:
    """Stands for an object that stays with the program."""

    def __init__(self, program: Program, find: Callable[[], int]) -> None:
        object.__setattr__(self, "_program", program)
        object.__setattr__(self, "_find", find)

    def _place(self) -> int:
        place = self._find()
        object.__setattr__(self, "_find", lambda: place)
        return place

    def __call__(self, *positional: Any, **named: Any) -> Any:
        return self._program.call(self._place(), positional, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._program.get(self._place(), name)

    def __setattr__(self, name: str, value: object) -> None:
        self._program.set(self._place(), name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._method("__getitem__", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._method("__setitem__", key, value)

    def __len__(self) -> int:
        return self._method("__len__")

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator:
        return self._method("__iter__")

    def __str__(self) -> str:
        return self._method("__str__")

    def __repr__(self) -> str:
        return self._method("__repr__")

    def _method(self, name: str, *positional: Any) -> Any:
        return self._program.get(self._place(), name)(*positional)


class RemoteIterator:
    """Stands for a generator or other iterator of the program."""

    def __init__(self, program: Program, place: int) -> None:
        self._program, self._place_of = program, place

    def __iter__(self) -> "RemoteIterator":
        return self

    def __next__(self) -> Any:
        return self._program.next(self._place_of)


def _refer(value: object) -> dict:
    if isinstance(value, Remote):
        return {"object": value._place()}
    if isinstance(value, RemoteIterator):
        return {"iterator": value._place_of}
    raise Unsupported(f"an argument of type {type(value).__name__!r} cannot cross to the program")


def _replace(argument: Any, value: Any) -> None:
    """Give an argument the content that the program gave it."""
    if isinstance(argument, list | bytearray):
        argument[:] = value
    elif isinstance(argument, dict | set):
        argument.clear()
        argument.update(value)
