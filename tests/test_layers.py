"""Imports go downwards only (docs/architecture.md)."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "acpo_trl"

# part of the package -> parts it may import, and third-party packages it may import
LAYERS = {
    "resolve": (set(), set()),
    "credit": ({"resolve"}, {"torch"}),
    "ratio": (set(), {"torch"}),
    "sandbox": (set(), set()),
    "turns": (set(), {"torch"}),
    "advantages": ({"turns"}, {"torch"}),
    "rollouts": (set(), {"torch"}),
    "envs": ({"resolve", "rewards", "rollouts", "sandbox"}, set()),
    "records": (set(), {"pyarrow"}),
    "report": ({"records"}, set()),
    "critic": (set(), {"torch", "transformers"}),
    "mode": (set(), {"torch", "trl"}),
    "rewards": ({"resolve", "sandbox"}, {"latex2sympy2_extended", "math_verify", "mpmath", "sympy"}),
    "evaluation": (
        {"resolve", "rewards", "sandbox"},
        {"accelerate", "datasets", "huggingface_hub", "numpy", "pyarrow", "torch", "tqdm", "transformers", "trl"},
    ),
    "audit": ({"credit", "evaluation"}, {"torch"}),
    "trainer": (
        {"advantages", "credit", "critic", "mode", "ratio", "records", "resolve", "rewards", "rollouts", "turns"},
        {"accelerate", "pandas", "torch", "transformers", "trl"},
    ),
    "quickstart": ({"envs", "rewards", "rollouts", "trainer"}, None),
    "cli": (
        {
            "audit",
            "credit",
            "envs",
            "evaluation",
            "mode",
            "quickstart",
            "ratio",
            "report",
            "resolve",
            "rewards",
            "rollouts",
            "trainer",
        },
        None,
    ),
}
STANDARD_LIBRARY = set(__import__("sys").stdlib_module_names)


def part_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path):
    """(part of acpo_trl, third-party package) for each import statement of a file, one of them None."""
    package = ("acpo_trl", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            tail = [node.module] if node.module else [alias.name for alias in node.names]
            names = [".".join((*base, name)) for name in tail]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        for name in names:
            root, *rest = name.split(".")
            if root == "acpo_trl":
                yield (rest[0] if rest else None), None
            elif root not in STANDARD_LIBRARY:
                yield None, root


FILES = [p for p in sorted(PACKAGE.rglob("*.py")) if p != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_file_imports_only_lower_layers(path):
    part = part_of(path)
    allowed, third_party = LAYERS[part]
    for own, other in imports_of(path):
        assert own in (None, "__version__", part) or own in allowed, f"{path.name} imports acpo_trl.{own}"
        assert other is None or third_party is None or other in third_party, f"{path.name} imports {other}"


@pytest.mark.parametrize("path", [p for p in FILES if part_of(p) == "trainer"], ids=lambda p: p.name)
def test_trainer_knows_no_concrete_reward(path):
    modules = [node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    assert {module for module in modules if "rewards" in module} <= {"rewards.declare"}


def test_layers_have_no_cycle():
    seen = []
    while len(seen) < len(LAYERS):
        ready = [part for part, (allowed, _) in LAYERS.items() if part not in seen and allowed <= set(seen)]
        assert ready, f"cycle among {set(LAYERS) - set(seen)}"
        seen += ready


def test_the_checker_sees_relative_and_absolute_imports(tmp_path, monkeypatch):
    monkeypatch.setattr("test_layers.PACKAGE", tmp_path)
    (tmp_path / "credit").mkdir()
    file = tmp_path / "credit" / "x.py"
    file.write_text(
        "from ..trainer import config\nimport acpo_trl.cli.main\nfrom . import stats\nimport torch\nimport os\n"
    )
    assert list(imports_of(file)) == [("trainer", None), ("cli", None), ("credit", None), (None, "torch")]
