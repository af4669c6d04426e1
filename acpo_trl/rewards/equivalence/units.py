"""The unit of a quantity: where it stands, and whether two units contradict each other."""

import re
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

from .tokens import Unreadable

MAX_UNITS = 6
MAX_UNIT_CHARACTERS = 100

_SPELLINGS = {
    "mm": "millimeter millimetre",
    "cm": "centimeter centimetre",
    "m": "meter metre",
    "km": "kilometer kilometre",
    "in": "inch inche",
    "ft": "foot feet",
    "yd": "yard",
    "mi": "mile",
    "mg": "milligram",
    "g": "gram gm",
    "kg": "kilogram kilos",
    "lb": "pound",
    "oz": "ounce",
    "ml": "milliliter millilitre",
    "l": "liter litre",
    "s": "second sec",
    "min": "minute",
    "h": "hour hr",
    "degree": "",
    "degreec": "celsius",
    "degreef": "fahrenheit",
    "day": "",
    "week": "",
    "month": "",
    "yr": "year",
    "$": "dollar usd buck",
    "cent": "",
    "euro": "eur",
    "rupee": "rs",
    "yen": "",
    "rad": "radian",
    "hz": "hertz",
    "j": "joule",
    "n": "newton",
    "w": "watt",
    "unit": "",
    "am": "a.m",
    "pm": "p.m",
}
_SYMBOLS = {word: symbol for symbol, words in _SPELLINGS.items() for word in [symbol, *words.split()]}
_MULTIPLES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MULTIPLES |= {"lakh": 10**5, "crore": 10**7, "quadrillion": 10**15, "quintillion": 10**18}
_OPERATIVE_WORDS = """
plus minus times over divided multiplied by squared cubed half halves third thirds quarter quarters fourth not or and
to through between more less than greater least most except never maybe possibly one two three four five six seven
eight nine ten twenty factorial choose root if
wrong incorrect false fifth fifths sixth sixths seventh sevenths eighth eighths ninth ninths tenth tenths
eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen thirty forty fifty sixty seventy eighty
ninety zero pair pairs couple couples gross score scores myriad thou grand basis bp bps permille ppm ppb bn mn mln mil
kilo mega giga tera hecto deca deci centi milli micro nano pico negative negated double doubled twice thrice triple
tripled quadruple quadrupled halved reciprocal inverse inverted opposite conjugate below under above
"""
# Words that change a value or hedge it, so that they are no unit.
_OPERATIVE = frozenset(_OPERATIVE_WORDS.split())
_FACTOR = re.compile(r"\w+fold|\w*illions?|\w*(?:undred|ousand|illion)ths?")
_FACTOR_LETTER = re.compile(r"(?<!\w)[kMB](?!\w)")  # 5 k, 5 M, 5 B
_COMPOUNDS = {"mph": "mi/h", "kph": "km/h", "kmh": "km/h", "kmph": "km/h"}
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_POWER = re.compile(r"(.+)\^([1-9])")
_PER = frozenset(["per", "/", "each", "every"])
_ARTICLES = frozenset(["a", "an"])  # 5 dollars an hour, but half a mile
_FILLERS = frozenset(["of", "the", "long", "wide", "tall", "high", "deep", "total"])

_PREFIX = re.compile(r"^(-?)\s*(?:\$|\\text\{\s*(euro|pound|yen|rupee|[Rr]s\.?)\s*\})\s*(?=-?\s*[\d.\\])")
_SUFFIX = re.compile(
    r"""\s*(?: (?P<percent>%)
    | (?P<degree>\^\\circ\s*(?:(?:\\text\{\s*)?(?P<scale>[CF])\s*\}?)?)
    | /?\s*\\text\{(?P<text>[^{}]*)\}(?:\s*\^\s*\{?(?P<power>-?\d)\}?)?
    | (?P<currency>\$)
    | (?<=[\d\s}%)])(?P<bare>[A-Za-z]{2,}(?:[ /][A-Za-z]+)*)(?:\s*\^\s*\{?(?P<bare_power>-?\d)\}?)?
    )\s*$""",
    re.VERBOSE,
)


class Quantity(NamedTuple):
    """An expression with its unit."""

    number: str
    multiple: Fraction
    """What words such as `million` or a percent sign multiply it by."""
    unit: frozenset[str]
    """Known units by symbol and power, `m` and `s^-2` of m/s^2; other words in the singular."""
    is_percent: bool


def read_quantity(text: str) -> Quantity:
    """Take the units off a cleaned expression.

    Raises:
        Unreadable: a word behind it changes or hedges its value.
    """
    powers: Counter[str] = Counter()
    is_percent = False
    if match := _PREFIX.match(text):
        powers[_symbol((match[2] or "$").lower())] += 1
        text = match[1] + text[match.end() :]
    for _ in range(MAX_UNITS):
        match = _SUFFIX.search(text, max(0, len(text) - MAX_UNIT_CHARACTERS))
        if not match or not _is_unit(match, text[: match.start()]):
            break
        is_percent = is_percent or bool(match["percent"])
        for symbol, power in _powers(match):
            powers[symbol] += power
        text = text[: match.start()].strip()
    multiple = Fraction(1)
    for word in _MULTIPLES.keys() & powers.keys():
        multiple *= Fraction(_MULTIPLES[word]) ** powers.pop(word)
    unit = frozenset(symbol if power == 1 else f"{symbol}^{power}" for symbol, power in powers.items() if power)
    return Quantity(text, multiple / (100 if is_percent else 1), unit, is_percent)


def contradict(a: frozenset[str], b: frozenset[str]) -> bool:
    """Do two units exclude each other? A missing unit contradicts nothing, nor does the word `unit`."""
    known_a, known_b = ({word for word in unit if word.partition("^")[0] in _SPELLINGS} for unit in (a, b))
    if not a or not b or any(word.startswith("unit") for word in a | b):
        return False
    if known_a or known_b:
        is_bare_degree = {"degree"} in (known_a, known_b) and all(
            word.startswith("degree") for word in known_a | known_b
        )
        return known_a != known_b and not is_bare_degree
    return not (a <= b or b <= a)


def _is_unit(match: re.Match, rest: str) -> bool:
    """Is this the unit of what stands before it, rather than a word of its own or a product of letters?"""
    if not rest.strip() or rest.rstrip()[-1] in "+-*/^_=(,\\":
        return False
    if match["degree"] and re.search(r"\\(?:sin|cos|tan|sec|csc|cot)", rest):
        return False
    if match["bare"]:
        words = re.split("[ /]", match["bare"].lower())
        are_known = all(_symbol(word) in _SPELLINGS or word in _MULTIPLES or word in _COMPOUNDS for word in words)
        if not are_known and (not match[0][0].isspace() or len(words[0]) < 3):
            return False
    text = match["text"] or match["bare"] or ""
    if text.split()[:1] == ["mod"]:
        return True
    if _changes_value(text):
        raise Unreadable(f"{text.strip()!r} changes the value")
    return not re.search(r"(?<!\^)\d|[+*=<>\\]", text)


def _changes_value(text: str) -> bool:
    words = re.findall("[a-z]+", text.lower())
    has_factor = any(_FACTOR.fullmatch(word) and word.removesuffix("s") not in _MULTIPLES for word in words)
    return has_factor or not _OPERATIVE.isdisjoint(words) or bool(_FACTOR_LETTER.search(text))


def _powers(suffix: re.Match) -> list[tuple[str, int]]:
    """Give the symbols of a unit with their powers, which are negative behind a slash or `per`."""
    if suffix["percent"]:
        return []
    if suffix["degree"]:
        return [("degree" + (suffix["scale"] or "").lower(), 1)]
    if suffix["currency"]:
        return [("$", 1)]
    found: list[tuple[str, int]] = []
    sign, prefix, is_behind_unit = -1 if suffix[0].lstrip().startswith("/") else 1, 1, False
    for word in _unit_words(suffix["text"] or suffix["bare"]):
        if word in _PER or (word in _ARTICLES and is_behind_unit):
            sign, is_behind_unit = -1, False
        elif word in _POWERS:
            prefix = _POWERS[word]
        elif word not in _FILLERS | _ARTICLES:
            base, power = match.groups() if (match := _POWER.fullmatch(word)) else (word, 1)
            found.append((_symbol(base), sign * prefix * int(power)))
            prefix, is_behind_unit = 1, True
    if found and (power := suffix["power"] or suffix["bare_power"]):
        symbol, before = found.pop()
        found.append((symbol, before * int(power)))
    return found


def _unit_words(text: str) -> list[str]:
    words = [word.strip(".,") for word in re.sub("[()]", "", text.lower()).replace("/", " / ").split()]
    return " ".join(_COMPOUNDS.get(word, word) for word in words).replace("/", " / ").split()


def _symbol(word: str) -> str:
    """Give the symbol of a unit, or an unknown word in the singular."""
    for form in (word, word.removesuffix("s"), word.removesuffix("es")):
        if form in _SYMBOLS:
            return _SYMBOLS[form]
    return word if word in _MULTIPLES else word.removesuffix("s")
