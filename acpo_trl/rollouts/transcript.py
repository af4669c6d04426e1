"""From chat messages to an episode: what the policy wrote, and what stood between."""

from collections.abc import Mapping, Sequence
from typing import Any

from .chat import Chat
from .episode import Episode, Segment, Turn
from .messages import content_text

TurnRewards = Sequence[dict[str, float | None]]


def episode_from_messages(
    messages: Sequence[Mapping[str, Any]],
    tokenizer: Any,
    *,
    num_prompt_messages: int | None = None,
    keep_dropped: bool = False,
    turn_rewards: TurnRewards | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Episode:
    """Give the row of a rollout that goes on from its own tokens, one turn for each assistant message.

    A turn has the content of its message to the letter, the template's form of its tool calls, and the token that
    ends a turn (not if the message says `"finish_reason": "length"`). All else is a segment: the template asked for
    what stands between two turns, never for an earlier turn again. Where the template keeps earlier turns, prompt and
    completion are its own rendering of the messages, up to the last end of a turn. Special tokens written into a
    message are encoded as text.

    Args:
        messages: in the form of OpenAI, with tool calls; arguments as JSON or as a dictionary.
        tokenizer: of transformers, with a chat template.
        num_prompt_messages: where the prompt ends; by default before the first assistant message.
        keep_dropped: also build the row if the template leaves out what an earlier turn wrote, as Qwen3 does with
            thinking in front of a later user message. The row is then what a policy sees that keeps its tokens, not
            what one sees whose history is rendered anew before each turn.
        turn_rewards: by kind, K of them.
        chat_template_kwargs: for `apply_chat_template`: `tools`, `chat_template`, `enable_thinking` and the like.
        fields: `rewards`, `stop_reason`, `info` of the episode.

    Raises:
        ValueError: a message without role, or with content that is no text; the template leaves out
            what a turn wrote; text that the tokenizer changes; a prompt that is not followed by an assistant
            message; a wrong number of turn rewards.
    """
    chat = Chat(tokenizer, **(chat_template_kwargs or {}))
    clean = chat.clean(messages)
    start = _end_of_prompt(messages, num_prompt_messages)
    if not keep_dropped:
        _check_kept(chat, clean, start)
    episode = Episode(
        prompt_ids=chat.encode(chat.render(clean[:start], True)),
        segments=_segments(chat, clean, start),
        messages=[dict(message) for message in messages[start:]],
        **fields,
    )
    return with_turn_rewards(episode, turn_rewards)


def with_turn_rewards(episode: Episode, turn_rewards: TurnRewards | None) -> Episode:
    """Give the episode with the rewards of its turns.

    Raises:
        ValueError: their number is not that of the turns.
    """
    if turn_rewards is None:
        return episode
    if len(turn_rewards) != len(episode.turns):
        raise ValueError(
            f"turn_rewards: length mismatch, {len(turn_rewards)} for {len(episode.turns)} turns; expected one for each."
        )
    for turn, rewards in zip(episode.turns, turn_rewards, strict=True):
        turn.rewards = dict(rewards)
    return episode


def _end_of_prompt(messages: Sequence[Mapping[str, Any]], given: int | None) -> int:
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    if given is None:
        return turns[0] if turns else len(messages)
    if given not in (*turns, len(messages)):
        raise ValueError(f"num_prompt_messages {given}: no assistant message follows; expected one of {turns}.")
    return given


def _segments(chat: Chat, clean: Sequence[Mapping[str, Any]], start: int) -> list[Segment | Turn]:
    segments: list[Segment | Turn] = []
    end = ""  # of a turn that was cut off: not its own, but the template needs it before it can go on
    heard = clean[start - 1 : start]
    for message in clean[start:]:
        if message["role"] != "assistant":
            heard = [*heard, message]
            continue
        if segments:
            segments.append(Segment(_role(heard), chat.encode(end + chat.suffix(heard))))
        head, text = chat.answer(message)
        if head:
            segments.append(Segment("template", chat.encode(head)))
        is_cut = message.get("finish_reason") == "length"
        end = chat.end_of_turn if is_cut else ""
        segments.append(
            Turn(
                chat.encode_exact(text.removesuffix(end)),
                finish_reason="length" if is_cut else "stop",
                observation="\n".join(chat.plain(other["content"]) for other in heard) if heard else None,
            )
        )
        heard = []
    if segments and heard:
        segments.append(Segment(_role(heard), chat.encode(end + chat.suffix(heard, generation_prompt=False))))
    return segments


def _role(messages: Sequence[Mapping[str, Any]]) -> str:
    roles = {message["role"] for message in messages}
    return roles.pop() if len(roles) == 1 else "environment" if roles else "template"


def _check_kept(chat: Chat, clean: Sequence[Mapping[str, Any]], start: int) -> None:
    """Refuse a template that drops text of an earlier turn; white space, which many change, does not count."""
    whole, at = _squeeze(chat.render(clean)), 0
    for index, message in enumerate(clean[:-1]):
        if index < start or message["role"] != "assistant":
            continue
        for text in (message.get("reasoning_content") or "", content_text(message)):
            found = whole.find(_squeeze(text), at)
            if found < 0:
                raise ValueError(
                    f"assistant message {index}: the chat template leaves out {chat.plain(text)[:60]!r} when it "
                    "renders the whole conversation, so what the policy saw later is not known; expected a template "
                    "that keeps earlier turns; use a training template "
                    "(trl.chat_template_utils.get_training_chat_template), or keep_dropped=True if the policy went on "
                    "from its own tokens."
                )
            at = found + len(_squeeze(text))


def _squeeze(text: str) -> str:
    return "".join(text.split())
