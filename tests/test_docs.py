"""The documentation runs: Python blocks, YAML keys, files named in shell blocks, links between pages."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import datasets
import pytest
import yaml
from datasets import Dataset
from tiny import byte_tokenizer, qwen2
from trl import DatasetMixtureConfig, ModelConfig

import acpo_trl
from acpo_trl import ACPOConfig
from acpo_trl.cli.arguments import ACPOScriptArguments

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language):
    """(page, first line number, text) of each fenced block of a language."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            found.append((page, text[: match.start()].count("\n") + 1, match.group(1)))
    return found


def name_of(value):
    return f"{value[0].relative_to(ROOT)}:{value[1]}"


@pytest.fixture(scope="session")
def hub(tmp_path_factory):
    """A folder that stands in for models and datasets of the hub."""
    folder = tmp_path_factory.mktemp("hub")
    qwen2().save_pretrained(folder / "model")
    byte_tokenizer().save_pretrained(folder / "model")
    rows = [{"prompt": f"What is {i} + {i}?", "solution": str(2 * i), "question": f"{i}+{i}="} for i in range(64)]
    Dataset.from_list(rows).to_json(folder / "data.jsonl")
    return folder


class ShortConfig(ACPOConfig):
    """What a page prints, cut down to one small step on a CPU."""

    def __init__(self, *args, **kwargs):
        small = {
            "use_cpu": True,
            "bf16": False,
            "report_to": "none",
            "max_steps": 1,
            "max_completion_length": 4,
            "per_device_train_batch_size": 4,
            "num_generations": 2,
            "gradient_accumulation_steps": 1,
            "save_strategy": "no",
            "use_vllm": False,
        }
        super().__init__(*args, **{**kwargs, **small})


@pytest.mark.parametrize("block", blocks("python"), ids=name_of)
def test_python_block_runs(block, hub, tmp_path, monkeypatch):
    page, _, text = block
    for other_page, _, other in blocks("python"):  # a block that begins with a file name is that file
        if other_page == page and (match := re.match(r"# ([\w/]+\.py)\n", other)):
            target = tmp_path / match.group(1)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(other)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(acpo_trl, "ACPOConfig", ShortConfig, raising=False)
    rows = Dataset.from_json(str(hub / "data.jsonl"))
    monkeypatch.setattr(datasets, "load_dataset", lambda *args, **kwargs: rows)
    exec(compile(re.sub(r'"Qwen/[\w.-]+"', repr(str(hub / "model")), text), name_of(block), "exec"), {})


OPTIONS = {f.name for cls in (ACPOConfig, ModelConfig, DatasetMixtureConfig, ACPOScriptArguments) for f in fields(cls)}


@pytest.mark.parametrize("block", blocks("yaml"), ids=name_of)
def test_yaml_block_has_known_options_only(block):
    assert set(yaml.safe_load(block[2])) - {"env"} <= OPTIONS


@pytest.mark.parametrize("block", blocks("bash"), ids=name_of)
def test_files_named_in_a_shell_block_exist(block):
    for line in block[2].replace("\\\n", " ").splitlines():
        for word in shlex.split(line, comments=True):
            if re.match(r"(scripts|configs|tests|docs)/", word):
                assert (ROOT / word).exists(), word


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_to_files_and_sections_resolve(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, target


def test_the_checks_have_something_to_check():
    assert len(blocks("python")) >= 2
    assert len(PAGES) >= 8
