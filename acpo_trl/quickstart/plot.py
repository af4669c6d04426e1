"""One picture of a run: what it earned and where its credit went."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .accuracy import Accuracy
from .panels import PANELS, Panels


def draw(
    log: Sequence[Mapping],
    accuracies: Mapping[str, Mapping[str, Accuracy]],
    title: str,
    file: Path,
    panels: Panels = PANELS,
) -> None:
    """Write `file` (png): one panel for each group of metrics against the step, and accuracy before and after.

    Args:
        log: `log_history` of a trainer.
        accuracies: shares measured `before` and `after`, by name.
        title: over the whole picture.
        file: where the picture goes.
        panels: title of a panel -> metric -> label.
    """
    num_columns = (len(panels) + 2) // 2
    figure = Figure(figsize=(4.4 * num_columns, 7), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(2, num_columns)
    for axis, (name, lines) in zip(axes.flat, panels.items(), strict=False):
        draw_metrics(axis, log, lines)
        axis.set(title=name, xlabel="step")
    draw_accuracies(axes.flat[len(panels)], accuracies)
    figure.savefig(file, dpi=110)


def draw_metrics(axis: Axes, log: Sequence[Mapping], lines: Mapping[str, str]) -> None:
    """Draw logged metrics against the step; `lines` maps a metric's name to its label."""
    for metric, label in lines.items():
        entries = [entry for entry in log if entry.get(metric) is not None]
        axis.plot([entry["step"] for entry in entries], [entry[metric] for entry in entries], marker=".", label=label)
    if len(lines) > 1:
        axis.legend(fontsize="small", framealpha=0.6)
    axis.grid(alpha=0.3)


def draw_accuracies(axis: Axes, accuracies: Mapping[str, Mapping[str, Accuracy]]) -> None:
    """Draw bars with intervals: a group for each share, in it one bar before and one after."""
    for offset, (when, results) in zip((-0.2, 0.2), accuracies.items(), strict=True):
        values = list(results.values())
        errors = [[v.mean - v.low for v in values], [v.high - v.mean for v in values]]
        places = [index + offset for index in range(len(values))]
        axis.bar(places, [v.mean for v in values], 0.38, yerr=errors, capsize=4, label=when)
        axis.set_xticks(range(len(values)), list(results))
    axis.set(title="held out", ylim=(0, 1))
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.07), ncols=2)
    axis.grid(axis="y", alpha=0.3)
