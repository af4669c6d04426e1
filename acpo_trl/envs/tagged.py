"""Tool environments for policies that write tags instead of tool calls, such as `<search>query</search>`."""

import inspect
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..rewards.extract import after_thinking
from ..rewards.format import check_tag
from ..rollouts.view import TurnView
from .base import Step, ToolEnvironment
from .judge import carry_out, tools_of


class TaggedTools:
    """A step environment around a tool environment: `<tool>text</tool>` calls a tool, `<answer>text</answer>` ends.

    The last complete tag behind the thinking of an action counts, none if the thinking is still open; the result stands
    in `<information>`. An action without a complete tag is told so and has the format reward -1.0. A turn is judged by
    the tool environment; `outcome` is None until the episode is over, with an answer or by a limit of the rollout.

    Args:
        make: gives a tool environment whose tools take one string each.
        answer_tag: name of the tag that ends the episode.
        result_tag: name of the tag around results.

    Raises:
        ValueError, TypeError: a tool takes several arguments, or none; a name that cannot be a tag's, or is another's.

    Source: Jin et al., "Search-R1", arXiv:2503.09516, table 1, for the tags.
    """

    def __init__(
        self,
        make: Callable[[], ToolEnvironment],
        answer_tag: str = "answer",
        result_tag: str = "information",
    ) -> None:
        self._environment = make()
        self._tools = tools_of(self._environment)
        self._arguments = {name: _only_argument(name, tool) for name, tool in self._tools.items()}
        _check_names([*self._tools], answer_tag, result_tag)
        self._answer_tag = answer_tag
        self._result_tag = result_tag
        self._tag = re.compile(rf"<({'|'.join([*self._tools, answer_tag])})>((?:(?!<\1>).)*?)</\1>", re.DOTALL)
        self.reward_kinds = self._environment.reward_kinds

    def _check_columns(self, columns: Collection[str]) -> None:
        """Let the tool environment refuse a dataset without a column that it needs."""
        check = getattr(self._environment, "_check_columns", None)
        if check is not None:
            check(columns)

    def reset(self, **row: Any) -> str | None:
        """Begin an episode of the tool environment."""
        self._turns: list[TurnView] = []
        return self._environment.reset(**row)

    def step(self, action: str) -> Step:
        """Call the tool that the action names, or end the episode with its answer."""
        tags = self._tag.findall(after_thinking(action) or "")
        name, text = tags[-1] if tags else ("", "")
        is_answer = name == self._answer_tag
        result = "" if is_answer else self._result(name, text.strip())
        self._turns.append(self._view(name, text.strip(), result))
        score = self._environment._score(self._turns)[-1]
        rewards = dict(score.rewards)
        if not is_answer and "outcome" in rewards:
            rewards["outcome"] = None
        if not tags:
            rewards["format"] = -1.0
        observation = "" if is_answer else f"\n<{self._result_tag}>{result}</{self._result_tag}>\n"
        return Step(observation, rewards, is_answer, state_key=score.state_key)

    def cut_off(self, reason: str) -> dict[str, float | None]:
        """Give the outcome of an episode that a limit ended without answer."""
        rewards = self._environment._score(self._turns)[-1].rewards
        return {kind: rewards[kind] for kind in rewards if kind == "outcome"}

    def _result(self, name: str, text: str) -> str:
        if name:
            return carry_out(self._tools, {"name": name, "arguments": {self._arguments[name]: text}})
        tags = [f"<{tag}>...</{tag}>" for tag in (*self._tools, self._answer_tag)]
        return f"Nothing was done: write one of {', '.join(tags)}."

    def _view(self, name: str, text: str, result: str) -> TurnView:
        if name == self._answer_tag:
            return TurnView(f"<answer>{text}</answer>", [], [], (0, 0))
        calls = [{"name": name, "arguments": {self._arguments[name]: text}}] if name else []
        return TurnView("", calls, [result], (0, 0))


def _check_names(tools: Sequence[str], answer_tag: str, result_tag: str) -> None:
    """Raise ValueError or TypeError for tags that could not be told from each other."""
    taken = list(tools)
    for option, tag in (("answer_tag", answer_tag), ("result_tag", result_tag)):
        check_tag(option, tag)
        if tag in taken:
            raise ValueError(f"{option} {tag!r}: is the name of another tag; expected none of {taken}; rename it.")
        taken.append(tag)


def _only_argument(name: str, tool: Callable[..., Any]) -> str:
    arguments = list(inspect.signature(tool).parameters)
    if len(arguments) != 1:
        raise ValueError(
            f"tool {name!r}: takes {len(arguments)} arguments, but a tag holds one text; expected tools with one "
            "argument; use tool calls for this environment."
        )
    return arguments[0]
