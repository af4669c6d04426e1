"""Watches: what sick runs have in common, and what only looks like it."""

import logging
import math
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from acpo_trl.trainer.watch_callback import WatchCallback, stops_of
from acpo_trl.trainer.watches import WATCHES, has_learned, judge, watch_options_of

DEFAULTS = watch_options_of({})


def curve(start, end, noise=0.0, seed=0, shape=lambda x: x):
    """From start to end over the run, with normal noise."""
    chance = random.Random(seed)
    return lambda x: start + (end - start) * shape(x) + chance.gauss(0, noise)


def run(num_logs=40, **curves):
    """Logs of a run: each metric as a curve over 0 to 1, else a number."""
    flat = {"reward": curve(0.4, 0.42, 0.04), "entropy": curve(0.6, 0.55, 0.03, 1), "acpo/mode_rate": 0.9}
    flat |= {"frac_reward_zero_std": curve(0.3, 0.35, 0.05, 2), "completions/clipped_ratio": 0.02}
    flat |= {"acpo/credit_positive": 1.1, "acpo/credit_negative": 1.8, "clip_ratio/region_mean": 0.01}
    chosen = {**flat, **curves}
    return [
        {"step": 10 * (i + 1)}
        | {name: value(i / (num_logs - 1)) if callable(value) else value for name, value in chosen.items()}
        for i in range(num_logs)
    ]


late = {"shape": lambda x: max(0.0, 2 * x - 1)}
TURNS = {"turns/count/mean": curve(6.0, 6.2, 0.3, 3), "tools/name_entropy": curve(1.3, 1.25, 0.05, 4)}
SICK = {
    "entropy_collapse": run(entropy=curve(0.6, 0.02, 0.01)),
    "entropy_explosion": run(entropy=curve(0.6, 2.5, 0.1, **late), reward=curve(0.5, 0.2, 0.03)),
    "turns_shrink": run(**{**TURNS, "turns/count/mean": curve(6.0, 2.0, 0.2)}),
    "tools_shrink": run(**{**TURNS, "tools/name_entropy": curve(1.3, 0.05, 0.02)}),
    "zero_spread": run(frac_reward_zero_std=curve(0.5, 0.97, 0.02), reward=curve(0.05, 0.04, 0.01)),
    "credit_tilt": run(
        **{"acpo/credit_negative": curve(1.8, 2.9, 0.05), "acpo/credit_positive": curve(1.0, 0.1, 0.02)}
    ),
}
HEALTHY = {
    "learns fast, and its entropy falls for it": run(entropy=curve(0.6, 0.02, 0.01), reward=curve(0.2, 0.9, 0.05)),
    "starts flat and noisy": run(reward=curve(0.1, 0.12, 0.08), entropy=curve(0.9, 0.8, 0.25)),
    "is short": run(num_logs=8, entropy=curve(0.6, 0.01)),
    "grows its answers": run(
        entropy=curve(0.6, 0.8, 0.05),
        reward=curve(0.3, 0.5, 0.05),
        **{"completions/clipped_ratio": curve(0.02, 0.3, 0.03)},
    ),
    "has solved its prompts": run(
        frac_reward_zero_std=curve(0.2, 0.98, 0.01),
        reward=curve(0.3, 0.99, 0.01),
        **{"acpo/mode_rate": curve(0.8, 0.999)},
    ),
    "is sure of a short task that it learned before the first window": run(
        reward=curve(0.85, 0.87, 0.03),
        **{"acpo/mode_rate": curve(0.991, 0.996)},  # as in the quick start
    ),
    "needs fewer turns and earns more": run(
        reward=curve(0.3, 0.8, 0.05), **{**TURNS, "turns/count/mean": curve(6.0, 2.5, 0.2), "turns/stop/error": 0.0}
    ),
}


def names(history, options=DEFAULTS):
    return [finding.name for finding in judge(history, options)]


@pytest.mark.parametrize("name", SICK)
def test_a_sick_run_is_found_out_and_nothing_else_is_said_of_it(name):
    assert names(SICK[name]) == [name]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_is_left_in_peace_at_every_log(name):
    history = HEALTHY[name]
    assert [names(history[:end]) for end in range(len(history) + 1)] == [[]] * (len(history) + 1)


@pytest.mark.parametrize(
    ("metric", "value", "name"),
    [
        ("rewards/outcome/unscored", 0.2, "unscored"),
        ("clip_ratio/region_mean", 0.5, "clipped"),
        ("completions/clipped_ratio", 0.8, "truncated"),
        ("turns/stop/error", 0.1, "env_errors"),
        ("sampling/sampling_logp_difference/mean", 0.3, "sampler_drift"),
        ("acpo/mode_rate", 0.9995, "mode_rate"),
    ],
)
def test_a_level_alone_is_enough_for_the_others(metric, value, name):
    assert names(run(**{metric: value})) == [name]
    assert names(run(**{metric: 0.0})) == []


def test_a_finding_says_what_since_when_and_what_to_try():
    sick = run(**{"completions/clipped_ratio": lambda x: 0.1 if x < 0.5 else 0.9})
    (finding,) = judge(sick, DEFAULTS)
    assert (finding.metric, finding.value, finding.first) == ("completions/clipped_ratio", pytest.approx(0.9), 0.1)
    assert 180 <= finding.since <= 220  # it turned at step 205, the window has 50
    text = str(finding)
    assert "watch 'truncated': completions/clipped_ratio is 0.9 since step" in text
    assert "0.1 at the start" in text and "`max_completion_length`" in text and "`mask_truncated_completions" in text


def test_what_is_no_number_is_left_out_and_never_an_alarm():
    hole = run(entropy=lambda x: None if x < 0.9 else math.nan)
    assert names(hole) == []
    assert names([{"step": 1, "reward": 0.1}] * 30) == []


def test_noise_alone_is_no_learning():
    chance = random.Random(0)
    flat = [[chance.gauss(0.5, 0.1) for _ in range(40)] for _ in range(200)]
    assert sum(has_learned(rewards, 5) for rewards in flat) < 20
    assert has_learned([0.1] * 5 + [0.5] * 5, 5)
    assert not has_learned([0.5] * 5 + [0.1] * 5, 5)


def test_every_watch_has_a_limit_and_two_settings():
    for name, watch in WATCHES.items():
        assert any(getattr(watch, each) is not None for each in ("above", "below", "grown", "shrunk")), name
        assert len(watch.settings) == 2 and all(watch.settings)


# Options


def test_a_watch_can_be_off_or_have_other_thresholds():
    sick = SICK["entropy_collapse"]
    assert names(sick, watch_options_of({"entropy_collapse": False})) == []
    assert names(sick, watch_options_of({"entropy_collapse": {"below": 0.01}})) == []
    assert names(run(**{"completions/clipped_ratio": 0.3}), watch_options_of({"truncated": {"above": 0.2}}))
    assert names(HEALTHY["is short"], watch_options_of({"window": 2})) == ["entropy_collapse"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entropy": False}, "'entropy': no such watch; expected window and some of"),
        ({"window": 1}, "window 1: expected a whole number of logs"),
        ({"entropy_collapse": {"above": 1.0}}, r"expected false, or numbers for some of \['below', 'shrunk'\]"),
        ({"entropy_collapse": True}, "entropy_collapse True: expected false, or numbers"),
        ({"entropy_collapse": {"below": "low"}}, "expected false, or numbers"),
    ],
)
def test_options_that_cannot_be_are_refused(make_trainer, options, message):
    with pytest.raises(ValueError, match=message):
        make_trainer(watch_options=options)


def test_unknown_names_to_stop_at_are_refused():
    assert stops_of("truncated") == ["truncated"]
    with pytest.raises(ValueError, match=r"no such watches \['trunc'\]"):
        stops_of(["trunc"])


# The callback


def watched(histories, **options):
    """A callback that sees the log grow to each of the histories in turn; and what became of the run."""
    callback, control = WatchCallback(DEFAULTS, **options), SimpleNamespace(should_training_stop=False)
    for history in histories:
        state = SimpleNamespace(log_history=history, is_world_process_zero=True, global_step=7)
        callback.on_log(None, state, control)
    return control.should_training_stop


def test_it_speaks_once_and_again_only_after_it_went_away(caplog):
    sick, well = SICK["entropy_collapse"], HEALTHY["starts flat and noisy"]
    with caplog.at_level(logging.WARNING):
        watched([well, sick, sick])
        assert caplog.text.count("watch 'entropy_collapse'") == 1
        watched([sick, well, sick])
    assert caplog.text.count("watch 'entropy_collapse'") == 3


def test_it_ends_the_training_only_at_watches_that_were_named(caplog):
    sick = SICK["entropy_collapse"]
    assert not watched([sick])
    assert not watched([sick], stops=["truncated"])
    assert watched([sick], stops=["entropy_collapse"])
    assert "watches ['entropy_collapse'] end the training at step 7" in caplog.text


def test_logs_of_an_evaluation_are_passed_over():
    history = [*SICK["entropy_collapse"], {"step": 400, "eval_reward": 0.1}]
    assert not watched([history], stops=["entropy_collapse"])


def same_reward(completions, **columns):
    return [1.0] * len(completions)


@pytest.mark.slow
def test_a_run_whose_rewards_are_all_equal_warns_and_ends_and_a_good_one_trains_as_without(
    make_trainer, tmp_path, caplog
):
    settings = {"watch_options": {"window": 2}, "watch_stop": ["zero_spread"], "max_steps": 9}
    sick = make_trainer(reward_funcs=same_reward, **settings)
    sick.train()
    assert sick.state.global_step == 4
    assert "watch 'zero_spread': frac_reward_zero_std is 1 since step" in caplog.text
    caplog.clear()
    good = make_trainer(output_dir=str(tmp_path / "good"), max_steps=3)
    good.train()
    plain = make_trainer(output_dir=str(tmp_path / "plain"), max_steps=3, watches=False)
    plain.train()
    assert "watch '" not in caplog.text
    for ours, theirs in zip(good.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_the_documentation_lists_every_watch_with_its_limits():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "watches.md").read_text()
    for name, watch in WATCHES.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        for limit in ("above", "below", "grown", "shrunk"):
            value = getattr(watch, limit)
            assert (f"`{limit}` {value:g}" if value is not None else "") in row
        assert all(setting in row for setting in (*watch.settings, watch.trouble, watch.metric))
