"""The environment of a run, found, built once and checked before anything heavy is loaded."""

import functools
import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from transformers.utils import get_json_schema
from trl.chat_template_utils import (
    add_response_schema,
    get_training_chat_template,
    is_chat_template_prefix_preserving,
    supports_tool_calling,
)

from ..envs import ENVIRONMENTS, TaggedTools
from ..envs.judge import tools_of
from ..resolve import resolve
from ..rollouts import MultiTurnRollout, to_rollout
from ..rollouts.chat import Chat
from ..trainer.environment import environment_rewards
from .entry import Entry, as_options, make, read_entry, read_json, reason_of

KEYS = ["name", "options"]
EXAMPLE = '{"name": "search", "options": {"top_k": 5}}'
ROLLOUT_EXAMPLE = '{"max_turns": 8, "stop_strings": ["</search>", "</answer>"]}'

# Keys of a rollout that TRL keeps to itself; reward functions get the others.
OF_TRL = ("prompt_ids", "completion_ids", "logprobs", "env_mask")
ROLLOUT_FIELDS = tuple(name for name in to_rollout([]) if name not in OF_TRL)


@dataclass(frozen=True)
class Environment:
    """What the options `environment` and `rollout` say; the default says nothing."""

    label: str = ""
    """What errors call it, "" if there is none."""
    probe: Any = None
    """One of the environments, for checks."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """For ACPOTrainer."""

    @property
    def rollout(self) -> MultiTurnRollout | None:
        return self.arguments.get("rollout_func")

    @property
    def reward_kinds(self) -> list[str]:
        """Kinds of rewards that the trainer gets from it, in the order of their weights."""
        factory = self.arguments.get("environment_factory")
        return [reward.kind for reward in environment_rewards(factory, self.rollout)]

    @property
    def scores(self) -> bool:
        """Whether completions get a reward from it."""
        return bool(self.reward_kinds) or (self.rollout is None and hasattr(self.probe, "get_reward"))

    @property
    def columns(self) -> tuple[str, ...]:
        """What reward functions get because of it."""
        if self.rollout is not None:
            return ROLLOUT_FIELDS
        return ("environments",) if self.label else ()


def load_environment(name: str | Mapping[str, Any] | None, rollout: str | Mapping[str, Any] | None) -> Environment:
    """The environment that `name` says, for TRL's tool loop, or for a `MultiTurnRollout` with the options `rollout`.

    Raises:
        ValueError: a rollout without environment, an unknown name or options, or an environment that cannot be built
            or does not fit.
    """
    if name is None:
        if rollout is not None:
            raise ValueError(
                f"rollout {rollout!r}: there is no environment to answer the policy; expected `environment` too; set "
                f"it to one of {sorted(ENVIRONMENTS)} or a dotted path."
            )
        return Environment()
    entry = read_entry(name, "environment", KEYS, EXAMPLE)
    kind = resolve(entry.name, ENVIRONMENTS, "environment")
    if not callable(kind):
        raise ValueError(f"{entry.label}: is a {type(kind).__name__}; expected a class, or a function that gives one.")
    probe = make(kind, entry)
    check_form(probe, entry, needs_kinds=rollout is not None)
    factory = functools.partial(kind, **entry.options)
    # The trainer asks the factory; some environments know their kinds only once they are built.
    factory.reward_kinds = tuple(getattr(probe, "reward_kinds", ()))  # type: ignore[attr-defined]
    if rollout is not None:
        return Environment(entry.label, probe, {"rollout_func": make_rollout(factory, probe, entry, rollout)})
    if hasattr(probe, "step"):
        raise ValueError(
            f"{entry.label}: has a method `step`, so it reads the text of each turn, which TRL's tool loop does not "
            f"give it; expected `rollout` too; set it, e.g. to {ROLLOUT_EXAMPLE}."
        )
    check_documented(probe, entry)
    return Environment(entry.label, probe, {"environment_factory": factory})


def check_form(probe: Any, entry: Entry, needs_kinds: bool) -> None:
    """Raise ValueError for an object without the methods and rewards of an environment."""
    lacks = [name for name in ("reset", "reward_kinds") if not hasattr(probe, name)]
    if "reset" in lacks or (lacks and needs_kinds):
        raise ValueError(
            f"{entry.label}: gives a {type(probe).__name__} without `{lacks[0]}`; expected an environment with the "
            "methods of acpo_trl.envs.ToolEnvironment or StepEnvironment; see docs/howto/add_environment.md."
        )


def check_documented(probe: Any, entry: Entry) -> None:
    """Raise ValueError for a tool that the prompt could not describe."""
    for name, tool in tools_of(probe).items():
        try:
            get_json_schema(tool)
        except Exception as error:  # transformers has two kinds of its own
            raise ValueError(
                f"{entry.label}: tool {name!r} cannot be described to the policy: {error} Expected type hints and a "
                "docstring that lists the arguments; write them, or begin the name with an underscore."
            ) from error


def make_rollout(factory: Any, probe: Any, entry: Entry, rollout: str | Mapping[str, Any]) -> MultiTurnRollout:
    """A rollout with these options; a tool environment is called with tags."""
    options = as_options(read_json(rollout, "rollout", ROLLOUT_EXAMPLE), "rollout")
    if not hasattr(probe, "step"):
        if not hasattr(probe, "_score"):
            raise ValueError(
                f"{entry.label}: has neither `step` nor `_score`, so nobody could judge its turns; expected one of "
                "them; add it, or drop `rollout` to use TRL's tool loop."
            )
        try:
            TaggedTools(lambda: probe)
        except ValueError as error:
            raise ValueError(f"{entry.label}: {error} Without `rollout`, TRL's tool loop does so.") from error
        factory = functools.partial(TaggedTools, factory)
    return make(functools.partial(MultiTurnRollout, factory), Entry("rollout", "rollout", options=options))


def check_tokenizer(environment: Environment, processor: Any, template_options: Mapping[str, Any]) -> None:
    """Raise ValueError for a chat template that cannot show what the environment says."""
    try:
        if environment.rollout is not None:
            check_role(
                environment.rollout.observation_role, getattr(processor, "tokenizer", processor), template_options
            )
        elif environment.label:
            check_tools(processor)
    except ValueError as error:
        raise ValueError(f"{environment.label}: {error}") from error


def check_role(role: str | None, tokenizer: Any, template_options: Mapping[str, Any]) -> None:
    """Raise ValueError for a tokenizer that has no form for observations of this role."""
    if role is None:
        return
    if not tokenizer.chat_template:
        raise ValueError(
            f"observation_role {role!r}: the tokenizer has no chat template to give messages their form; expected one "
            "that has; drop observation_role, and observations are bare text."
        )
    chat = Chat(tokenizer, **template_options)
    chat.suffix(chat.clean([{"role": role, "content": "x"}]))


def check_tools(processor: Any) -> None:
    """Raise ValueError for a chat template that TRL's tool loop would refuse once the model is loaded."""
    if not supports_tool_calling(processor):
        raise ValueError(
            "the chat template of the tokenizer cannot show tool calls and their results; expected one that can, such "
            "as Qwen3's; use such a model, or set `rollout`, and the policy calls tools with tags."
        )
    tokenizer = getattr(processor, "tokenizer", processor)
    try:
        if not any(getattr(tokenizer, name, None) for name in ("response_template", "response_schema")):
            add_response_schema(processor)
        if not is_chat_template_prefix_preserving(processor):
            get_training_chat_template(processor)
    except ValueError as error:
        raise ValueError(
            "the chat template of the tokenizer is none whose tool calls TRL can read and continue "
            f"({' '.join(str(error).split())}); expected, to the letter, one that TRL knows; save the tokenizer with a "
            "template from trl/chat_templates, or set `rollout`, and the policy calls tools with tags."
        ) from error


def check_rows(environment: Environment, row: Mapping[str, Any]) -> None:
    """Raise ValueError for a dataset, of which `row` is the first row, that the environment cannot be reset with."""
    if not environment.label:
        return
    if environment.rollout is None and isinstance(row["prompt"], str):
        raise ValueError(
            f"{environment.label}: TRL's tool loop needs chat prompts, and these are text; expected prompt_format "
            "'chat'; set it, or set `rollout`, and the policy calls tools with tags."
        )
    check_columns(environment, list(row))


def check_columns(environment: Environment, columns: Collection[str]) -> None:
    """Raise ValueError for columns that `reset` does not take or needs, that the environment could not judge by, or
    that would be replaced."""
    if "environment" in columns:
        raise ValueError(
            f"{environment.label}: the dataset has a column 'environment', from which TRL chooses among several, but "
            "this run has one; expected another name; rename or remove the column."
        )
    if environment.rollout is not None and (taken := sorted(set(columns) & set(ROLLOUT_FIELDS))):
        raise ValueError(
            f"dataset columns {taken}: the rollout gives reward functions fields of these names; expected other "
            "names; rename or remove the columns."
        )
    try:
        inspect.signature(environment.probe.reset).bind(**dict.fromkeys(columns))
    except TypeError as error:
        raise ValueError(
            f"{environment.label}: its reset cannot take a row of the dataset: {error}; the columns are "
            f"{sorted(columns)}, with gold answers as 'solution'; add or rename columns, or let reset take `**row`."
        ) from error
    if check := getattr(environment.probe, "_check_columns", None):
        try:
            check(columns)
        except Exception as error:
            raise ValueError(f"{environment.label}: {reason_of(error)}") from error
