"""The numbers of an evaluation as tables, for the terminal and for a model card."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .compare import Comparison
from .results import BenchmarkResult, Estimate, GroupResult

CONFIDENCE = "95 %"
MAX_FLIPS = 10


def text_table(results: Sequence[BenchmarkResult], groups: bool = False) -> str:
    """A table for the terminal, in percent; with `groups` a line for each subject or level too."""
    lines = [["", "problems", "k", "mean@k", "pass@k", "maj@k", "truncated", "tokens", "unscored"]]
    for result in results:
        lines.append(
            [
                _plain(result.name),
                str(result.num_problems),
                str(result.num_samples),
                _percent(result.mean_at_k, result.num_problems),
                _percent(result.pass_at_k.get(result.num_samples), result.num_problems),
                _percent(result.maj_at_k, result.num_problems),
                *_lengths(result),
                str(result.num_unscored),
            ]
        )
        for name, group in result.groups.items() if groups else ():
            cells = [
                f"  {_plain(name)}",
                str(group.num_problems),
                "",
                _percent(group.mean_at_k, group.num_problems),
                "",
                "",
            ]
            lines.append([*cells, *_lengths(group), ""])
    return _aligned(lines) + f"\nIn percent, with {CONFIDENCE} intervals over problems."


def markdown_table(results: Sequence[BenchmarkResult], settings: Mapping[str, Any]) -> str:
    """A table for a model card, with a line that says how it was measured."""
    lines = ["| benchmark | problems | mean@k | pass@k | truncated | mean tokens |", "|---|---|---|---|---|---|"]
    for result in results:
        k = result.num_samples
        unscored = f" ({result.num_unscored} samples unscored)" if result.num_unscored else ""
        cells = [
            _plain(result.name).replace("|", "\\|"),
            f"{result.num_problems}{unscored}",
            f"{_percent(result.mean_at_k, result.num_problems)} (k={k})",
            _percent(result.pass_at_k.get(k), result.num_problems),
            *_lengths(result),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    sampling, style = settings["sampling"], settings["style"]
    how = f"{sampling['max_new_tokens']} new tokens at most, temperature {sampling['temperature']:g}"
    how += f", top_p {sampling['top_p']:g}, {style['num_examples']} worked examples, seed {settings['seed']}"
    return "\n".join([*lines, "", f"In percent, with {CONFIDENCE} bootstrap intervals over problems; {how}."]) + "\n"


def comparison_table(comparisons: Sequence[Comparison], all_flips: bool = False) -> str:
    """What changed on each benchmark, and on which problems; ten of them unless `all_flips`."""
    lines = [["", "problems", "before", "after", "difference", "gained", "lost", "equal", "sign test p"]]
    for found in comparisons:
        low, high = ("", "") if found.interval is None else (found.interval.low, found.interval.high)
        difference = "" if found.difference is None else f"{100 * found.difference:+.1f} [{_sign(low)}, {_sign(high)}]"
        counts = [str(len(found.gained)), str(len(found.lost)), str(found.num_equal)]
        means = [_share(found.mean_before), _share(found.mean_after)]
        p_value = f"{found.p_value:.3g}"
        lines.append([_plain(found.name), str(found.num_problems), *means, difference, *counts, p_value])
    text = _aligned(lines) + f"\nmean@k in percent, differences in points with {CONFIDENCE} intervals over problems."
    for found in comparisons:
        for what, ids in (("gained", found.gained), ("lost", found.lost)):
            shown = ids if all_flips else ids[:MAX_FLIPS]
            more = f", and {len(ids) - len(shown)} more" if len(ids) > len(shown) else ""
            if ids:
                text += f"\n{_plain(found.name)} {what}: {', '.join(map(_plain, shown))}{more}"
        if found.num_unscored:
            text += (
                f"\n{_plain(found.name)}: {found.num_unscored} problems that one of the two has no verdict of, left out"
            )
    return text


def _percent(estimate: Estimate | None, num_problems: int) -> str:
    if estimate is None:
        return "-"
    low, high, _ = estimate.interval
    fewer = f" of {estimate.num_problems}" if estimate.num_problems < num_problems else ""
    return f"{100 * estimate.mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]{fewer}"


def _share(mean: float | None) -> str:
    return "-" if mean is None else f"{100 * mean:.1f}"


def _sign(value: Any) -> str:
    return value if isinstance(value, str) else f"{100 * value:+.1f}"


def _lengths(result: BenchmarkResult | GroupResult) -> list[str]:
    return [f"{100 * result.truncation_rate:.1f}", f"{result.mean_tokens:.0f}"]


def _plain(text: str) -> str:
    """On one line: names come from files."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _aligned(lines: Iterable[Sequence[str]]) -> str:
    rows = list(lines)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
