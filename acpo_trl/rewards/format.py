"""Does the completion keep to the answer format?"""

from collections.abc import Sequence

from .declare import reward
from .extract import Completion, after_thinking, boxes, last_assistant_text, thinking_tags


@reward(kind="format")
def format_reward(completions: Sequence[Completion], **columns: object) -> list[float | None]:
    r"""Give 1.0 for each completion whose last assistant message keeps to the answer format, else 0.0.

    The format: behind the thinking there is exactly one `\boxed{...}`, and it is not empty; thinking tags, if there are
    any, open one block and close it.
    """
    return [float(is_well_formed(last_assistant_text(completion))) for completion in completions]


def is_well_formed(text: str) -> bool:
    opening, closing = thinking_tags(text)
    answer = after_thinking(text)
    if answer is None or opening > 1 or closing > 1:
        return False
    found = boxes(answer)
    return len(found) == 1 and bool(found[0])
