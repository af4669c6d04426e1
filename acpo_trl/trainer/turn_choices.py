"""Which estimators give turns their advantages, what they need to know, and who finds it out."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from trl import GRPOConfig

from ..advantages import KIND_ESTIMATORS, TURN_ESTIMATORS, TokenTable, TurnRewards
from ..advantages.kinds import Credit, Estimator, combine, gdpo, mixed
from ..advantages.needs import Estimate, advantages_of, needs_of
from ..resolve import resolve
from .inputs import check_turn_advantages

KIND_TREATMENTS = ("separate", "mixed", "gdpo")
CRITIC_NEEDS = frozenset({"state_values", "contributions", "token_values"})
T = TypeVar("T")


class TurnCredit(NamedTuple):
    """How rewards by kind become advantages."""

    combine: Callable[[Mapping[str, TurnRewards], Mapping[str, float]], Credit]
    needs: frozenset[str]
    """What some estimator wants to know, names of `acpo_trl.advantages.NEEDS`."""

    @property
    def critic_need(self) -> str | None:
        """What a critic has to say, one of `CRITIC_NEEDS`; None if nobody asks one."""
        return next(iter(self.needs & CRITIC_NEEDS), None)


@dataclass(frozen=True)
class CriticOptions:
    """Settings of the critic of an estimator that needs one."""

    learning_rate: float | None = None
    """By default 1e-3 for a head on the policy's states and 1e-5 for a model of its own."""
    model: str | None = None
    """Name or folder of a model of its own; None for a head on the policy's hidden states."""
    detach: bool = True
    """Keep the gradient of the critic's loss out of the policy."""
    coefficient: float = 0.1
    """Weight of the critic's loss in the policy's, if not detached."""
    clip: float | None = 0.2
    """How far a value may move from the one at sampling before its loss no longer falls; None: any distance."""
    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        for name in ("learning_rate", "coefficient", "clip", "max_grad_norm"):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
            if not is_number and not (value is None and name in ("learning_rate", "clip")):
                raise ValueError(f"{name} {value!r}: the critic would not learn; expected a number above 0.")
        if not isinstance(self.detach, bool) or (self.model is not None and not isinstance(self.model, str)):
            raise ValueError(
                f"detach {self.detach!r} and model {self.model!r}: expected true or false, and a name or nothing."
            )


@dataclass(frozen=True)
class BeliefOptions:
    """How the belief in the gold answer is asked for."""

    column: str = "answer"
    """Column of the dataset with the gold answer, a text or a list of texts that are all right."""
    prefix: str = ""
    """What the policy is made to say before the answer, such as "<answer>"."""

    def __post_init__(self) -> None:
        if not all(isinstance(value, str) for value in (self.column, self.prefix)):
            raise ValueError(f"column {self.column!r} and prefix {self.prefix!r}: expected two texts.")


def turn_credit_of(args: GRPOConfig) -> TurnCredit | None:
    """What the configuration makes of rewards by kind; None: TRL's advantages of whole completions.

    Raises:
        ValueError: an unknown name, options that an estimator does not take, or choices that do not fit together.
    """
    if args.kinds not in KIND_TREATMENTS:
        raise ValueError(f"kinds {args.kinds!r}: no such treatment; expected one of {list(KIND_TREATMENTS)}.")
    if args.turn_estimator is None or args.kinds == "gdpo":
        for name in ("turn_estimator", "turn_estimator_options", "kind_estimators"):
            if getattr(args, name):
                raise ValueError(
                    f"{name} {getattr(args, name)!r}: nothing would use it without a turn_estimator, or "
                    "with kinds 'gdpo'; leave it out or change these."
                )
        if args.kinds == "mixed":
            raise ValueError("kinds 'mixed': there is no turn_estimator for the sum; set one.")
        return TurnCredit(gdpo, frozenset()) if args.kinds == "gdpo" else None
    estimator = estimator_of(args.turn_estimator, args.turn_estimator_options, "turn_estimator")
    if args.kinds == "mixed":
        if args.kind_estimators:
            raise ValueError("kind_estimators with kinds 'mixed': rewards are summed first; leave one of them out.")
        _check_one_critic({"the sum": estimator})
        return TurnCredit(partial(mixed, estimator=estimator), needs_of(estimator))
    estimators: dict[str, Estimator] = {**KIND_ESTIMATORS, "outcome": estimator}
    for kind, choice in (args.kind_estimators or {}).items():
        if kind not in estimators or kind == "outcome":
            raise ValueError(f"kind_estimators has {kind!r}: expected some of ['process', 'cost', 'format'].")
        options = dict(choice) if isinstance(choice, dict) else {"name": choice}
        estimators[kind] = estimator_of(options.pop("name", None), options, f"kind_estimators of {kind}")
    _check_one_critic(estimators)
    needs = frozenset().union(*map(needs_of, estimators.values()))
    return TurnCredit(partial(combine, estimators=estimators), needs)


def _check_one_critic(estimators: Mapping[str, Estimator]) -> None:
    asked = {kind: sorted(needs_of(estimator) & CRITIC_NEEDS) for kind, estimator in estimators.items()}
    asking = {kind: names for kind, names in asked.items() if names}
    if len(asking) > 1:
        raise ValueError(
            f"the estimators of {' and '.join(asking)} each learn from a critic: one critic cannot serve several; "
            "expected one of them; set kinds='mixed' for one estimator of the sum, or another estimator for the rest."
        )
    for kind, names in asking.items():
        if len(names) > 1:
            raise ValueError(
                f"the estimator of {kind} needs {' and '.join(names)}: a critic says one of them; expected one; let "
                "the estimator do without the others."
            )


def check_turn_choices(args: GRPOConfig) -> None:
    """Refuse choices about turns that cannot work.

    Raises:
        ValueError: names the option, what came, why it cannot work and what to set instead.
    """
    credit = turn_credit_of(args)
    needs = frozenset() if credit is None else credit.needs
    for name, kind, has_use in (
        ("critic_options", CriticOptions, bool(needs & CRITIC_NEEDS)),
        ("belief_options", BeliefOptions, "beliefs" in needs),
    ):
        if getattr(args, name) is not None and not has_use:
            raise ValueError(
                f"{name} {getattr(args, name)!r}: turn_estimator {args.turn_estimator!r} would not use them; leave "
                "them out or choose an estimator that does."
            )
        options_of(args, name, kind)


def options_of(args: GRPOConfig, name: str, kind: type[T]) -> T:
    """The dict of options called `name` as an object of `kind`.

    Raises:
        ValueError: an unknown option, or a value that cannot work.
    """
    given = getattr(args, name) or {}
    try:
        return kind(**given)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} {given!r}: {error}; expected a mapping with some of {list(inspect.signature(kind).parameters)}."
        ) from error


def estimator_of(name: str, options: dict[str, Any] | None, option: str) -> Estimator:
    """The named turn estimator with its options bound; raises ValueError if there is none, or it does not take them."""
    estimator: Callable[..., Estimate] = resolve(name, TURN_ESTIMATORS, option)
    if not callable(estimator):
        raise ValueError(f"{option} {name!r}: is no function; expected (turns, **options) -> advantages.")
    if options is not None and not isinstance(options, dict):
        raise ValueError(f"options of {option} {options!r}: are no mapping; expected such as {{'gamma': 0.95}}.")
    bound = partial(estimator, **(options or {}))
    try:
        check_turn_advantages(advantages_of(bound(_TRIAL)), _TRIAL, name, needs_of(estimator))
    except Exception as error:
        raise ValueError(
            f"{option} {name!r} with options {options or {}!r}: fails on a table of two completions "
            f"({type(error).__name__}: {error}); expected options of {inspect.signature(estimator)} and finite "
            "advantages, one for each completion and turn."
        ) from error
    return bound


def _trial() -> TurnRewards:
    """Two completions with all that is known about them, the first of two turns, the second of one."""
    keys, zeros = torch.tensor([[1, 2], [1, -1]]), torch.zeros(2, 2)
    turn_ids = torch.tensor([[0, -1, 1], [0, 0, -1]])
    return TurnRewards(
        torch.tensor([[0.0, 1.0], [0.5, torch.nan]]),
        torch.tensor([2, 1]),
        2,
        state_keys=keys,
        action_keys=keys,
        num_tokens=torch.tensor([[1, 1], [2, 0]]),
        is_valid=torch.tensor([[True, True], [False, False]]),
        is_truncated=torch.tensor([False, True]),
        observations=[["a", "b"], ["a"]],
        beliefs=torch.tensor([[-2.0, -1.0], [-2.0, torch.nan]]),
        state_values=zeros,
        end_values=torch.zeros(2),
        contributions=zeros,
        tokens=TokenTable(turn_ids, turn_ids + 1, torch.ones(2, 3), 1.0, torch.zeros(2, 3)),
    )


_TRIAL = _trial()
