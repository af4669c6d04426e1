"""The unit of a quantity: where it stands, and whether two units contradict each other."""

import re
from fractions import Fraction
from typing import NamedTuple

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
    "kg": "kilogram kilo",
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
_OPERATIVE_WORDS = """
plus minus times over divided multiplied by squared cubed half halves third thirds quarter quarters fourth not or and
to through between more less than greater least most except never maybe possibly one two three four five six seven
eight nine ten twenty factorial choose root if
wrong incorrect false tenth tenths hundredth hundredths thousandth thousandths
"""
# Words that change a value or hedge it, so that they are no unit.
_OPERATIVE = frozenset(_OPERATIVE_WORDS.split())
_COMPOUNDS = {"mph": "mi h", "kph": "km h", "kmh": "km h", "kmph": "km h"}
_POWERS = {"square": "^2", "sq": "^2", "cubic": "^3", "cu": "^3"}
_FILLERS = frozenset(["of", "the", "a", "an", "per", "/", "long", "wide", "tall", "high", "deep", "total"])

_PREFIX = re.compile(r"^(-?)\s*(?:\$|\\text\{\s*(euro|pound|yen|rupee|[Rr]s\.?)\s*\})\s*(?=-?\s*[\d.\\])")
_SUFFIX = re.compile(
    r"""\s*(?: (?P<percent>%)
    | (?P<degree>\^\\circ\s*(?:(?:\\text\{\s*)?(?P<scale>[CF])\s*\}?)?)
    | /?\s*\\text\{(?P<text>[^{}]*)\}(?:\s*\^\s*\{?(?P<power>\d)\}?)?
    | (?P<currency>\$)
    | (?<=[\d\s}%)])(?P<bare>[A-Za-z]{2,}(?:[ /][A-Za-z]+)*)(?:\s*\^\s*\{?(?P<bare_power>\d)\}?)?
    )\s*$""",
    re.VERBOSE,
)


class Quantity(NamedTuple):
    """An expression with its unit."""

    number: str
    multiple: Fraction
    """What words such as `million` or a percent sign multiply it by."""
    unit: frozenset[str]
    """Known units by symbol and power; other words in the singular."""
    is_percent: bool


def read_quantity(text: str) -> Quantity:
    """Take the units off a cleaned expression."""
    words: list[str] = []
    is_percent = False
    if match := _PREFIX.match(text):
        words.append(_symbol((match[2] or "$").lower()))
        text = match[1] + text[match.end() :]
    for _ in range(MAX_UNITS):
        match = _SUFFIX.search(text, max(0, len(text) - MAX_UNIT_CHARACTERS))
        if not match or not _is_unit(match, text[: match.start()]):
            break
        is_percent = is_percent or bool(match["percent"])
        words += _words(match)
        text = text[: match.start()].strip()
    multiple = Fraction(1)
    for word in words:
        multiple *= _MULTIPLES.get(word, 1)
    unit = frozenset(word for word in words if word not in _MULTIPLES)
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
    words = (match["text"] or match["bare"] or "").lower().split()
    has_value = any(word in _OPERATIVE or re.search(r"(?<!\^)\d|[+*=<>\\]", word) for word in words)
    return not has_value or words[0] == "mod"


def _words(match: re.Match) -> list[str]:
    if match["percent"]:
        return []
    if match["degree"]:
        return ["degree" + (match["scale"] or "").lower()]
    if match["currency"]:
        return ["$"]
    text = (match["text"] or match["bare"]).lower().replace("/", " / ")
    power = match["power"] or match["bare_power"]
    found: list[str] = []
    pending = f"^{power}" if power else ""
    for word in (word.strip(".,") for word in reversed(re.sub("[()]", "", text).split())):
        if word in _POWERS and found:
            found[-1] += _POWERS[word]
        elif word not in _FILLERS:
            found += [symbol + pending for symbol in _COMPOUNDS.get(word, _symbol(word)).split()]
            pending = ""
    return found


def _symbol(word: str) -> str:
    """Give the symbol of a unit, or an unknown word in the singular."""
    word, caret, power = word.strip(".,").partition("^")
    for form in (word, word.removesuffix("s"), word.removesuffix("es")):
        if form in _SYMBOLS:
            return _SYMBOLS[form] + caret + power
    return word if word in _MULTIPLES else word.removesuffix("s") + caret + power
