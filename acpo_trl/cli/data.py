"""Datasets as TRL takes them: a column `prompt`, the gold answer in `solution`, every other column kept."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from datasets import Dataset, IterableDataset, load_dataset
from datasets.exceptions import DatasetGenerationError
from transformers import set_seed
from trl import DatasetMixtureConfig, get_dataset

from ..trainer import ACPOConfig

if TYPE_CHECKING:
    from .arguments import ACPOScriptArguments

Rows: TypeAlias = "Dataset | IterableDataset"

BUILDERS = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}
PROMPT_COLUMNS = ("prompt", "problem", "question")
ANSWER_COLUMNS = ("solution", "answer")


def load_prompts(
    script_args: "ACPOScriptArguments",
    mixture: DatasetMixtureConfig,
    training_args: ACPOConfig,
    has_chat_template: bool,
) -> list[Rows]:
    """The training split and, if the run evaluates, the evaluation split, as TRL takes them."""
    set_seed(training_args.seed)  # `test_split_size` draws from numpy's global state: same split on every process
    with training_args.main_process_first(desc="preparing the dataset"):
        splits = load_splits(script_args, mixture, evaluate=training_args.eval_strategy != "no")
        return [prepare(rows, script_args, has_chat_template) for rows in splits]


def load_splits(script_args: "ACPOScriptArguments", mixture: DatasetMixtureConfig, evaluate: bool) -> list[Rows]:
    """The training split and, if asked for, the evaluation split, with their own columns.

    Raises:
        ValueError: no source or two, a missing file, an unknown split, a split without rows.
    """
    if bool(script_args.dataset_name) == bool(mixture.datasets):
        given = "both are set" if mixture.datasets else "neither is set"
        raise ValueError(
            f"dataset_name and datasets: {given}; expected one source of prompts; set dataset_name to a Hub name, a "
            "file or a folder, or datasets to a list of them."
        )
    splits = [script_args.dataset_train_split] + [script_args.dataset_test_split] * evaluate
    mixed = get_dataset(mixture) if mixture.datasets else None
    rows = [load_split(script_args, split) if mixed is None else pick(mixed, split) for split in splits]
    for dataset, split in zip(rows, splits, strict=True):
        if next(iter(dataset), None) is None:
            raise ValueError(f"split {split!r} of the dataset is empty: there is nothing to train on; give it rows.")
    if limit := script_args.max_train_samples:
        rows[0] = rows[0].take(limit if isinstance(rows[0], IterableDataset) else min(limit, len(rows[0])))
    return rows


def load_split(script_args: "ACPOScriptArguments", split: str) -> Rows:
    """One split of `dataset_name`: a file, a folder or a Hub name."""
    name = str(script_args.dataset_name)
    path = Path(name).expanduser()
    builder = BUILDERS.get(Path(name.removesuffix(".gz")).suffix)
    if not path.exists() and (builder or name.startswith(("/", ".", "~"))):
        raise ValueError(f"dataset_name {name!r}: no such file or folder in {Path.cwd()}; correct the path.")
    source: dict[str, Any] = {"path": builder, "data_files": str(path)} if builder else {"path": name}
    if path.is_dir():
        check_folder(path, name)
        source = {"path": str(path)}
    try:
        rows = load_dataset(
            **source, name=script_args.dataset_config, split=split, streaming=script_args.dataset_streaming
        )
        next(iter(rows), None)  # a stream is opened only now
        return rows
    except StopIteration:  # what `datasets` lets through for a file without rows
        raise ValueError(f"dataset_name {name!r} is empty: there is nothing to train on; give it rows.") from None
    except (ValueError, DatasetGenerationError) as error:
        reason = " ".join(str(error.__cause__ or error).split())  # `datasets` spreads it over many lines
        raise ValueError(
            f"dataset_name {name!r}, split {split!r}: {reason}; correct its files, which need the same columns in each "
            "row, or set dataset_name, dataset_config, dataset_train_split or dataset_test_split (a single file is the "
            "split 'train')."
        ) from error


def check_folder(path: Path, name: str) -> None:
    """Raise ValueError for a folder that `load_dataset` cannot read."""
    if (path / "state.json").exists() or (path / "dataset_dict.json").exists():
        raise ValueError(
            f"dataset_name {name!r}: was written by `save_to_disk`, whose files only `load_from_disk` reads; expected "
            f"files among {list(BUILDERS)}; write it with `to_parquet` or `to_json`."
        )
    if not any(file.is_file() for file in path.rglob("*")):
        raise ValueError(
            f"dataset_name {name!r}: is an empty folder; expected files among {list(BUILDERS)}; correct the path."
        )


def pick(mixed: dict[str, Rows], split: str) -> Rows:
    """The split of a mixture; it has 'train', and 'test' when `test_split_size` is set."""
    if split not in mixed:
        raise ValueError(
            f"split {split!r}: not in the mixture; expected one of {list(mixed)}; set test_split_size to get 'test'."
        )
    return mixed[split]


def prepare(rows: Rows, script_args: "ACPOScriptArguments", has_chat_template: bool) -> Rows:
    """`rows` with prompts in the column `prompt` (messages or text) and gold answers in `solution`.

    A column `solution` that is not the answer column is kept as `original_solution`.

    Raises:
        ValueError: a column that is not there, or prompts that do not fit `prompt_format`.
    """
    first = next(iter(rows))
    columns = list(first)
    prompt = choose_column(columns, script_args.prompt_column, PROMPT_COLUMNS, "prompt_column")
    if prompt is None:
        raise ValueError(
            f"prompt_column None: the dataset has none of the columns {list(PROMPT_COLUMNS)}; its columns are "
            f"{columns}; set prompt_column to the one with the prompts."
        )
    answer = choose_column(columns, script_args.answer_column, ANSWER_COLUMNS, "answer_column")
    is_chat = choose_format(script_args, has_chat_template, is_conversation=is_messages(first[prompt]))
    options = {"column": prompt, "template": script_args.prompt_template}
    if is_chat:
        rows = rows.map(chat_prompt, fn_kwargs={**options, "system_prompt": script_args.system_prompt})
    else:
        rows = rows.map(text_prompt, fn_kwargs=options)
    if answer in (None, "solution"):
        return rows
    if "solution" in columns:
        rows = rows.rename_column("solution", "original_solution")
    return rows.rename_column(answer, "solution")


def choose_column(columns: list[str], wanted: str | None, usual: tuple[str, ...], option: str) -> str | None:
    """The wanted column, or the first usual one that is there, or None."""
    if wanted is not None and wanted not in columns:
        raise ValueError(
            f"{option} {wanted!r}: no such column; expected one of {columns}; set {option} to one of them."
        )
    return wanted or next((name for name in usual if name in columns), None)


def choose_format(script_args: "ACPOScriptArguments", has_chat_template: bool, is_conversation: bool) -> bool:
    """Whether prompts become chat messages; refuses what the tokenizer or the data cannot do."""
    is_chat = script_args.prompt_format == "chat" if script_args.prompt_format else has_chat_template or is_conversation
    if is_chat and not has_chat_template:
        raise ValueError(
            "prompt_format 'chat': the tokenizer has no chat template; expected one that has; set prompt_format: text "
            "and a prompt column of plain text, or use a chat model's tokenizer."
        )
    if is_conversation and (not is_chat or script_args.prompt_template):
        raise ValueError(
            "prompt column: holds chat messages, but prompt_format 'text' and prompt_template need plain text; drop "
            "these options or set prompt_column to a text column."
        )
    if script_args.system_prompt and not is_chat:
        raise ValueError(
            "system_prompt: plain-text prompts have no system message; put the words into prompt_template, or set "
            "prompt_format: chat."
        )
    return is_chat


def is_messages(prompt: Any) -> bool:
    """Whether a prompt is a list of chat messages."""
    return isinstance(prompt, list) and all(isinstance(message, dict) and "role" in message for message in prompt)


def chat_prompt(row: dict[str, Any], column: str, template: str | None, system_prompt: str | None) -> dict[str, Any]:
    """The row's prompt as chat messages; a conversation keeps its own system message."""
    prompt = row[column]
    messages = prompt if is_messages(prompt) else [{"role": "user", "content": fill(template, prompt, column)}]
    if system_prompt and all(message["role"] != "system" for message in messages):
        messages = [{"role": "system", "content": system_prompt}, *messages]
    return {"prompt": messages}


def text_prompt(row: dict[str, Any], column: str, template: str | None) -> dict[str, Any]:
    """The row's prompt as plain text."""
    return {"prompt": fill(template, row[column], column)}


def fill(template: str | None, prompt: Any, column: str) -> str:
    """`prompt` in the place of `{prompt}` in the template."""
    if not isinstance(prompt, str):
        raise ValueError(
            f"prompt column {column!r} has the value {prompt!r}; expected text or a list of chat messages; remove or "
            "correct such rows."
        )
    return template.format(prompt=prompt) if template else prompt
