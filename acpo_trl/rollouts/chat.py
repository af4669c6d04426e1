"""A chat template taken apart: what stands before, inside and after a turn of the policy."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from .codec import HERE, TextCodec
from .messages import check_messages, content_text, function_of

USER = {"role": "user", "content": "x"}
ANSWER = {"role": "assistant", "content": HERE}


class Chat(TextCodec):
    """What a chat template makes of messages, as marked text.

    Args:
        tokenizer: of transformers, with a chat template.
        kwargs: for `apply_chat_template`: `tools`, `chat_template`, `enable_thinking` and the like.
    """

    def __init__(self, tokenizer: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer)
        self.kwargs = kwargs

    def clean(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Give messages that `render` takes: content as one string, special tokens in them marked.

        Raises:
            ValueError: a message without role, or with content that is no text.
        """
        check_messages(messages)
        return [self.mark({**message, "content": content_text(message)}) for message in messages]

    def render(self, messages: Sequence[Mapping[str, Any]], generation_prompt: bool = False) -> str:
        """Give the template's own text of clean messages."""
        messages = [self._with_arguments(message) for message in messages]
        return self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=generation_prompt, **self.kwargs
        )

    def answer(self, message: Mapping[str, Any]) -> tuple[str, str]:
        """Give what stands behind the generation prompt for a clean assistant message.

        Returns:
            What the template puts there by itself, such as an empty thinking block; and what the assistant wrote:
            its content to the letter, the template's form of its tool calls, and the token that ends the turn.

        Raises:
            ValueError: the template leaves out content or tool calls, or does not begin the message with its
                generation prompt.
        """
        content = self._without_prefill(message["content"])
        shown = self.render([USER, {**message, "content": HERE if content else ""}])
        if content and HERE not in shown:
            raise _left_out("content", self.plain(message["content"]))
        for name in map(_name, message.get("tool_calls") or []):
            if name not in shown:
                raise _left_out("tool call", name)
        if message.get("reasoning_content"):
            return "", self._behind_prompt(shown).replace(HERE, content)
        if not content:
            return self._head, self._behind_prompt(shown).removeprefix(self._head)
        tail = self.until_end(shown.partition(HERE)[2])
        return "" if "</think>" in content else self._head, content + tail

    def suffix(self, messages: Sequence[Mapping[str, Any]], generation_prompt: bool = True) -> str:
        """Give the text that follows the token that ended a turn: glue, clean messages, the next generation prompt.

        Raises:
            ValueError: the template leaves the messages out, or ends a turn in another way if something follows.
        """
        turn = self._turn_before(messages)
        tail = self.until_end(self.render([USER, turn]).rpartition(HERE)[2])
        text = self.render([USER, turn, *messages], generation_prompt).rpartition(HERE)[2]
        if not text.startswith(tail):
            raise ValueError(
                f"chat template: it ends a turn with {tail!r}, but goes on with {text[:40]!r} if a message follows; "
                "expected the same end; use a training template (trl.chat_template_utils.get_training_chat_template)."
            )
        if messages and text == self.render([USER, turn], generation_prompt).rpartition(HERE)[2]:
            raise ValueError(
                f"chat template: it leaves out messages of role {messages[0]['role']!r}; expected a template that "
                "renders them; use one made for tool calls, or another role."
            )
        return text[len(tail) :]

    def until_end(self, text: str) -> str:
        """Cut off what follows the last special token of the template: the newline behind `<|im_end|>`.

        Raises:
            ValueError: there is none.
        """
        spans = [match.span() for match in self.special.finditer(text)]
        if not spans:
            raise ValueError(
                f"chat template: no special token ends the turn {self.plain(text)!r}; expected one, or nobody could "
                "see where a turn ends; use another template."
            )
        return text[: spans[-1][1]]

    @cached_property
    def end_of_turn(self) -> str:
        """The special token that ends a turn."""
        return self.special.findall(self.until_end(self.render([USER, ANSWER]).partition(HERE)[2]))[-1]

    @cached_property
    def generation_prompt(self) -> str:
        """What the template adds for the next turn."""
        return self.render([USER], True).removeprefix(self.render([USER]))

    @cached_property
    def _head(self) -> str:
        return self._behind_prompt(self.render([USER, ANSWER])).partition(HERE)[0]

    def _behind_prompt(self, shown: str) -> str:
        """Cut the generation prompt off from a rendering of one question and its answer."""
        prompt = self.render([USER], True)
        if not shown.startswith(prompt):
            begin = shown.removeprefix(self.render([USER]))[:60]
            raise ValueError(
                f"chat template: an assistant message begins with {begin!r}, not with the generation prompt "
                f"{self.generation_prompt!r}; expected what the policy sees; write the thinking into the messages, set "
                "enable_thinking as in the rollout, or use another template."
            )
        return self.until_end(shown[len(prompt) :])

    def _without_prefill(self, content: str) -> str:
        """Cut off the opening tag that the generation prompt already has."""
        if "</think>" in content and "</think>" in self.generation_prompt:
            raise ValueError(
                f"content {self.plain(content)[:60]!r}: it thinks, but the generation prompt "
                f"{self.generation_prompt!r} has closed thinking; expected what the policy saw; leave out "
                "enable_thinking=False."
            )
        opened = re.search(r"<think>(\s*)$", self.generation_prompt)
        if opened is None or not content.startswith("<think>"):
            return content
        return content.removeprefix("<think>").removeprefix(opened[1])

    def _turn_before(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        turn: dict[str, Any] = dict(ANSWER)
        if messages and messages[0]["role"] == "tool":  # some templates take the name of a tool from its call
            function = {"name": messages[0].get("name", "tool"), "arguments": {"x": HERE}}
            turn["tool_calls"] = [{"type": "function", "function": function}]
        return turn

    @cached_property
    def _takes_json(self) -> bool:
        """Whether arguments that are a string of JSON are rendered as they are, not in quotes."""
        function = {"name": "f", "arguments": '{"x": 1}'}
        call = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}
        try:
            text = self.tokenizer.apply_chat_template([USER, call], tokenize=False, **self.kwargs)
        except Exception:  # a template refuses what it does not take with errors of its own choice
            return False
        return json.dumps(function["arguments"]) not in text

    def _with_arguments(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Parse arguments in JSON for a template that does not take them so."""
        calls = message.get("tool_calls") or []
        if not calls or self._takes_json:
            return message
        return {**message, "tool_calls": [{**call, "function": _parsed(function_of(call))} for call in calls]}


def suffix_ids(tokenizer: Any, messages: Sequence[Mapping[str, Any]], **kwargs: Any) -> list[int]:
    """Give the ids that follow the token that ended a turn: glue, messages, and the generation prompt of the next turn.

    Like TRL's for tool results, but for messages of any role, none at all too, and for templates that rewrite earlier
    turns. A turn without end token, cut off or stopped by a string, needs `TemplateCheck.end_of_turn` first.

    Args:
        tokenizer: of transformers, with a chat template.
        messages: what the environment said.
        kwargs: for `apply_chat_template`.
    """
    chat = Chat(tokenizer, **kwargs)
    return chat.encode(chat.suffix(chat.clean(messages)))


def _left_out(what: str, value: str) -> ValueError:
    return ValueError(
        f"{what} {value[:60]!r}: the chat template leaves it out of an assistant message; expected a template that "
        "renders all that a turn has; use one made for tool calls."
    )


def _name(call: Mapping[str, Any]) -> str:
    return function_of(call)["name"]


def _parsed(function: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return {**function, "arguments": json.loads(function["arguments"])}
    except (ValueError, TypeError):  # a call that cannot be parsed stays what it is
        return function
