"""Whether a chat template is fit for rollouts of several turns."""

from dataclasses import dataclass
from typing import Any

from .chat import USER, Chat

THOUGHT = "acpo-trl-thought"
CALL = {"type": "function", "function": {"name": "f", "arguments": {}}}
TURNS: tuple[dict[str, Any], ...] = (
    {"role": "assistant", "content": "x"},
    {"role": "assistant", "content": f"<think>\n{THOUGHT}\n</think>\n\nx"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
)


@dataclass(frozen=True)
class TemplateCheck:
    """What a chat template does to a conversation of several turns."""

    rewritten_before: tuple[str, ...]
    """Roles of messages in front of which an earlier turn is rendered in another way than when it was the last."""
    drops_thinking: bool
    """Whether the thinking of a turn is gone when a user message follows."""
    opens_thinking: bool
    """Whether the generation prompt ends in an open thinking block, so that no turn begins with its tag."""
    adds_bos: bool
    """Whether the tokenizer puts a BOS in front of each text; what follows a turn must be encoded without."""
    end_of_turn: str
    """The special token that ends a turn."""

    @property
    def keeps_turns(self) -> bool:
        return not self.rewritten_before

    @property
    def problem(self) -> str | None:
        """A warning for a rollout that renders its history anew; None if there is nothing to warn of."""
        if self.keeps_turns:
            return None
        thinking = " and drops their thinking" if self.drops_thinking else ""
        return (
            f"chat template: it rewrites earlier turns{thinking} when a message of role "
            f"{' or '.join(self.rewritten_before)} follows, so the tokens of a turn are not the ones that later turns "
            "see in a history that is rendered anew; expected a template that keeps earlier turns; "
            "use a training template that does, or only ask the template for what follows a turn "
            "(acpo_trl.rollouts.suffix_ids)."
        )


def check_template(tokenizer: Any, **kwargs: Any) -> TemplateCheck:
    """Say what the chat template does to earlier turns, to thinking, and at the borders; takes milliseconds.

    Args:
        tokenizer: of transformers, with a chat template.
        kwargs: for `apply_chat_template`: `tools`, `chat_template`, `enable_thinking` and the like.

    Raises:
        ValueError: the template ends a turn with no special token.
    """
    chat = Chat(tokenizer, **kwargs)
    bos = tokenizer.bos_token_id
    return TemplateCheck(
        rewritten_before=tuple(role for role in ("user", "tool") if _rewrites(chat, role)),
        drops_thinking=_drops_thinking(chat),
        opens_thinking=chat.generation_prompt.rstrip().endswith("<think>"),
        adds_bos=bos is not None and tokenizer.encode("x")[0] == bos,
        end_of_turn=chat.end_of_turn,
    )


def _rewrites(chat: Chat, role: str) -> bool:
    """Whether a turn that a message of this role follows looks another way than at the end."""
    for turn in TURNS:
        if role == "tool" and "tool_calls" not in turn:
            continue
        try:
            whole = chat.render([USER, turn, {"role": role, "name": "f", "content": "x"}], True)
            if not whole.startswith(chat.until_end(chat.render([USER, turn]))):
                return True
        except Exception:  # a template refuses roles and calls with errors of its own choice: none to rewrite then
            continue
    return False


def _drops_thinking(chat: Chat) -> bool:
    return THOUGHT not in chat.render([USER, TURNS[1], USER], True)
