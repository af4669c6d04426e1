"""Which metrics of a log are drawn together."""

from collections.abc import Mapping

Panels = Mapping[str, Mapping[str, str]]

CREDIT = {
    "acpo/credit": "all tokens",
    "acpo/credit_positive": "advantage > 0",
    "acpo/credit_negative": "advantage < 0",
}
PANELS = {
    "reward (mean over completions)": {"reward": "reward"},
    "entropy (nats per token)": {"entropy": "entropy"},
    "delta = 1 - probability of the mode": {"acpo/delta": "delta"},
    "mode rate (sampled token = mode)": {"acpo/mode_rate": "mode rate"},
    "credit (mean over tokens)": CREDIT,
}
MULTI_TURN_PANELS = {
    "success (mean over episodes)": {"rewards/environment_outcome/mean": "outcome"},
    "sums over an episode's turns": {
        "rewards/environment_process/mean": "process: next card read",
        "rewards/environment_cost/mean": "cost: other cards read",
    },
    "invalid calls (share of turns)": {"turns/invalid": "invalid"},
    "turns per episode": {"turns/count/mean": "mean", "turns/count/max": "longest of a batch"},
    "entropy (nats per token)": {"entropy": "entropy"},
    "credit (mean over tokens)": CREDIT,
    "share of the advantages": {
        f"turns/advantage_share/{kind}": kind for kind in ("outcome", "process", "cost", "format")
    },
}
