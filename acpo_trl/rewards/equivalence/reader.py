"""Read an expression from left to right and compute its value on the way.

There is no tree to simplify, and every step is bounded.
"""

import re
import sys
from collections.abc import Callable
from fractions import Fraction
from hashlib import blake2b

from . import arithmetic
from .arithmetic import Number, Unbounded, mp
from .functions import ACCENTS, CONSTANTS, FUNCTIONS, GREEK, OF_LISTS, log
from .tokens import Tokens, Unreadable

MAX_TERMS = 2_000
MAX_DEPTH = 200
MAX_DIGITS = 20_000
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(MAX_DIGITS)

_SIMPLE_FRACTION = re.compile(r"\\frac(?:\{\d+\}\{\d+\}|\d\d)|\d+/\d+")
_CLOSING = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", r"\lfloor": r"\rfloor", r"\lceil": r"\rceil", "|": "|"}
_COMMANDS = (
    GREEK | ACCENTS | {*CONSTANTS, *FUNCTIONS, *OF_LISTS, r"\log", r"\frac", r"\sqrt", r"\binom", r"\sum", r"\prod"}
)
_UNDEFINED_FUNCTIONS = frozenset("fghFGH")


def sample_value(name: str, sample: int) -> Fraction:
    """Give a variable its value: positive in samples 0 to 3, of either sign in 4 to 6, a small integer from 7 on."""
    seed = int.from_bytes(blake2b(f"{sample}:{name}".encode(), digest_size=8).digest(), "big")
    if sample >= 7:
        return Fraction(seed % 11 + 2)
    value = Fraction(seed % 3001 + 100, 1009)
    return -value if sample >= 4 and (sample + seed // 4096) % 2 else value


class Reader(Tokens):
    """Reads an expression from left to right and computes its value on the way."""

    def __init__(self, text: str, sample: int) -> None:
        super().__init__(text)
        self.sample = sample
        self.variables: set[str] = set()
        self.indices: dict[str, Number] = {}  # of the sums and products around this position
        self.closing: list[str] = []  # of the groups around this position
        self.num_functions = 0  # whose argument this position is in
        self.num_terms = 0  # of all series
        self.is_real = True

    def sum(self) -> Number:
        value = self.product()
        while (sign := self.peek()) in ("+", "-"):
            self.take()
            term = self.product()
            value = arithmetic.add(value, term if sign == "+" else -term)
        return value

    def product(self) -> Number:
        value = self.factor()
        while True:
            if self.skip(r"\cdot", r"\times", "*", r"\ast"):
                value = arithmetic.multiply(value, self.factor())
            elif self.skip("/", r"\div"):
                value = arithmetic.divide(value, self.factor())
            elif self.skip(r"\bmod", r"\mod"):
                value = arithmetic.modulo(value, self.factor())
            elif self.starts_factor():
                value = arithmetic.multiply(value, self.power())
            else:
                return value

    def starts_factor(self) -> bool:
        """Does a factor follow that is multiplied without a sign? A number is none, except in `3!2!`."""
        token = self.peek()
        if token.isdigit():
            return self.tokens[self.position - 1] == "!"
        if token == "|":
            return self.closing[-1:] != ["|"]
        return token.isalpha() or token in _CLOSING or token in _COMMANDS

    def factor(self) -> Number:
        sign = 1
        while self.peek() in ("+", "-"):
            sign *= -1 if self.take() == "-" else 1
        return sign * self.power()

    def power(self) -> Number:
        value = self.atom()
        while True:
            if self.skip("!"):
                value = arithmetic.double_factorial(value) if self.skip("!") else arithmetic.factorial(value)
            elif not self.skip("^"):
                return value
            elif self.skip(r"\circ"):
                if self.num_functions:  # elsewhere the degree sign is a unit
                    value = arithmetic.multiply(value, mp.pi / 180)
            else:
                value = self.noted(arithmetic.power(value, self.exponent()))

    def noted(self, value: Number) -> Number:
        self.is_real = self.is_real and arithmetic.is_real(value)
        return value

    def exponent(self) -> Number:
        """Give what stands behind `^`; plain maths may write `10^-7` and `2^10`."""
        if self.skip("-"):
            return -self.exponent()
        return self.number() if self.peek()[:1].isdigit() else self.atom()

    def atom(self) -> Number:
        token = self.peek()
        if token[:1].isdigit() or token[:1] == ".":
            return self.mixed_number()
        self.take()
        if token in _CLOSING:
            return self.group(token)[0]
        if token in FUNCTIONS or token == r"\log":
            return self.function(token)
        if token in OF_LISTS:
            return OF_LISTS[token](self.group(self.take()))
        if token in (r"\sum", r"\prod"):
            return self.series(token)
        if token == r"\frac":
            return arithmetic.divide(self.argument(), self.argument())
        if token == r"\binom":
            return arithmetic.binomial(self.argument(), self.argument())
        if token == r"\sqrt":
            degree = self.group("[")[0] if self.skip("[") else Fraction(2)
            return self.noted(arithmetic.power(self.argument(), arithmetic.divide(Fraction(1), degree)))
        return self.symbol(token)

    def group(self, opening: str) -> list[Number]:
        """Give the values between the bracket that was just taken and its partner."""
        if len(self.closing) > MAX_DEPTH or opening not in _CLOSING:
            raise Unreadable("nested too deep" if opening in _CLOSING else f"expected a group, not {opening}")
        self.closing.append(_CLOSING[opening])
        values = [self.sum()]
        while self.skip(","):
            values.append(self.sum())
        self.expect(self.closing.pop())
        if opening == "|":
            return [abs(values[0])]
        if opening == r"\lfloor":
            return [arithmetic.floor(values[0])]
        return [-arithmetic.floor(-values[0])] if opening == r"\lceil" else values

    def argument(self) -> Number:
        r"""Give the next argument of a command: a group or, as in `\frac12`, a single digit or letter."""
        token = self.peek()
        if not token.isdigit():
            return self.atom()
        self.tokens[self.position : self.position + 1] = [token[0], token[1:]] if token[1:] else [token]
        return Fraction(self.take())

    def number(self) -> Number:
        r"""Give a decimal number, with a repeating part such as `0.1\overline{6}` if there is one."""
        token = self.take()
        if "e" in token.lower() and len(token.lower().rpartition("e")[2]) > 6:
            raise Unbounded("exponent")
        value = Fraction(token)
        if "." in token and self.skip(r"\overline", r"\bar", r"\dot"):
            digits = self.raw_argument()
            if not digits.isdigit():
                raise Unreadable("repeating part")
            places = len(token.partition(".")[2])
            value += Fraction(int(digits), (10 ** len(digits) - 1) * 10**places)
        return value

    def mixed_number(self) -> Number:
        r"""Give a number; `2\frac{1}{2}` and `2 1/2` are sums, not products."""
        is_integer = self.peek().isdigit()
        value = self.number()
        if is_integer and _SIMPLE_FRACTION.match("".join(self.tokens[self.position : self.position + 7])):
            if self.skip(r"\frac"):
                return value + arithmetic.divide(self.argument(), self.argument())
            return value + arithmetic.divide(self.number(), self.take() and self.number())
        return value

    def function(self, name: str) -> Number:
        base = self.argument() if self.skip("_") else None
        exponent = self.exponent() if self.skip("^") else None
        value = self.function_argument()
        if name == r"\log":
            value = log(value, base)
        elif exponent == -1 and name.replace("\\", r"\arc") in FUNCTIONS:
            return FUNCTIONS[name.replace("\\", r"\arc")](value)
        else:
            value = FUNCTIONS[name](value)
        self.noted(value)
        return value if exponent is None else arithmetic.power(value, exponent)

    def function_argument(self) -> Number:
        r"""Give a group, or the product that follows: `\sin 2x` ends where the next function starts."""
        self.num_functions += 1
        is_group = self.peek() in _CLOSING
        value = self.atom() if is_group else self.factor()
        while not is_group and self.starts_factor() and self.peek() not in (*FUNCTIONS, r"\log", "("):
            value = arithmetic.multiply(value, self.power())
        self.num_functions -= 1
        return value

    def series(self, name: str) -> Number:
        r"""Give a sum or product over an index with integer limits."""
        self.expect("_")
        self.expect("{")
        index = self.take()
        self.expect("=")
        first = arithmetic.integer(self.sum())
        self.expect("}")
        self.expect("^")
        last = arithmetic.integer(self.exponent())
        combine: Callable = arithmetic.add if name == r"\sum" else arithmetic.multiply
        value, body, outer = Fraction(name == r"\prod"), self.position, self.indices
        for k in range(first, max(first, last) + 1):  # once more if it is empty, to get past the body
            self.position, self.indices = body, outer | {index: Fraction(k)}
            self.num_terms += 1
            if self.num_terms > MAX_TERMS:
                raise Unbounded("terms")
            term = self.product()
            value = combine(value, term) if k <= last else value
        self.indices = outer
        return value

    def symbol(self, name: str) -> Number:
        if not (name.isalpha() or name in GREEK or name in ACCENTS or name in CONSTANTS):
            raise Unreadable(f"unknown {name}")
        if name in ACCENTS:
            name += self.raw_argument()
        while self.skip("'"):
            name += "'"
        if self.skip("_"):
            name += "_" + self.raw_argument()
        if name in self.indices:
            return self.indices[name]
        if name in CONSTANTS:
            return self.noted(CONSTANTS[name])
        if name in _UNDEFINED_FUNCTIONS and self.skip("("):
            name += str([mp.nstr(arithmetic.inexact(value), 50) for value in self.group("(")])
        self.variables.add(name)
        return sample_value(name, self.sample)
