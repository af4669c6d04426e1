"""What is recorded of a completion: the columns of the files, and the same as Python objects."""

from dataclasses import dataclass, field

import pyarrow as pa  # type: ignore[import-untyped]

FOLDER = "credit_log"
"""In the output folder of a run; a file for each recorded step and process."""


@dataclass(frozen=True)
class RewardEntry:
    """What a reward function said about the whole completion."""

    name: str
    kind: str
    """`outcome`, `format`, `cost` or `process`."""
    weight: float
    value: float | None
    """None: unscored."""


@dataclass(frozen=True)
class TurnRewardEntry:
    """The weighted rewards of one kind, turn by turn."""

    kind: str
    values: list[float | None]
    """(K,), weights applied; None for turns without a reward of this kind."""


@dataclass(frozen=True)
class Record:
    """One completion, when the loss first used it. T tokens, those of the environment included; K turns."""

    step: int
    """Optimizer steps that were done before the completion was sampled."""
    group: int
    """Which prompt of the run; completions of one group have equal numbers."""
    sample: int
    """0 to G - 1, which completion of its group."""
    chosen: str
    """Why the group was recorded: `random`, `best`, `worst` or `zero_spread`."""
    prompt: str
    stop_reason: str | None
    """One of `acpo_trl.rollouts.episode.STOP_REASONS`; None if nobody knows."""
    is_truncated: bool
    rewards: list[RewardEntry]
    turn_rewards: list[TurnRewardEntry]
    turn_estimator: str | None
    """None: one advantage for the whole completion."""
    credit_rule: str
    token_ids: list[int]
    """(T,)."""
    pieces: list[str]
    """(T,), texts of the tokens; one that ends inside a character is "", and the next has it all."""
    turn_ids: list[int]
    """(T,), -1 for tokens of the environment."""
    log_probs: list[float | None]
    """(T,) in nats, of the policy when the loss first used the completion; None, as in all that follow, for tokens that
    the loss leaves out: those of the environment, and all of a completion that `mask_truncated_completions` takes out.
    """
    delta: list[float | None]
    """(T,), 1 - pi(v*)."""
    is_mode: list[bool | None]
    """(T,), the token is the likeliest."""
    entropy: list[float | None]
    """(T,) in nats."""
    advantage: list[float | None]
    """(T,), before credit."""
    credit: list[float | None]
    """(T,); the loss uses advantage times credit."""
    ratio: list[float | None]
    """(T,), importance ratio of the loss, before it clips; 1 where TRL has no old log-probabilities."""
    turn_advantages: list[float | None]
    """(K,), mean over the turn's tokens before credit; None for turns without tokens."""
    state_keys: list[int] = field(default_factory=list)
    """(K,): turns of a group with equal keys start from the same state."""
    action_keys: list[int] = field(default_factory=list)
    """(K,): turns with equal keys say the same; -1 without tokens."""


_FLOATS = pa.list_(pa.float32())
SCHEMA = pa.schema(
    [
        ("step", pa.int64()),
        ("group", pa.int64()),
        ("sample", pa.int32()),
        ("chosen", pa.string()),
        ("prompt", pa.string()),
        ("stop_reason", pa.string()),
        ("is_truncated", pa.bool_()),
        (
            "rewards",
            pa.list_(
                pa.struct(
                    [("name", pa.string()), ("kind", pa.string()), ("weight", pa.float64()), ("value", pa.float64())]
                )
            ),
        ),
        ("turn_rewards", pa.list_(pa.struct([("kind", pa.string()), ("values", pa.list_(pa.float64()))]))),
        ("turn_estimator", pa.string()),
        ("credit_rule", pa.string()),
        ("token_ids", pa.list_(pa.int32())),
        ("pieces", pa.list_(pa.string())),
        ("turn_ids", pa.list_(pa.int32())),
        ("log_probs", _FLOATS),
        ("delta", _FLOATS),
        ("is_mode", pa.list_(pa.bool_())),
        ("entropy", _FLOATS),
        ("advantage", _FLOATS),
        ("credit", _FLOATS),
        ("ratio", _FLOATS),
        ("turn_advantages", _FLOATS),
        ("state_keys", pa.list_(pa.int64())),
        ("action_keys", pa.list_(pa.int64())),
    ]
)
