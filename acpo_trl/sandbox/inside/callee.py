"""The program's side of a test: its functions answer calls that come over its standard input and output."""

import os
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any

from .child import open_streams
from .wire import Channel, pack, unpack

_VIEWS: Any = (type({}.keys()), type({}.values()), type({}.items()))


def serve(parts: list[str]) -> None:
    """Run the parts of the program as one module, then answer calls until the other side closes. Never returns."""
    channel = Channel(os.dup(0), os.dup(1))
    # The program itself gets an empty input, and its output goes where its error messages go.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    open_streams()
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    try:
        for part in parts:
            exec(compile(part, "solution.py", "exec"), module.__dict__)
    except BaseException as error:
        traceback.print_exc()
        channel.send(_error(error))
        os._exit(1)
    channel.send({"value": None})
    desk = Desk(module)
    try:
        while True:
            channel.send(desk.answer(channel.receive()))
    except (EOFError, OSError):
        os._exit(0)


class Desk:
    """Answers requests about the program's names and objects.

    The objects that cannot cross stay in a list; the other side knows them by their place in it.
    """

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module
        self.objects: list[Any] = []
        self.places: dict[int, int] = {}

    def answer(self, request: dict) -> dict:
        """Give the value of a request, or the error it raised."""
        try:
            return getattr(self, f"do_{request['do']}")(request)
        except BaseException as error:
            traceback.print_exc()
            return _error(error)

    def do_name(self, request: dict) -> dict:
        return {"value": self.refer(eval(request["name"], self.module.__dict__))}

    def do_get(self, request: dict) -> dict:
        return self._value(getattr(self.objects[request["on"]], request["name"]))

    def do_set(self, request: dict) -> dict:
        setattr(self.objects[request["on"]], request["name"], self._unpack(request["value"]))
        return self._value(None)

    def do_next(self, request: dict) -> dict:
        try:
            return self._value(next(self.objects[request["on"]]))
        except StopIteration:
            return {"value": None, "is_end": True}

    def do_call(self, request: dict) -> dict:
        positional, named = self._unpack(request["positional"]), self._unpack(request["named"])
        result = self.objects[request["on"]](*positional, **named)
        # A function without result works by changing its arguments. One with a result must not change what the tests
        # compare it with.
        changed = {} if result is not None else self._changed(request["positional"], positional)
        return self._value(result) | ({"changed": changed} if changed else {})

    def _changed(self, before: list, after: list) -> dict:
        packed = {
            str(place): pack(value, self.refer)
            for place, value in enumerate(after)
            if isinstance(value, list | dict | set | bytearray)
        }
        return {place: value for place, value in packed.items() if value != before[int(place)]}

    def _value(self, value: object) -> dict:
        return {"value": pack(value, self.refer)}

    def _unpack(self, data: object) -> Any:
        return unpack(data, lambda tag, place: self.objects[place])

    def refer(self, value: Any) -> dict:
        """Give the message for an object that stays here."""
        kept = iter(value) if isinstance(value, _VIEWS) else value
        place = self.places.setdefault(id(kept), len(self.objects))
        if place == len(self.objects):
            self.objects.append(kept)  # and so it lives on, and nothing else gets its id
        return {"iterator" if isinstance(kept, Iterator) else "object": place}


def _error(error: BaseException) -> dict:
    try:
        message = str(error)[:1000]
    except BaseException:
        message = ""
    return {"error": [kind.__name__ for kind in type(error).__mro__], "message": message}
