"""Does the short answer match one of the gold answers? The rewards `exact_match` and `f1`."""

import json
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Number, Real
from typing import Any

from .declare import Verdict, reward
from .extract import Completion, after_thinking, final_answer, last_assistant_text, last_box
from .format import check_tag

GOLD_COLUMNS = ("golden_answers", "solution", "answer")
ARTICLES = {"a", "an", "the"}
# Sharing a word with one of these says nothing about being right.
CLOSED_ANSWERS = {"yes", "no", "noanswer"}
MAX_SHOWN = 200
_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻]+")
_SUBSCRIPT = re.compile(r"(?<=\d)[₀-₉]+")
_MIXED_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
# Signs without which it would be another number or name.
_SIGNS = re.compile(
    r"""(?P<kept> (?<=\d)[^\w\s]+(?=\d) | (?<=\d)_(?=\d)             # 1.5, 3/4, 10_2
    | \^-?(?=\d)                                                     # m^2
    | (?<!\w)(?:[<>]=?-?|-)(?=[$£€¥]?\.?\d) | (?<![\w.])\.(?=\d)     # -5, -$5, .5
    | (?<=[^\W_])[+#]+(?!\w) | (?<=\b[^\W\d_])-(?!\w)               # C++, F#, the mark A-
    ) | [^\w\s] | _""",
    re.VERBOSE,
)
_DASH = re.compile("[\u2010-\u2015\N{MINUS SIGN}]")
_DIGIT_GROUP = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


class RetrievalReward:
    """A score of the answer against each gold answer; the best of them counts. None for a row without gold answer.

    The gold answers are the dataset column `golden_answers`, else `solution`, else `answer`: a string, a list of
    strings, or the JSON text of a list. The answer is the last `<answer>...</answer>` behind the thinking of the last
    assistant message, else its last box, else what it announces; a message without answer earns 0.0.

    Args:
        answer_tag: name of the tag around the answer.
    """

    __name__: str

    def __init__(self, answer_tag: str = "answer") -> None:
        check_tag(f"reward {self.__name__!r}, answer_tag", answer_tag)
        self.answer_tag = answer_tag

    def __call__(
        self,
        completions: Sequence[Completion],
        log_extra: Callable[[str, list], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Score each completion against its gold answers.

        Raises:
            ValueError: there is no column with gold answers.
            TypeError: a cell of it holds neither text nor a list.
        """
        golds = columns[self._gold_column(columns)]
        answers = [short_answer(last_assistant_text(completion), self.answer_tag) for completion in completions]
        verdicts = [self._judge(answer, gold_answers(gold)) for answer, gold in zip(answers, golds, strict=True)]
        if log_extra is not None:
            log_extra(f"{self.__name__}_answer", [answer[:MAX_SHOWN] for answer in answers])
            log_extra(f"{self.__name__}_reason", [verdict.reason for verdict in verdicts])
        return [verdict.score for verdict in verdicts]

    def check_columns(self, columns: Collection[str]) -> None:
        """Raise ValueError if none of the columns holds gold answers."""
        self._gold_column(columns)

    def gold(self, row: Mapping[str, Any]) -> str | None:
        """Give the row's first gold answer in its tag."""
        golds = gold_answers(row[self._gold_column(row)])
        return f"<{self.answer_tag}>{golds[0]}</{self.answer_tag}>" if golds else None

    def score(self, answer: str, gold: str) -> float:
        """Compare an answer with one gold answer, both normalized."""
        raise NotImplementedError

    def _judge(self, answer: str, golds: list[str]) -> Verdict:
        if not golds:
            return Verdict(None, "no gold answer")
        if not answer:
            return Verdict(0.0, "no answer")
        score = max(self.score(normalize(answer), normalize(gold)) for gold in golds)
        return Verdict(score, "equal" if score == 1 else "in part" if score else "different")

    def _gold_column(self, columns: Collection[str]) -> str:
        for name in GOLD_COLUMNS:
            if name in columns:
                return name
        raise ValueError(
            f"reward {self.__name__!r}: no gold answers among the columns {sorted(columns)}; expected one of "
            f"{list(GOLD_COLUMNS)}; rename the column that holds them."
        )


@reward(kind="outcome")
class ExactMatchReward(RetrievalReward):
    """1.0 for an answer that equals a gold answer when both are normalized, 0.0 for another or none.

    The columns, the answer and the option are those of `RetrievalReward`.
    """

    __name__ = "exact_match"

    def score(self, answer: str, gold: str) -> float:
        """Give 1.0 for equal texts, else 0.0."""
        return float(answer == gold)


@reward(kind="outcome")
class F1Reward(RetrievalReward):
    """The harmonic mean of precision and recall of the answer's words, in [0, 1]; words count as often as they occur.

    `yes`, `no` and `noanswer`, as answer or as gold answer, match themselves only. The columns, the answer and the
    option are those of `RetrievalReward`.

    Source: Rajpurkar et al., "SQuAD", arXiv:1606.05250, section 6.1; Yang et al., "HotpotQA", arXiv:1809.09600, and its
    evaluation script for the three closed answers.
    """

    __name__ = "f1"

    def score(self, answer: str, gold: str) -> float:
        """Give the F1 of two normalized texts."""
        if answer == gold:
            return 1.0
        if {answer, gold} & CLOSED_ANSWERS:
            return 0.0
        ours, theirs = Counter(answer.split()), Counter(gold.split())
        return 2 * (ours & theirs).total() / (ours.total() + theirs.total())


def short_answer(text: str, tag: str) -> str:
    """Give the answer that counts, or "" if the message has none."""
    rest = after_thinking(text)
    if rest is None:
        return ""
    blocks = re.findall(rf"<{tag}>((?:(?!<{tag}>).)*?)</{tag}>", rest, re.DOTALL | re.IGNORECASE)
    if not blocks:
        return final_answer(rest, require_box=False, require_thinking=False)
    box = last_box(blocks[-1])
    return blocks[-1].strip() if box is None else box


def gold_answers(cell: object) -> list[str]:
    """Give the gold answers in a cell of the dataset, without empty and missing ones.

    Raises:
        TypeError: the cell holds something else than strings and numbers.
    """
    if isinstance(cell, str):
        values = _read_list(cell)
    elif isinstance(cell, Iterable) and not isinstance(cell, Mapping):
        values = list(cell)
    else:
        values = [cell]
    for value in values:
        if not isinstance(value, str | Number | None):
            raise TypeError(
                f"gold answer {value!r}: is a {type(value).__name__}, so it is unclear what an answer must equal; "
                "expected a string or a list of strings; give these in a column 'golden_answers'."
            )
    # A missing number is not equal to itself.
    texts = [_text(value).strip() for value in values if value is not None and value == value]
    return [text for text in texts if text]


def _text(value: object) -> str:
    """Give a gold answer as one writes it: tables make 12 a 12.0 if another row has none."""
    is_whole = isinstance(value, Real) and not isinstance(value, bool) and value % 1 == 0
    return str(int(value) if is_whole else value)  # type: ignore[call-overload]


def _read_list(text: str) -> list:
    """Give the list that a text spells as JSON, or a list of the text alone."""
    if not text.lstrip().startswith("["):
        return [text]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return [text]


def normalize(text: str) -> str:
    """Give a text without case, punctuation, articles and the kind of its whitespace.

    Where nothing would be left, articles stay, then punctuation too: a band called The The is not an empty answer.

    Source: Rajpurkar et al., "SQuAD", arXiv:1606.05250, section 6.1, and its evaluation script, which knows ASCII
    punctuation only and drops it from numbers too; here compatible characters are the same (NFKC), invisible ones are
    dropped, all of Unicode's punctuation counts, and signs that make another number or name stay.
    """
    text = _compatible(text)
    visible = "".join(character for character in text if character.isascii() or unicodedata.category(character) != "Cf")
    words = _SIGNS.sub(_kept, _DIGIT_GROUP.sub("", visible)).split()
    return " ".join([word for word in words if word not in ARTICLES] or words or text.split())


def _compatible(text: str) -> str:
    """Give a text in lower case and NFKC, which would make 10⁵ 105 and 1½ 11/2, with one kind of dash and slash."""
    text = _MIXED_FRACTION.sub(" ", _SUPERSCRIPT.sub(r"^\g<0>", _SUBSCRIPT.sub(r"_\g<0>", text)))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _DASH.sub("-", text).replace("\N{FRACTION SLASH}", "/")


def _kept(match: re.Match) -> str:
    if match["kept"]:
        return match[0]
    return "" if match[0] in string.punctuation or unicodedata.category(match[0]).startswith("P") else match[0]
