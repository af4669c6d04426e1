"""What a log says about the health of a run: one table of signs, each with the settings to try."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from statistics import fmean, pvariance
from typing import Any

Log = Mapping[str, Any]
REWARD = "reward"


@dataclass(frozen=True)
class Watch:
    """A sign of trouble: all the limits that are set are passed, in the mean over the newest window of logs."""

    metric: str
    """Pattern of its name; of several the worst counts."""
    trouble: str
    """What it means."""
    settings: tuple[str, str]
    """To try."""
    above: float | None = None
    """The mean is above it."""
    below: float | None = None
    grown: float | None = None
    """The mean is more than so many times that of the first window."""
    shrunk: float | None = None
    """It is less than so many times that of the first window."""
    over: str | None = None
    """Divide by this metric."""
    spares_learning: bool = False
    """Nothing is wrong while the reward is better than in the first window."""


WATCHES: dict[str, Watch] = {
    "entropy_collapse": Watch(
        "entropy",
        "the policy has stopped exploring, and earns no more for it",
        ("a higher `epsilon_high` (0.28)", "a higher `temperature`, or `beta: 0.01`"),
        below=0.1,
        shrunk=0.4,
        spares_learning=True,
    ),
    "entropy_explosion": Watch(
        "entropy",
        "the policy forgets what it could do",
        ("a lower `learning_rate`", "`beta: 0.01`, or a lower `max_grad_norm`"),
        above=0.5,
        grown=2.0,
    ),
    "mode_rate": Watch(
        "acpo/mode_rate",
        "sampling is all but greedy, so the completions of a group are the same",
        ("a higher `temperature`", "a larger `num_generations`"),
        above=0.999,
        spares_learning=True,
    ),
    "credit_tilt": Watch(
        "acpo/credit_negative",
        "failures are pushed down far more than successes up",
        ("`credit_normalization: sign`", "a lower `credit_mix`"),
        above=3.0,
        over="acpo/credit_positive",
    ),
    "turns_shrink": Watch(
        "turns/count/mean",
        "episodes get shorter without earning more: turns may be blamed for what others did",
        ("another `turn_estimator`, or `kinds` kept apart", "a lower weight of costs and format"),
        shrunk=0.7,
        spares_learning=True,
    ),
    "tools_shrink": Watch(
        "tools/*_entropy",
        "ever the same calls are made, and earn no more",
        ("another `turn_estimator`, or `kinds` kept apart", "a higher `temperature`"),
        below=0.5,
        shrunk=0.5,
        spares_learning=True,
    ),
    "zero_spread": Watch(
        "frac_reward_zero_std",
        "most groups earn the same for all completions and teach nothing",
        ("`dynamic_sampling: 2`", "prompts of another difficulty, or a larger `num_generations`"),
        above=0.8,
        spares_learning=True,
    ),
    "unscored": Watch(
        "rewards/*/unscored",
        "completions go unscored: gold answers cannot be read, or a judge or environment fails",
        ("`acpo-trl rewards check`", "a larger `limit_s` of the reward"),
        above=0.05,
    ),
    "clipped": Watch(
        "clip_ratio/region_mean",
        "the loss ignores many tokens, whose ratio has left the clip range",
        ("fewer `num_iterations` or `steps_per_generation`", "a lower `learning_rate`"),
        above=0.3,
    ),
    "truncated": Watch(
        "completions/clipped_ratio",
        "a limit of tokens ends many completions before their answer",
        ("a larger `max_completion_length`", "`mask_truncated_completions: true`, or the reward `overlong`"),
        above=0.5,
    ),
    "env_errors": Watch(
        "turns/stop/error",
        "the environment fails, and those episodes are unscored",
        ("the errors of the log", "a larger `step_limit_s` of the rollout"),
        above=0.02,
    ),
    "sampler_drift": Watch(
        "sampling/sampling_logp_difference/mean",
        "the sampler and the trainer disagree about the probabilities of tokens",
        ("`vllm_importance_sampling_correction: true`", "`cast_lm_head_to_fp32: true`, or the same dtype for both"),
        above=0.1,
    ),
}
THRESHOLDS = ("above", "below", "grown", "shrunk")


@dataclass(frozen=True)
class Finding:
    """What a watch has seen."""

    name: str
    metric: str
    value: float
    """Mean over the newest window."""
    first: float
    """Mean over the first window."""
    since: int
    """Step from which on it has been so."""

    def __str__(self) -> str:
        watch = WATCHES[self.name]
        of = f"{self.metric} / {watch.over}" if watch.over else self.metric
        return (
            f"watch {self.name!r}: {of} is {self.value:.3g} since step {self.since}, {self.first:.3g} at the start: "
            f"{watch.trouble}. Try {watch.settings[0]}; or {watch.settings[1]}. "
            f"(docs/reference/watches.md; off with watch_options: {{{self.name}: false}})"
        )


@dataclass(frozen=True)
class WatchOptions:
    """How logs are judged.

    Raises:
        ValueError: what cannot be.
    """

    watches: Mapping[str, Watch]
    window: int = 5
    """So many logs are averaged; twice as many must be there before anything is said."""


def watch_options_of(given: Mapping[str, Any]) -> WatchOptions:
    """`WatchOptions` from a mapping: `window`, and for a watch false or thresholds that differ from its own.

    Raises:
        ValueError: an unknown watch, or thresholds that it does not have.
    """
    window, chosen = given.get("window", 5), dict(WATCHES)
    if type(window) is not int or window < 2:
        raise ValueError(f"window {window!r}: expected a whole number of logs, 2 or more.")
    for name, changes in given.items():
        if name == "window":
            continue
        if name not in WATCHES:
            raise ValueError(f"{name!r}: no such watch; expected window and some of {list(WATCHES)}.")
        own = [each.name for each in fields(Watch) if each.name in THRESHOLDS and getattr(WATCHES[name], each.name)]
        if changes is False:
            del chosen[name]
        elif isinstance(changes, Mapping) and changes and not set(changes) - set(own) and _are_numbers(changes):
            chosen[name] = replace(chosen[name], **changes)
        else:
            raise ValueError(f"{name} {changes!r}: expected false, or numbers for some of {own}.")
    return WatchOptions(chosen, window)


def _are_numbers(changes: Mapping[str, Any]) -> bool:
    return all(type(value) in (int, float) and math.isfinite(value) for value in changes.values())


def judge(history: Sequence[Log], options: WatchOptions) -> list[Finding]:
    """What is wrong at the end of a history of logs.

    Args:
        history: training logs in order; values that are no numbers are left out.
        options: which watches, and how much they look at.
    """
    found = []
    for name, watch in options.watches.items():
        metrics = sorted({key for log in history for key in log if fnmatchcase(key, watch.metric)})
        seen = [finding for metric in metrics if (finding := _judge(name, watch, metric, history, options.window))]
        found += seen[:1]
    return found


def _judge(name: str, watch: Watch, metric: str, history: Sequence[Log], window: int) -> Finding | None:
    points = [(int(log["step"]), value) for log in history if (value := _value(log, metric, watch.over)) is not None]
    if len(points) < 2 * window:
        return None
    values = [value for _, value in points]
    first = fmean(values[:window])
    if watch.spares_learning and has_learned([r for log in history if (r := _value(log, REWARD)) is not None], window):
        return None
    since = None
    for end in range(len(values), 2 * window - 1, -1):  # back to where it began
        if not _is_passed(watch, fmean(values[end - window : end]), first):
            break
        since = points[end - window][0]
    return None if since is None else Finding(name, metric, fmean(values[-window:]), first, since)


def _value(log: Log, metric: str, over: str | None = None) -> float | None:
    value = log.get(metric)
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if over is None:
        return float(value)
    base = _value(log, over)
    return value / base if base else None


def _is_passed(watch: Watch, mean: float, first: float) -> bool:
    return (
        (watch.above is None or mean > watch.above)
        and (watch.below is None or mean < watch.below)
        and (watch.grown is None or mean > watch.grown * first)
        and (watch.shrunk is None or mean < watch.shrunk * first)
    )


def has_learned(rewards: Sequence[float], window: int) -> bool:
    """Whether the newest rewards are better than the first ones, beyond their noise (two standard errors)."""
    if len(rewards) < 2 * window:
        return False
    first, last = rewards[:window], rewards[-window:]
    error = math.sqrt((pvariance(first) + pvariance(last)) / (window - 1))
    return fmean(last) - fmean(first) > max(2 * error, 0.02 * abs(fmean(first)))
