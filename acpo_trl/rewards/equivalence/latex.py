"""Bring the many ways to write the same answer into one, and split it outside its brackets."""

import re
import unicodedata

from .functions import FUNCTIONS, OF_LISTS
from .spellings import CHARACTERS, SYNONYMS

_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿ]+")
_SUBSCRIPT = re.compile("[₀-₉ₙ]+")
_FRACTION_SIGN = re.compile("[¼-¾⅐-⅞]")
_GREEK_LETTER = re.compile("[α-ωΓΔΘΛΞΠΣΦΨΩ]")  # noqa: RUF001
_FONT = re.compile(
    r"\\(text(?:bf|it|rm|sf|tt|up|normal)?|mbox|hbox|emph|math(?:rm|bf|it|sf|tt|normal)|boldsymbol|bm|pmb|"
    r"operatorname\*?)\s*\{((?:[^{}\\]|\\.)*)\}"
)
_BRACE = re.compile(r"\\.|[{}]")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_FUNCTION_NAMES = r"(?:arc)?(?:sin|cos|tan)|sec|csc|cot|log|ln|exp|gcd|lcm|max|min"
_BASE = r"\d+|two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen"
_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"<\|[^<>|]*\|>|</?[A-Za-z]+>", ""),  # end-of-turn markers, answer tags
        (r"(?<!\\)\\[()\[\]]", ""),
        (r"\\not\s*=", r"\\ne "),
        (r"\\not\s*\\in(?![a-z])", r"\\notin "),
        (r"\\(?:left|right)\s*\.", ""),
        (r"\\(?:textcolor|colorbox)\s*\{[^{}]*\}|\\color\s*(?:\{[^{}]*\}|[a-z]+)", ""),
        (r"(?:\{|^)([^{}]*)\\over(?![A-Za-z])([^{}]*)(?:\}|$)", r"\\frac{\1}{\2}"),
        (r"(?:\{|^)([^{}]*)\\choose(?![A-Za-z])([^{}]*)(?:\}|$)", r"\\binom{\1}{\2}"),
        (r"(?:\{\s*\})?[_^]\{?([A-Za-z\d]+)\}?\s*C_\{?([A-Za-z\d]+)\}?", r"\\binom{\1}{\2}"),
        (r"(?<![A-Za-z\\])C\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", r"\\binom{\1}{\2}"),
        (r"(\\mathbb\{R\})\s*-\s*(?=\\\{)", r"\1\\setminus "),
        (r"\\frac\s*\{\s*\\text\{([^{}]*)\}\s*\}\s*\{\s*\\text\{([^{}]*)\}\s*\}", r"\\text{\1/\2}"),
        (r"(?:\\text\{\s*)?\ball real(?: number)?s\b(?:\s*\})?", r"\\mathbb{R}"),
        (r"\b([AaPp])\.\s?([Mm])\b\.?", r"\1\2"),
        (
            rf"_\{{\s*\((\w+)\)\s*\}}|\s*(?:_\{{?\s*)?(?:\\text\{{\s*)?\(?\bbase[ -]\}}?\s*({_BASE})\s*\)?\s*\}}*",
            r"_{\1\2}",
        ),
        (r"\{\\(?:rm|bf|it|sf|tt)\s+([^{}]*)\}", r"\\text{\1}"),
        (r"(?<=\d)(?:\{,\}|,\s*\\!|\\[,;: ]|~|\s)\s*(?=\d{3}(?!\d))", ""),  # digit groups: 1{,}000, 1\,000, 1 000
        (r"\\!", ""),
        (r"(?<!\\)\\[,;:> ]|~|\\hspace\*?\{[^{}]*\}|\s+", " "),
        (r"\\p?mod\s*\{([^{}]*)\}|\\pmod\s*(\w)|\(\s*\\bmod\s*(\w+)\s*\)", r"\\text{ mod \1\2\3}"),
        (
            r"\^\s*(?:\{\s*(?:\\(?:circ|degree)|o)\s*\}|\\circ(?![A-Za-z])|o\b)|\\(?:text)?degree(?![A-Za-z])",
            r"^\\circ ",
        ),
        (r"\\%|\\text\{\s*(?:per\s?cent|percentage|pct)\s*\}|(?<=[\d\s}])(?:per\s?cent|percentage|pct)(?![a-z])", "%"),
        (r"\\text\{\s*deg(?:rees?)?\s*\}|(?<=[\d\s}])deg(?:rees?)?(?![a-z])", r"^\\circ "),
        (r">=", r"\\ge "),
        (r"<=", r"\\le "),
        (r"(?<=\s)!=", r"\\ne "),
        (r"==", "="),
        (r"\.{3}", r"\\ldots "),
        (r"(?<![\\A-Za-z])sqrt(?![A-Za-z])", r"\\sqrt"),
        (r"\\sqrt (\d+)|\\sqrt(\d\d+)", r"\\sqrt{\1\2}"),
        (rf"(?<![\\A-Za-z])({_FUNCTION_NAMES})(?=\s*[\\({{\d^_]|\s+[A-Za-z](?![A-Za-z]))", r"\\\1 "),
        (r"(?<![\\A-Za-z])pi(?![A-Za-z])", r"\\pi "),
        (r"(?<![\\A-Za-z])(?:infinity|inf|oo)(?![A-Za-z])", r"\\infty "),
        (r"(?<=\d)\s*\^?\s*\{?\s*(?:\\text\{\s*(?:st|nd|rd|th)\s*\}|(?:st|nd|rd|th)(?![A-Za-z]))\s*\}?", ""),
    )
]
_GROUPED_DIGITS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_BRACKETS = re.compile(r"[\[(]|\\\{")
_NESTING = (
    r"(?P<open>[(\[{]|\\\{|\\begin\b|\\langle\b|\\lfloor\b|\\lceil\b)"
    r"|(?P<close>[)\]}]|\\\}|\\end\b|\\rangle\b|\\rfloor\b|\\rceil\b)|\\[A-Za-z]+|\\."
)


def clean(text: str) -> str:
    """Give the answer in one spelling: without layout, fonts, digit separators, delimiters and final punctuation.

    A `$` that stays means dollars.
    """
    if r"\begin" not in text:  # where a double backslash ends a row, it is no escaped single one
        text = re.sub(r"\\\\(?=[A-Za-z])", r"\\", text)
    text = _without_dollars(_ascii(re.sub(r"\s+", " ", text)))
    for _ in range(4):  # fonts may be nested
        text = _FONT.sub(_plain_font, text)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    text = _COMMAND.sub(lambda match: SYNONYMS.get(match[1], match[0]), text)
    if not _BRACKETS.search(text):  # (1,234) is a pair
        text = _GROUPED_DIGITS.sub(lambda match: match[0].replace(",", ""), text)
    return unwrap(re.sub(r"\s+", " ", text))


def unwrap(text: str) -> str:
    """Strip what encloses the whole text without meaning, and punctuation at its ends."""
    before = None
    while before != text:
        before, text = text, text.strip("`* \n").rstrip(".,;:\\").lstrip("=:").strip()
        if layers := _num_layers(text):
            text = text[layers:-layers]
    return text


def split(text: str, separator: str) -> tuple[list[str], list[str]]:
    """Split where the pattern `separator` occurs outside brackets.

    Returns:
        The parts, stripped, and the separators between them.
    """
    parts, separators, depth, start = [], [], 0, 0
    for match in re.finditer(rf"(?P<separator>{separator})|{_NESTING}", text):
        if match["open"]:
            depth += 1
        elif match["close"]:
            depth = max(depth - 1, 0)
        elif match["separator"] and not depth:
            parts.append(text[start : match.start()].strip())
            separators.append(match["separator"].strip())
            start = match.end()
    return [*parts, text[start:].strip()], separators


def encloses(text: str, opening: str, closing: str) -> bool:
    """Is the bracket at the start of the text closed by the one at its end? Kinds may differ, as in [0,1)."""
    if not (text.startswith(opening) and text.endswith(closing)):
        return False
    depth = 0
    for match in re.finditer(_NESTING, text):
        depth += 1 if match["open"] else -1 if match["close"] else 0
        if not depth:
            return match.end() == len(text)
    return False


def _num_layers(text: str) -> int:
    """Give the number of braces around the whole text."""
    opening = len(text) - len(text.lstrip("{"))
    inner = text[opening:].rstrip("}")
    closing = len(text) - opening - len(inner) - inner.endswith("\\")
    depth = lowest = opening
    for match in _BRACE.finditer(inner):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        lowest = min(lowest, depth)
    return max(min(closing, lowest), 0)


def _ascii(text: str) -> str:
    text = _SUPERSCRIPT.sub(lambda match: f"^{{{_plain(match)}}}", text)
    text = _SUBSCRIPT.sub(lambda match: f"_{{{_plain(match)}}}", text)
    text = _GREEK_LETTER.sub(lambda match: f"\\{_greek_name(match[0])} ", text)
    text = "".join(character for character in text if unicodedata.category(character) != "Cf")  # zero-width spaces
    text = _FRACTION_SIGN.sub(lambda match: "\\frac{{{}}}{{{}}}".format(*_plain(match).split("\u2044")), text)
    return unicodedata.normalize("NFKC", text.translate(CHARACTERS))


def _plain(match: re.Match) -> str:
    return unicodedata.normalize("NFKC", match[0])


def _greek_name(letter: str) -> str:
    name = unicodedata.name(letter).split()[-1].lower()
    return name.capitalize() if letter.isupper() else name


def _without_dollars(text: str) -> str:
    r"""Remove math delimiters; an odd `$` or a `\$` is currency."""
    parts = re.split(r"(?<!\\)\$", text)
    return ("" if len(parts) % 2 else "$").join(parts).replace(r"\$", "$")


def _plain_font(match: re.Match) -> str:
    """Drop the font; keep words marked as text, so that they are not read as products of letters."""
    font, content = match[1], match[2]
    name = content.strip()
    if font.startswith(("operatorname", "mathrm")) and (f"\\{name}" in FUNCTIONS or f"\\{name}" in OF_LISTS):
        return f"\\{name} "
    is_text = font.startswith(("text", "mbox", "hbox", "emph")) or len(name) > 1
    is_words = any(letter.isalpha() for letter in name) and not name[:1].isdigit()
    return f"\\text{{{content}}}" if is_text and is_words else content
