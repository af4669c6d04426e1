"""The functions, constants and names that an expression may contain."""

import math
from collections.abc import Callable
from fractions import Fraction

from . import arithmetic
from .arithmetic import Number, mp

_ELEMENTARY = """
sin cos tan sec csc cot arcsin arccos arctan arcsec arccsc arccot sinh cosh tanh coth arcsinh arccosh arctanh ln
"""
_GREEK = """
alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon phi
varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar
"""
_ACCENTS = "text vec dot ddot overline bar hat widehat tilde overrightarrow mathcal mathbb mathfrak"

CONSTANTS: dict[str, Number] = {r"\pi": +mp.pi, "e": +mp.e, "i": mp.mpc(0, 1)}
GREEK = frozenset(f"\\{name}" for name in _GREEK.split())
ACCENTS = frozenset(f"\\{name}" for name in _ACCENTS.split())
FUNCTIONS: dict[str, Callable[[Number], Number]] = {
    f"\\{name}": arithmetic.elementary(getattr(mp, name.replace("arc", "a"))) for name in _ELEMENTARY.split()
} | {r"\exp": lambda value: arithmetic.power(CONSTANTS["e"], value)}
OF_LISTS: dict[str, Callable[[list[Number]], Number]] = {
    r"\gcd": lambda values: Fraction(math.gcd(*map(arithmetic.integer, values))),
    r"\lcm": lambda values: Fraction(math.lcm(*map(arithmetic.integer, values))),
    r"\max": lambda values: max(values, key=lambda value: arithmetic.inexact(value).real),
    r"\min": lambda values: min(values, key=lambda value: arithmetic.inexact(value).real),
}


def log(value: Number, base: Number | None) -> Number:
    r"""Give the logarithm; `\log` without base is the decimal one, as in math-verify."""
    return arithmetic.divide(FUNCTIONS[r"\ln"](value), FUNCTIONS[r"\ln"](base or Fraction(10)))
