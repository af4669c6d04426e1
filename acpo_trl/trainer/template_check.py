"""Which chat template to use in rollouts of several turns."""

import logging
from typing import Any

from trl import GRPOTrainer, chat_template_utils

from ..rollouts import MultiTurnRollout, check_template

logger = logging.getLogger(__name__)


def warn_of_template(trainer: GRPOTrainer) -> None:
    """Log advice at the start of a run with several turns, unless its rollout goes on from the policy's own tokens."""
    tokenizer, template = trainer._tokenizer, trainer.chat_template
    has_turns = trainer.tools or trainer.rollout_func is not None
    if not has_turns or isinstance(trainer.rollout_func, MultiTurnRollout) or not (template or tokenizer.chat_template):
        return
    if advice := template_advice(tokenizer, chat_template=template, **trainer.chat_template_kwargs):
        logger.warning(advice)


def template_advice(tokenizer: Any, **kwargs: Any) -> str | None:
    """Give a warning, with TRL's template to use instead, if the chat template rewrites earlier turns; else None.

    Args:
        tokenizer: of transformers, with a chat template.
        kwargs: for `apply_chat_template`: `chat_template`, `enable_thinking` and the like.

    Raises:
        ValueError: the template ends a turn with no special token.
    """
    problem = check_template(tokenizer, **kwargs).problem
    if problem is None:
        return None
    try:
        better = chat_template_utils.get_training_chat_template(tokenizer)
    except ValueError:  # TRL knows no patch for it
        better = None
    if better is None or not check_template(tokenizer, **{**kwargs, "chat_template": better}).keeps_turns:
        return f"{problem} TRL has none for this tokenizer."
    names = {value: name for name, value in vars(chat_template_utils).items() if isinstance(value, str)}
    return f"{problem} TRL's is trl.chat_template_utils.{names[better]}."
