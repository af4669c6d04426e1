"""Numbers that cannot hang: exact fractions, 200 digits for the rest, and a bound on the size of every result."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]

mp = mpmath.MPContext()
mp.dps = 200

Number = Any
"""A Fraction, or a real or complex number of `mp`."""

MAX_BITS = 2**19
MAX_FACTORIAL = 20_000
TOLERANCE = mp.mpf(10) ** -150
ROUNDING = mp.mpf(10) ** -180
"""A sum or function value this much smaller than what it comes from is zero."""


class Unbounded(Exception):
    """The value is too large to be computed."""


class Undefined(Exception):
    """There is no value, as in 0/0."""


def is_same(a: Number, b: Number) -> bool:
    """Are two values the same number? Exactly for fractions, to 150 digits otherwise."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    a, b = inexact(a), inexact(b)
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def is_close(gold: Number, value: Number, share: float) -> bool:
    """Is a real value at most this share of the gold number away from it?"""
    distance = add(value, -gold)
    bound = multiply(Fraction(str(share)), abs(gold))  # the share as it was written, not the nearest binary fraction
    return is_real(gold) and is_real(value) and add(bound, -abs(distance)) >= 0


def is_real(value: Number) -> bool:
    return isinstance(value, Fraction) or abs(value.imag) <= TOLERANCE * abs(value)


def inexact(value: Number) -> Number:
    return mp.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value


def integer(value: Number) -> int:
    """Give the value as an int; Undefined if it is not one."""
    nearest = int(mp.nint(inexact(value).real))
    if not is_same(value, Fraction(nearest)):
        raise Undefined("not an integer")
    return nearest


def add(a: Number, b: Number) -> Number:
    if _are_exact(a, b):
        return _checked(a + b)
    a, b = inexact(a), inexact(b)
    return _checked(_without_rounding(a + b, max(abs(a), abs(b))))


def multiply(a: Number, b: Number) -> Number:
    return _checked(a * b if _are_exact(a, b) else inexact(a) * inexact(b))


def divide(a: Number, b: Number) -> Number:
    if not b:
        raise Undefined("division by zero")
    return _checked(a / b if _are_exact(a, b) else inexact(a) / inexact(b))


def power(base: Number, exponent: Number) -> Number:
    """Give base to the exponent; a negative base has its real root where there is one, as in school."""
    if not base:
        if is_real(exponent) and inexact(exponent).real > 0:
            return Fraction(0)
        raise Undefined("zero to a power that is not positive")
    if _bits(exponent) > 256 or max(1, _bits(base)) * abs(inexact(exponent)) > MAX_BITS:
        raise Unbounded("power")
    if isinstance(exponent, Fraction) and isinstance(base, Fraction):
        if exponent.denominator == 1:
            return base ** int(exponent)
        if base < 0 and exponent.denominator % 2:
            sign = -1 if exponent.numerator % 2 else 1
            return sign * mp.power(inexact(-base), inexact(exponent))
    return _checked(mp.power(inexact(base), inexact(exponent)))


def factorial(value: Number) -> Number:
    if not _is_integer(value):
        return elementary(mp.factorial, max_bits=16)(value)
    if value > MAX_FACTORIAL:
        raise Unbounded("factorial")
    return Fraction(math.factorial(int(value)))


def double_factorial(value: Number) -> Number:
    if not 0 <= integer(value) <= MAX_FACTORIAL:
        raise Unbounded("factorial")
    return Fraction(math.prod(range(integer(value), 0, -2)))


def binomial(n: Number, k: Number) -> Number:
    if not (_is_integer(n) and _is_integer(k)):
        return divide(factorial(n), multiply(factorial(k), factorial(add(n, -k))))
    top, bottom = integer(n), integer(k)
    if min(bottom, top - bottom) * top.bit_length() > MAX_BITS:
        raise Unbounded("binomial")
    return Fraction(math.comb(top, bottom))


def modulo(a: Number, b: Number) -> Number:
    return Fraction(integer(a) % integer(b))


def floor(value: Number) -> Number:
    if isinstance(value, Fraction):
        return Fraction(math.floor(value))
    return Fraction(int(mp.floor(value.real + TOLERANCE)))


def elementary(function: Callable[[Number], Number], max_bits: int = 4096) -> Callable[[Number], Number]:
    """Give a function of `mp` that refuses arguments of more than `max_bits` bits."""

    def bounded(value: Number) -> Number:
        if value and mp.mag(inexact(value)) > max_bits:
            raise Unbounded("argument")
        return _checked(_without_rounding(function(inexact(value)), mp.one))

    return bounded


def _without_rounding(value: Number, scale: Number) -> Number:
    return Fraction(0) if abs(value) < ROUNDING * scale else value


def _are_exact(a: Number, b: Number) -> bool:
    return isinstance(a, Fraction) and isinstance(b, Fraction)


def _is_integer(value: Number) -> bool:
    return isinstance(value, Fraction) and value.denominator == 1


def _bits(value: Number) -> int:
    """Give the size of a value: the longer of numerator and denominator, or the magnitude, in bits."""
    if isinstance(value, Fraction):
        return max(value.numerator.bit_length(), value.denominator.bit_length())
    return abs(int(mp.mag(value))) if value else 0


def _checked(value: Number) -> Number:
    if not isinstance(value, Fraction) and not mp.isfinite(value):
        raise Undefined("not finite")
    if _bits(value) > MAX_BITS:
        raise Unbounded("digits")
    return value
