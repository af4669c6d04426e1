"""A tiny model on disk, files of problems, and the command line of a run on them."""

import json

import pytest
from scripted import TEMPLATE
from tiny import byte_tokenizer, qwen2


@pytest.fixture(scope="session")
def model_dir(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny_qwen2")
    qwen2().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def chat_dir(tmp_path_factory):
    """A tiny model whose chat template knows tools."""
    folder = tmp_path_factory.mktemp("tiny_chat")
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    qwen2().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def write_rows(tmp_path):
    """Write rows as JSON lines and give the path."""

    def write(*rows, name="rows.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write


@pytest.fixture
def arguments(model_dir, write_rows, tmp_path):
    """Two steps on a CPU, on a file with the columns problem and answer."""
    rows = [{"problem": f"{i}+1=", "answer": str(i + 1)} for i in range(4)]
    options = {
        "model_name_or_path": model_dir,
        "dataset_name": write_rows(*rows),
        "output_dir": str(tmp_path / "run"),
        "per_device_train_batch_size": 4,
        "num_generations": 4,
        "max_completion_length": 4,
        "max_steps": 2,
        "save_steps": 1,
        "logging_steps": 1,
        "report_to": "none",
        "bf16": False,
        "use_cpu": True,
        "disable_tqdm": True,
    }
    return [part for name, value in options.items() for part in (f"--{name}", str(value))]
