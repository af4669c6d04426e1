"""From one running text, in which the environment's words stand in tags or lines of their own, to an episode."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .chat import Chat
from .episode import Episode, Segment, Turn
from .messages import content_text
from .transcript import TurnRewards, with_turn_rewards

Prompt = str | Sequence[Mapping[str, Any]]

_OBSERVATION = re.compile(r"(?:\A|(?<=\n))Observation ?\d*:")
_REST = re.compile(r"(?<=\n)(?=(?:Thought|Action) ?\d*:)")


def episode_from_tagged(
    prompt: Prompt,
    text: str,
    tokenizer: Any,
    *,
    tag: str = "information",
    turn_rewards: TurnRewards | None = None,
    **fields: Any,
) -> Episode:
    """Give the episode of a text such as `<search>q</search> <information>r</information> <answer>a</answer>`.

    What stands in the tag, white space in front of it and up to two newlines behind it are the environment's: the
    policy stops at its own closing tag. A tag that is never closed reaches to the end. The rest are turns, one for each
    run, without an end-of-turn token. Each span is encoded alone, so no token reaches over a border, and special tokens
    in the text are encoded as text.

    Args:
        prompt: chat messages, for the chat template; or text as it is.
        text: all that came after the prompt.
        tokenizer: of transformers.
        tag: of the environment's spans.
        turn_rewards: by kind, K of them.
        fields: `rewards`, `stop_reason`, `info` of the episode.

    Raises:
        ValueError: a prompt that is no text and has no messages; a closing tag that nothing opened, so that words
            of the environment would count as the policy's; text that the tokenizer changes; a wrong
            number of turn rewards.
    """
    opening, closing = re.compile(re.escape(f"<{tag}>")), re.compile(re.escape(f"</{tag}>") + r"\n{0,2}")
    pieces = _cut(text, opening, closing, None)
    for piece in pieces[::2]:
        if f"</{tag}>" in piece:
            raise ValueError(
                f"text {piece[:80]!r}: </{tag}> closes a tag that is not open, so it cannot be said whose words these "
                "are; expected pairs; load the rollout from messages or tokens instead."
            )
    return _episode(prompt, pieces, tokenizer, turn_rewards, fields)


def episode_from_react(
    prompt: Prompt, text: str, tokenizer: Any, *, turn_rewards: TurnRewards | None = None, **fields: Any
) -> Episode:
    """Give the episode of a text with lines `Thought: ...`, `Action: ...` and, by the environment, `Observation: ...`.

    Numbers are allowed (`Thought 1:`). An observation reaches to the next line that begins with Thought or Action, with
    the newlines around it. Else like `episode_from_tagged`. Chat messages, one for each side in turn, load with
    `episode_from_messages`.
    """
    return _episode(prompt, _cut(text, _OBSERVATION, _REST, "\n"), tokenizer, turn_rewards, fields)


def _cut(text: str, opening: re.Pattern[str], closing: re.Pattern[str], space: str | None) -> list[str]:
    """Give the policy's words and the environment's in turn, in time linear in the text.

    Args:
        text: of an episode.
        opening: begins what the environment says.
        closing: ends it; else the text does.
        space: letters in front of `opening` that are the environment's too; None for white space.
    """
    pieces, at = [], 0
    while found := opening.search(text, at):
        start = at + len(text[at : found.start()].rstrip(space))
        end = closing.search(text, found.end())
        pieces += [text[at:start], text[start : end.end() if end else len(text)]]
        at += len(pieces[-2]) + len(pieces[-1])
    return [*pieces, text[at:]]


def _episode(
    prompt: Prompt, pieces: list[str], tokenizer: Any, turn_rewards: TurnRewards | None, fields: dict[str, Any]
) -> Episode:
    """Make an episode of words of the policy and of the environment, which take turns and may be empty."""
    chat = Chat(tokenizer)
    prompt_ids, heard = _begin(prompt, chat)
    segments: list[Segment | Turn] = []
    messages: list[dict[str, Any]] = []
    for index, piece in enumerate(pieces):
        if not piece:
            continue
        marked = chat.mark(piece)
        if index % 2:
            heard = piece
            segments.append(Segment("tool", chat.encode(marked)))
            messages.append({"role": "tool", "content": piece})
        else:
            segments.append(Turn(chat.encode_exact(marked), observation=heard.strip()))
            messages.append({"role": "assistant", "content": piece})
    return with_turn_rewards(Episode(prompt_ids, segments, messages=messages, **fields), turn_rewards)


def _begin(prompt: Prompt, chat: Chat) -> tuple[list[int], str]:
    """Give the ids of the prompt and its last text."""
    if isinstance(prompt, str):
        return chat.tokenizer.encode(prompt), prompt
    if not isinstance(prompt, list | tuple) or not prompt:
        raise ValueError(f"prompt {prompt!r}: there is nothing to answer; expected chat messages or a text.")
    messages = chat.clean(prompt)
    return chat.encode(chat.render(messages, generation_prompt=True)), content_text(prompt[-1])
