"""One picture of a run: what it earned and where its credit went."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .accuracy import Accuracy

PANELS = {
    "reward (mean over completions)": {"reward": "reward"},
    "entropy (nats per token)": {"entropy": "entropy"},
    "delta = 1 - probability of the mode": {"acpo/delta": "delta"},
    "mode rate (sampled token = mode)": {"acpo/mode_rate": "mode rate"},
    "credit (mean over tokens)": {
        "acpo/credit": "all tokens",
        "acpo/credit_positive": "advantage > 0",
        "acpo/credit_negative": "advantage < 0",
    },
}


def draw(log: Sequence[Mapping], accuracies: Mapping[str, Mapping[str, Accuracy]], title: str, file: Path) -> None:
    """Write `file` (png): one panel for each group of metrics against the step, and accuracy before and after.

    Args:
        log: `log_history` of a trainer.
        accuracies: what `measure` gave `before` and `after`.
        title: over the whole picture.
        file: where the picture goes.
    """
    figure = Figure(figsize=(13, 7), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(2, 3)
    for axis, (name, lines) in zip(axes.flat, PANELS.items(), strict=False):
        draw_metrics(axis, log, lines)
        axis.set(title=name, xlabel="step")
    draw_accuracies(axes.flat[-1], accuracies)
    figure.savefig(file, dpi=110)


def draw_metrics(axis: Axes, log: Sequence[Mapping], lines: Mapping[str, str]) -> None:
    """Draw logged metrics against the step; `lines` maps a metric's name to its label."""
    for metric, label in lines.items():
        entries = [entry for entry in log if entry.get(metric) is not None]
        axis.plot([entry["step"] for entry in entries], [entry[metric] for entry in entries], marker=".", label=label)
    if len(lines) > 1:
        axis.legend()
    axis.grid(alpha=0.3)


def draw_accuracies(axis: Axes, accuracies: Mapping[str, Mapping[str, Accuracy]]) -> None:
    """Draw bars with intervals: a group for each way of answering, in it one bar before and one after."""
    for offset, (when, results) in zip((-0.2, 0.2), accuracies.items(), strict=True):
        values = list(results.values())
        errors = [[v.mean - v.low for v in values], [v.high - v.mean for v in values]]
        places = [index + offset for index in range(len(values))]
        axis.bar(places, [v.mean for v in values], 0.38, yerr=errors, capsize=4, label=when)
        axis.set_xticks(range(len(values)), list(results))
    axis.set(title="held-out accuracy", ylim=(0, 1))
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.07), ncols=2)
    axis.grid(axis="y", alpha=0.3)
