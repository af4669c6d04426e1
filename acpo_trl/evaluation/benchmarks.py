"""What a benchmark is: where its problems are, how they are put to a model, and which check judges the responses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from ..resolve import resolve
from .examples import GSM8K_EXAMPLES, MATH_EXAMPLES


class Problem(NamedTuple):
    """One problem of a benchmark."""

    id: str
    """Unique in the benchmark."""
    prompt: str
    """The bare problem."""
    row: Mapping[str, Any]
    """All columns, and what the check asks for: `answer`, or `tests`, `entry_point` and `starter_code`."""
    group: str | None = None
    """Subject or level, where known."""


@dataclass(frozen=True)
class Source:
    """Where problems come from: a file, or a dataset of the Hub."""

    path: str
    """Name on the Hub, or a file."""
    config: str | None = None
    split: str = "test"
    revision: str | None = None
    """Commit of the Hub dataset; None takes the newest, and the loader tells which that was."""


USUAL_COLUMNS = {
    "problem": ("problem", "question", "prompt", "text"),
    "answer": ("answer", "final_answer", "solution"),
    "tests": ("tests", "test", "test_code", "test_list"),
    "entry_point": ("entry_point",),
    "reference": (),  # a solution, which tells what the tests call where no column does
    "id": ("id", "task_id", "unique_id", "problem_idx"),
    "group": ("subject", "subfield", "level", "difficulty"),
}
"""The columns that a benchmark uses, and the names under which they are looked for."""

MATH_TEMPLATE = "{problem}\nReason step by step and put the final answer in \\boxed{{}}."
MATH_TEXT_TEMPLATE = f"Question: {MATH_TEMPLATE}\nAnswer:"
MATH_STOP = ("\nQuestion:",)


@dataclass(frozen=True)
class Benchmark:
    """A benchmark without its problems.

    Templates are texts with the names of columns in braces, and `{problem}` for the problem; `{{` and `}}` are braces,
    and a list of texts is put one a line.

    Raises:
        ValueError: a column with an unknown role.
        TypeError: `stop` is a text and not a list.
    """

    name: str
    check: str = "math"
    """`math`, `code`, or the dotted path of a function that is called like those in `checks.py`."""
    source: Source | None = None
    columns: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """Names of columns for keys of USUAL_COLUMNS, where the usual names will not do; several make up `tests`."""
    template: str = MATH_TEMPLATE
    """The message to a chat model."""
    text_template: str | None = MATH_TEXT_TEMPLATE
    """What a base model continues; None takes `template`."""
    stop: Sequence[str] = MATH_STOP
    """What ends the response of a base model."""
    few_shot: Sequence[Mapping[str, str]] = ()
    """Examples that can be shown: what the templates name, and `response`."""
    starter: str = ""
    """Template of the code that stands before each program."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the check: those of `MathReward` or `CodeReward`."""

    def __post_init__(self) -> None:
        if unknown := set(self.columns) - set(USUAL_COLUMNS):
            raise ValueError(
                f"benchmark {self.name!r}, columns {sorted(unknown)}: have no use; expected some of "
                f"{list(USUAL_COLUMNS)}; correct the keys."
            )
        if isinstance(self.stop, str):
            raise TypeError(f"benchmark {self.name!r}, stop {self.stop!r}: is a text; expected a list of texts.")


def fill(template: str, columns: Mapping[str, Any], benchmark: str) -> str:
    """The template with columns in the place of their names.

    Raises:
        ValueError: it names something that is no column, or its braces do not match.
    """
    try:
        return template.format_map({name: _text(value) for name, value in columns.items()})
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise ValueError(
            f"benchmark {benchmark!r}, template {template!r}: cannot be filled ({error!r}); expected names among "
            f"{sorted(columns)} in braces; write braces of the text itself as {{{{ and }}}}."
        ) from error


def _text(value: Any) -> Any:
    return "\n".join(map(str, value)) if isinstance(value, list | tuple) else value


def benchmark_of(entry: str | Mapping[str, Any]) -> Benchmark:
    """The benchmark of a name, of a dotted path, or of the fields of a `Benchmark` as YAML gives them.

    Fields with the name of a built-in benchmark change that one; `source` may be the name of a file.

    Raises:
        ValueError: no such benchmark, or no such field.
        TypeError: neither a name nor fields, or the dotted path leads to something else.
    """
    if isinstance(entry, str):
        found = resolve(entry, BENCHMARKS, "benchmark")
        if not isinstance(found, Benchmark):
            raise TypeError(f"benchmark {entry!r}: is a {type(found).__name__}; expected a Benchmark.")
        return found
    if not isinstance(entry, Mapping):
        raise TypeError(f"benchmark {entry!r}: is a {type(entry).__name__}; expected a name or fields of a Benchmark.")
    known = [each.name for each in fields(Benchmark)]
    if "name" not in entry or set(entry) - set(known):
        raise ValueError(f"benchmark {dict(entry)!r}: expected `name` and some of {known[1:]}; correct the keys.")
    given = dict(entry)
    if "source" in given:
        given["source"] = _source(given["source"])
    builtin = BENCHMARKS.get(given["name"])
    return replace(builtin, **given) if builtin else Benchmark(**given)


def _source(value: Any) -> Source | None:
    if value is None or isinstance(value, Source):
        return value
    given = {"path": value} if isinstance(value, str) else value
    known = [each.name for each in fields(Source)]
    if not isinstance(given, Mapping) or "path" not in given or set(given) - set(known):
        raise ValueError(f"source {value!r}: expected the name of a file, or `path` and some of {known[1:]}.")
    return Source(**given)


TYPING = "from typing import *\n"  # HumanEval Pro and MBPP Pro are run behind it by their authors
OPEN_FENCE = "\n\n```python\n"
HUMANEVAL_TEMPLATE = (
    "Complete the function below. Give the whole function and the imports it needs in one ```python block.\n\n"
    "```python\n{problem}\n```"
)
PRO_TEMPLATE = (
    "Solve both problems below; the second solution has to call the first. Give both functions and the imports they "
    "need in one ```python block.\n\n```python\n{raw_problem}\n{new_problem}\n```"
)
MBPP_TEMPLATE = (
    "{problem}\nThe solution has to pass these tests:\n```python\n{test_list}\n```\n"
    "Give it and the imports it needs in one ```python block."
)
STDIN_TEMPLATE = (
    "{problem}\n\nWrite a Python program that reads standard input and prints to standard output. Give it in one "
    "```python block."
)


def _math(name: str, source: Source, **more: Any) -> Benchmark:
    return Benchmark(name, "math", source, **{"few_shot": MATH_EXAMPLES, **more})


def _code(name: str, source: Source | None, template: str, **more: Any) -> Benchmark:
    fenced = {"text_template": template + OPEN_FENCE, "stop": ("\n```",)}
    return Benchmark(name, "code", source, template=template, **{**fenced, **more})


_BENCHMARKS = (
    _math("aime24", Source("HuggingFaceH4/aime_2024", None, "train", "2fe88a2f1091d5048c0f36abc874fb997b3dd99a")),
    _math("aime25", Source("math-ai/aime25", revision="563bb8404243c5f09de6ec262f2db674fe5bce9b")),
    _math("amc23", Source("math-ai/amc23", revision="80815d37005feb82cd7f8fbc6901d5d3eff43057")),
    _math("math500", Source("HuggingFaceH4/MATH-500", revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be")),
    _math(
        "gsm8k",
        Source("openai/gsm8k", "main", revision="740312add88f781978c0658806c59bc2815b9866"),
        few_shot=GSM8K_EXAMPLES,
    ),
    _math(
        "minerva",
        Source("math-ai/minervamath", revision="ee46ddc498933b1977577953250ca5c66be64f96"),
        options={"decimal_tolerance": 0.01},  # its gold answers are results rounded to two or three digits
    ),
    _math(
        "olympiadbench",
        Source("math-ai/olympiadbench", revision="4faaf1e6ec17d11a4218a9bf4c049ecaf954dd84"),
        columns={"answer": "final_answer"},
    ),
    _math("hmmt", Source("MathArena/hmmt_feb_2025", None, "train", "6fdc4277120810ff75aa22d2d5489b91f7a262a1")),
    _code(
        "humaneval",
        Source("openai/openai_humaneval", revision="7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544"),
        HUMANEVAL_TEMPLATE,
        text_template="{problem}",
        stop=("\nclass", "\ndef", "\n#", "\nif", "\nprint"),  # what follows the body; arXiv:2107.03374, section 2.1
        starter="{prompt}",
    ),
    _code(
        "humaneval_pro",
        Source("CodeEval-Pro/humaneval-pro", None, "train", "cd078f93d57d1902b5c3e4ae330166b2ca0e0e80"),
        PRO_TEMPLATE,
        columns={"problem": "new_problem"},
        starter=TYPING,
    ),
    _code(
        "mbpp",
        Source("google-research-datasets/mbpp", "full", "test", "4bb6404fdc6cacfda99d4ac4205087b89d32030c"),
        MBPP_TEMPLATE,
        columns={"tests": ("test_setup_code", "test_list"), "reference": "code"},
    ),
    _code(
        "mbpp_pro",
        Source("CodeEval-Pro/mbpp-pro", None, "train", "50f18448e09a8383226e1a5cd3654d2a454fe333"),
        PRO_TEMPLATE,
        columns={"problem": "new_problem"},
        starter=TYPING,
    ),
    _code("stdin_stdout", None, STDIN_TEMPLATE),
)
BENCHMARKS = {benchmark.name: benchmark for benchmark in _BENCHMARKS}
"""The built-in benchmarks by name."""
