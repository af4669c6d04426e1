"""What environments and rollouts say about turns, brought into one form."""

import logging
from collections.abc import Sequence
from typing import Any

from ..rewards.declare import KINDS, Declaration
from ..rollouts.running import describe
from ..rollouts.view import TurnView
from .recording import RecordedRollout

logger = logging.getLogger(__name__)

Judged = dict[str, float | None]


class EnvironmentReward:
    """The rewards of one kind that environments give to turns, as a reward function for turns."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.declaration = Declaration(kind, "turn")
        self.__name__ = f"environment_{kind}"
        self.judged: list[list[Judged]] = []
        """For each completion and turn of the batch, rewards by kind; set by the trainer."""

    def __call__(self, completions: Sequence[Any], **columns: Any) -> list[list[float | None]]:
        return [[turn.get(self.kind) for turn in turns] for turns in self.judged]


def environment_rewards(environment_factory: Any, rollout_func: Any) -> list[EnvironmentReward]:
    """One reward for each kind in the `reward_kinds` of the environments, or of the rollout function.

    Raises:
        ValueError: an unknown kind.
    """
    factories = environment_factory.values() if isinstance(environment_factory, dict) else [environment_factory]
    kinds = [kind for source in (*factories, rollout_func) for kind in kinds_of(source)]
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"reward_kinds has {kind!r}: no such kind; expected some of {list(KINDS)}.")
    return [EnvironmentReward(kind) for kind in KINDS if kind in kinds]


def with_environment(reward_funcs: Any, own: list[EnvironmentReward], args: Any) -> list[Any]:
    """The given reward functions and those of the environment, whose weights are 1 if `args` sets weights."""
    given = reward_funcs if isinstance(reward_funcs, list) else [] if reward_funcs is None else [reward_funcs]
    if args.reward_weights is not None and len(args.reward_weights) == len(given):
        args.reward_weights = [*args.reward_weights, *[1.0] * len(own)]
    return [*given, *own]


def kinds_of(source: Any) -> tuple[str, ...]:
    """`reward_kinds` of a class, an object, or what a `functools.partial` calls."""
    while not hasattr(source, "reward_kinds") and hasattr(source, "func"):
        source = source.func
    return tuple(getattr(source, "reward_kinds", ()))


def judge_turns(
    recorded: RecordedRollout, environments: Sequence[Any] | None, kinds: Sequence[str]
) -> tuple[list[list[Judged]], list[Any]]:
    """Ask the rollout, else each environment, for rewards and state keys of turns.

    Args:
        recorded: the completions.
        environments: one for each completion, or None.
        kinds: those that are read.

    Returns:
        For each completion and turn: rewards by kind, and the state key or None. The stop reason of a completion whose
        environment fails on judging becomes `error`.

    Raises:
        ValueError: a wrong number of turn rewards, or a kind that is not in `kinds`; names the completion.
        TypeError: an environment's `_score` gives something else than `TurnScore`s.
    """
    judged, keys = [], []
    for index, turns in enumerate(recorded.views):
        if "turn_rewards" in recorded.fields:
            rewards, row_keys = _of_rollout(recorded, index)
        else:
            rewards, row_keys = _of_environment(recorded, index, environments[index] if environments else None)
        if len(rewards) != len(turns):
            raise ValueError(
                f"turn_rewards of completion {index} has {len(rewards)} entries, but it has {len(turns)} turns: return "
                "one for each assistant message, None where it is unscored."
            )
        judged.append([_by_kind(turn) for turn in rewards])
        keys.append(row_keys)
        for kind in {kind for turn in judged[-1] for kind, value in turn.items() if value is not None} - set(kinds):
            raise ValueError(
                f"turn_rewards of completion {index} have the kind {kind!r}, which nobody would read; expected some of "
                f"{list(kinds)}; name it in the `reward_kinds` of the environment or of the rollout_func."
            )
    return judged, keys


def _of_rollout(recorded: RecordedRollout, index: int) -> tuple[list[Any], list[Any]]:
    fields = recorded.fields
    rewards = [_by_kind(turn) for turn in fields["turn_rewards"][index]]
    episode = fields["episode_rewards"][index] if "episode_rewards" in fields else {}
    if rewards:  # a reward of the whole episode arrives with its last turn
        rewards[-1] = {kind: _add(rewards[-1].get(kind), episode.get(kind)) for kind in {**rewards[-1], **episode}}
    keys = fields["state_keys"][index] if "state_keys" in fields else [None] * len(rewards)
    return rewards, keys


def _of_environment(recorded: RecordedRollout, index: int, environment: Any) -> tuple[list[Any], list[Any]]:
    turns: list[TurnView] = recorded.views[index]
    nothing: list[Any] = [None] * len(turns)
    if hasattr(environment, "_score"):
        try:
            scores = environment._score(turns)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            logger.warning(
                "environment of completion %d failed on judging its turns, unscored: %s", index, describe(error)
            )
            recorded.stop_reasons[index] = "error"
            return nothing, nothing
        if not isinstance(scores, Sequence) or not all(hasattr(score, "rewards") for score in scores):
            raise TypeError(
                f"_score of {type(environment).__name__} gave {repr(scores)[:200]} for completion {index}; expected "
                "a list of acpo_trl.envs.TurnScore, one for each turn, and no coroutine."
            )
        return [score.rewards for score in scores], [score.state_key for score in scores]
    return list(getattr(environment, "turn_rewards", nothing)), nothing


def _by_kind(rewards: Any) -> Judged:
    """Rewards by kind; a bare number is a reward of the process."""
    return rewards if isinstance(rewards, dict) else {"process": rewards}


def _add(left: float | None, right: float | None) -> float | None:
    return left if right is None else right if left is None else left + right
