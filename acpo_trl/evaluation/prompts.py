"""What a model reads: messages through its chat template, or text that it continues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .benchmarks import Benchmark, Problem, fill

THINKING_TAGS = ("<think>", "<thinking>", "<thought>", "<reasoning>")


class Prompt(NamedTuple):
    """A problem as the model reads it."""

    problem_id: str
    text: str
    ids: tuple[int, ...]
    is_thinking: bool
    """The prompt has opened a thinking block, so that the response begins inside."""


@dataclass(frozen=True)
class PromptStyle:
    """How problems are put to a model."""

    is_chat: bool | None = None
    """None: as chat messages where the tokenizer has a chat template."""
    system_prompt: str | None = None
    """Only for chat messages."""
    num_examples: int = 0
    """How many worked examples stand before the problem."""
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """What the chat template is given, such as `enable_thinking`."""


def uses_chat(tokenizer: Any, style: PromptStyle) -> bool:
    """Whether problems become chat messages.

    Raises:
        ValueError: they should and the tokenizer has no chat template, or they should not and the style has what only
            chat messages can have.
    """
    has_template = bool(getattr(tokenizer, "chat_template", None))
    is_chat = has_template if style.is_chat is None else style.is_chat
    if is_chat and not has_template:
        raise ValueError(
            "prompt format 'chat': the tokenizer has no chat template; expected one that has; ask for text, or take "
            "the tokenizer of a chat model."
        )
    for what, value in (("system_prompt", style.system_prompt), ("chat template arguments", style.template_kwargs)):
        if value and not is_chat:
            raise ValueError(f"{what} {value!r}: text has no place for it; expected chat prompts; leave it out.")
    return is_chat


def make_prompts(benchmark: Benchmark, problems: Sequence[Problem], tokenizer: Any, style: PromptStyle) -> list[Prompt]:
    """The prompt of each problem.

    Raises:
        ValueError: as in `uses_chat`; more examples than the benchmark has; a template that cannot be filled.
    """
    is_chat = uses_chat(tokenizer, style)
    if not 0 <= style.num_examples <= len(benchmark.few_shot):
        raise ValueError(
            f"number of examples {style.num_examples!r}: benchmark {benchmark.name!r} has {len(benchmark.few_shot)}; "
            "expected no more, and not less than 0."
        )
    return [_prompt(benchmark, problem, tokenizer, style, is_chat) for problem in problems]


def messages_of(benchmark: Benchmark, problem: Problem, style: PromptStyle) -> list[dict[str, str]]:
    """The problem as chat messages, each example as a turn of its own."""
    messages = [{"role": "system", "content": style.system_prompt}] if style.system_prompt else []
    for example in benchmark.few_shot[: style.num_examples]:
        messages.append({"role": "user", "content": fill(benchmark.template, example, benchmark.name)})
        messages.append({"role": "assistant", "content": example["response"]})
    return [*messages, {"role": "user", "content": fill(benchmark.template, _columns(problem), benchmark.name)}]


def text_of(benchmark: Benchmark, problem: Problem, style: PromptStyle) -> str:
    """The problem as text to be continued, behind the examples."""
    template = benchmark.template if benchmark.text_template is None else benchmark.text_template
    parts = [
        f"{fill(template, example, benchmark.name)} {example['response']}"
        for example in benchmark.few_shot[: style.num_examples]
    ]
    return "\n\n".join([*parts, fill(template, _columns(problem), benchmark.name)])


def _columns(problem: Problem) -> dict[str, Any]:
    return {**problem.row, "problem": problem.prompt}


def _prompt(benchmark: Benchmark, problem: Problem, tokenizer: Any, style: PromptStyle, is_chat: bool) -> Prompt:
    if is_chat:
        text = tokenizer.apply_chat_template(
            messages_of(benchmark, problem, style), tokenize=False, add_generation_prompt=True, **style.template_kwargs
        )
    else:
        text = text_of(benchmark, problem, style)
    # A chat template writes the special tokens itself.
    ids = tokenizer(text, add_special_tokens=not is_chat)["input_ids"]
    return Prompt(problem.id, text, tuple(ids), text.rstrip().endswith(THINKING_TAGS))
