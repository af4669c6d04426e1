"""Characters and commands that mean the same as others."""

# ruff: noqa: RUF001  (look-alike characters are what this file is about)

import unicodedata

CHARACTERS = str.maketrans(
    dict.fromkeys("−–‐‑", "-")
    | dict.fromkeys('“”‘"', "")
    | dict.fromkeys("′’", "'")
    | dict.fromkeys("°º˚", r"^\circ ")
    | dict.fromkeys("≤⩽", r"\le ")
    | dict.fromkeys("≥⩾", r"\ge ")
    | dict.fromkeys("·⋅∙", r"\cdot ")
    | {letter: rf"\mathbb{{{unicodedata.normalize('NFKC', letter)}}}" for letter in "ℝℤℕℚℂ"}
    | {
        "×": r"\times ",
        "÷": r"\div ",
        "∗": "*",
        "∶": ":",
        "⁄": "/",
        "∞": r"\infty ",
        "≠": r"\ne ",
        "≈": r"\approx ",
        "±": r"\pm ",
        "∓": r"\mp ",
        "∈": r"\in ",
        "∪": r"\cup ",
        "∩": r"\cap ",
        "∅": r"\emptyset ",
        "∖": r"\setminus ",
        "√": r"\sqrt ",
        "∛": r"\sqrt[3] ",
        "⟨": r"\langle ",
        "⟩": r"\rangle ",
        "⌊": r"\lfloor ",
        "⌋": r"\rfloor ",
        "⌈": r"\lceil ",
        "⌉": r"\rceil ",
        "€": r"\text{ euro }",
        "£": r"\text{ pound }",
        "¢": r"\text{ cent }",
        "₹": r"\text{ rupee }",
        "¥": r"\text{ yen }",
    }
)

_LAYOUT = """
left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr displaystyle textstyle scriptstyle
tiny small normalsize large Large LARGE huge Huge limits nolimits mathstrut strut boldmath mathrm mathbf mathit mathsf
boldsymbol underline
"""

SYNONYMS = (
    dict.fromkeys(("dfrac", "tfrac", "cfrac"), r"\frac")
    | dict.fromkeys(("dbinom", "tbinom"), r"\binom")
    | dict.fromkeys(("lvert", "rvert", "vert"), "|")
    | dict.fromkeys(("leq", "leqslant"), r"\le")
    | dict.fromkeys(("geq", "geqslant"), r"\ge")
    | dict.fromkeys(("land", "wedge"), r"\text{ and }")
    | dict.fromkeys(("lor", "vee"), r"\text{ or }")
    | dict.fromkeys(("backslash", "smallsetminus"), r"\setminus")
    | dict.fromkeys(("dots", "cdots"), r"\ldots")
    | dict.fromkeys(("R", "Reals", "reals"), r"\mathbb{R}")
    | dict.fromkeys(("quad", "qquad", "thinspace", "enspace"), " ")
    | {
        "lbrace": r"\{",
        "rbrace": r"\}",
        "lbrack": "[",
        "rbrack": "]",
        "neq": r"\ne",
        "lt": "<",
        "gt": ">",
        "varnothing": r"\emptyset",
        "colon": ":",
        "ast": "*",
        "lg": r"\log_{10}",
        "tg": r"\tan",
        "ctg": r"\cot",
        "arctg": r"\arctan",
        "imath": "i",
    }
    | dict.fromkeys(_LAYOUT.split(), "")
)
