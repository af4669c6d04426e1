"""Is the final answer right? The reward `math`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .declare import Verdict
from .extract import Completion, final_answer, gold_answer, last_assistant_text
from .worker import Failure, Pool

MEMORY_BYTES = 2 * 2**30
MAX_CHARACTERS = 10_000
MAX_REMEMBERED = 20_000
MAX_SHOWN = 200

_pools: dict[float, Pool] = {}
_remembered: dict[tuple[str, str], Verdict] = {}


class MathReward:
    r"""1.0 for a right final answer, 0.0 for a wrong or missing one, None where the gold answer cannot be read.

    The answer is the last `\boxed{...}` behind the last closing thinking tag of the last assistant message. The gold
    answer comes from the dataset column `solution`, else `answer`; docs/concepts/rewards.md says what counts as equal.
    An answer that cannot be checked within the limits earns 0.0.

    Args:
        limit_s: wall-clock seconds for one answer.
        require_box: score only boxed answers. Without it, a message without box may state its answer in a line such as
            `Answer: 4`, `The answer is 4.` or `#### 4`.
        require_thinking: a message without closing thinking tag has no answer. Set it where the chat template opens the
            thinking block, because then only the closing tag is part of the completion.
    """

    __name__ = "math"

    def __init__(self, limit_s: float = 5.0, require_box: bool = False, require_thinking: bool = False) -> None:
        self.limit_s = limit_s
        self.require_box = require_box
        self.require_thinking = require_thinking

    def __call__(
        self,
        completions: Sequence[Completion],
        log_extra: Callable[[str, list], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Score each completion against its gold answer.

        Raises:
            ValueError: there is neither a column `solution` nor a column `answer`.
        """
        golds = [gold_answer(gold) for gold in gold_column(columns)]
        texts = [last_assistant_text(completion) for completion in completions]
        answers = [final_answer(text, self.require_box, self.require_thinking) for text in texts]
        verdicts = self.compare(list(zip(golds, answers, strict=True)))
        if log_extra is not None:
            log_extra("math_answer", [answer[:MAX_SHOWN] for answer in answers])
            log_extra("math_reason", [verdict.reason for verdict in verdicts])
        return [verdict.score for verdict in verdicts]

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
        """Give the verdict on each pair of gold answer and answer, both without their box."""
        known = {pair: verdict for pair in pairs if (verdict := _remembered.get(pair))}
        new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        known |= zip(new, self._judge(new), strict=True)
        return [known[pair] for pair in pairs]

    def _judge(self, pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
        verdicts = {pair: Verdict(None if len(pair[0]) > MAX_CHARACTERS else 0.0, "too long") for pair in pairs}
        small = [pair for pair in pairs if max(map(len, pair)) <= MAX_CHARACTERS]
        verdicts |= zip(small, self._pool.run(small), strict=True)
        failed = [pair for pair in small if isinstance(verdicts[pair], Failure)]
        # Whose fault was it? A gold answer that fails against 0 too says nothing about the model.
        golds = list(dict.fromkeys(gold for gold, _ in failed))
        checks = dict(zip(golds, self._pool.run([(gold, "0") for gold in golds]), strict=True))
        for pair in failed:
            is_gold_bad = isinstance(checks[pair[0]], Failure)
            verdicts[pair] = Verdict(None if is_gold_bad else 0.0, verdicts[pair].reason)
        _remember((pair, verdicts[pair]) for pair in pairs if pair not in failed)
        return [verdicts[pair] for pair in pairs]

    @property
    def _pool(self) -> Pool:
        return _pools.get(self.limit_s) or _pools.setdefault(
            self.limit_s, Pool("acpo_trl.rewards.equivalence.grade.grade", self.limit_s, MEMORY_BYTES)
        )


def gold_column(columns: Mapping[str, Any]) -> Sequence:
    """Give the dataset column with the gold answers."""
    for name in ("solution", "answer"):
        if name in columns:
            return columns[name]
    raise ValueError(
        f"reward 'math': no gold answers among the columns {sorted(columns)}; expected a column 'solution' or "
        "'answer'; rename the column that holds them."
    )


def _remember(verdicts: Iterable[tuple[tuple[str, str], Verdict]]) -> None:
    if len(_remembered) > MAX_REMEMBERED:
        _remembered.clear()
    _remembered.update(verdicts)
