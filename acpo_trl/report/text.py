"""The report for text terminals."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from ..records import Record
from .load import Run

BAR = 12
SPARKS = "▁▂▃▄▅▆▇█"


def render_text(run: Run, max_groups: int = 3) -> str:
    """Curves as sparklines, then the newest groups: completions, and their turns as bars.

    Args:
        run: what it shows.
        max_groups: how many prompts.
    """
    in_order = sorted(run.records, key=lambda record: (record.step, record.group, record.sample))
    groups = [list(records) for _, records in groupby(in_order, key=lambda record: (record.step, record.group))]
    lines = [plain(run.title), *_curves(run)]
    for records in groups[-max_groups:]:
        lines += ["", *_group(records)]
    if len(groups) > max_groups:
        lines += ["", f"{len(groups) - max_groups} earlier groups are not shown; `-o page.html` shows all."]
    return "\n".join(lines)


def _curves(run: Run) -> Iterator[str]:
    for series in run.charts.values():
        for name, points in series.items():
            values = [value for _, value in points]
            yield f"  {plain(name):32} {spark(values)}  {number(values[0])} -> {number(values[-1])}"


def spark(values: Sequence[float], width: int = 40) -> str:
    """Values as blocks of different height, at most `width` of them."""
    chosen = [values[place * len(values) // min(width, len(values))] for place in range(min(width, len(values)))]
    low, high = min(chosen), max(chosen)
    return "".join(SPARKS[round((v - low) / (high - low) * 7) if high > low else 3] for v in chosen)


def _group(records: Sequence[Record]) -> Iterator[str]:
    first = records[0]
    yield f"step {first.step}, {first.chosen}: {plain(first.prompt)[-100:]}"
    largest = max((abs(a) for record in records for a in record.turn_advantages if a is not None), default=0.0)
    for record in records:
        rewards = ", ".join(f"{plain(each.name)} {number(each.value)}" for each in record.rewards)
        yield f"  #{record.sample}  {rewards}; ended by {record.stop_reason or '-'}, {len(record.token_ids)} tokens"
        for turn, advantage in enumerate(record.turn_advantages):
            own = [t for t, of in enumerate(record.turn_ids) if of == turn]
            text = plain("".join(record.pieces[t] for t in own))
            credits = [c for t in own if (c := record.credit[t]) is not None]
            mean = sum(credits) / len(credits) if credits else None
            bars = bar(advantage, largest)
            yield f"      {bars} {number(advantage):>8}  credit {number(mean):>6}  {text[:60]}"


def bar(value: float | None, largest: float) -> str:
    """To the right for praise, to the left for blame."""
    length = 0 if value is None or largest == 0 else round(abs(value) / largest * BAR)
    left, right = ("#" * length, "") if value is not None and value < 0 else ("", "#" * length)
    return f"{left:>{BAR}}|{right:<{BAR}}"


def number(value: float | None) -> str:
    """Four digits, or a dash for what nobody knows."""
    return "-" if value is None else f"{value:.4g}"


def plain(text: str) -> str:
    """On one line, without what a terminal would obey."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
