"""Compare the blame of credit rules with human step labels: `acpo-trl audit --model MODEL --data FILE ...`."""

import argparse
import json
import platform
import random
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any


def run(arguments: list[str], prog: str) -> None:
    """Parse, score, print the table; a mistake ends the program with one line."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__, allow_abbrev=False)
    parser.add_argument("--model", required=True, help="Hub name or folder of a causal language model")
    parser.add_argument(
        "--data",
        required=True,
        nargs="+",
        type=Path,
        metavar="FILE",
        help="of ProcessBench, MR-GSM8K, BIG-Bench-Mistake or AgentProcessBench",
    )
    parser.add_argument("--limit", type=int, default=200, help="failed solutions, drawn at random from all files (200)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (0)")
    parser.add_argument("--batch_size", type=int, default=4, help="solutions in a forward (4)")
    parser.add_argument("--dtype", default="auto", help="of the weights; auto: as they were saved")
    parser.add_argument("--output_dir", type=Path, help="for audit.json and audit.md")
    given = parser.parse_args(arguments)
    try:
        for name in ("limit", "batch_size"):
            if getattr(given, name) < 1:
                raise ValueError(f"{name} {getattr(given, name)}: expected 1 or more.")
        prepared = prepare(given)
    except (ValueError, OSError) as error:
        sys.exit(f"{prog}: error: {error}")
    audit(given, *prepared)


def prepare(given: argparse.Namespace) -> tuple[list[Any], Any, Any]:
    """The solutions, tokenizer and length of the model, before its weights are loaded."""
    from ..audit import load_solutions
    from .generator import choose_model, look_at
    from .model import load_processor

    loaded = [load_solutions(path) for path in given.data]
    solutions = [solution for each in loaded for solution in each.solutions if solution.num_steps > 1]
    left_out = sum(len(each.solutions) for each in loaded) - len(solutions)
    print(
        f"{len(solutions)} failed solutions of two steps or more; {sum(each.num_without_error for each in loaded)} "
        f"without a wrong step, {sum(each.num_right for each in loaded)} with a wrong step and the right answer, and "
        f"{left_out} of one step are left out."
    )
    if not solutions:
        raise ValueError(f"data {[str(path) for path in given.data]}: no failed solution; expected some.")
    if len(solutions) > given.limit:
        solutions = random.Random(given.seed).sample(solutions, given.limit)
    choice = choose_model(given.model, None, dtype=given.dtype)
    known = look_at(choice)
    processor = load_processor(choice.tokenizer, None, False, "model")
    tokenizer = getattr(processor, "tokenizer", processor)
    if not tokenizer.is_fast:
        raise ValueError(f"tokenizer of {given.model!r}: cannot say where its tokens begin; expected a fast one.")
    return solutions, tokenizer, (choice, known.max_length)


def audit(given: argparse.Namespace, solutions: list[Any], tokenizer: Any, model: Any) -> None:
    """Score the solutions and print what was found."""
    import torch
    from accelerate import PartialState
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    from ..audit import markdown_table, score_solutions, summarize, text_table
    from ..audit.blame import verdicts_of
    from .generator import load_model

    choice, max_length = model
    cpu = not torch.accelerator.is_available()
    loaded = load_model(choice, PartialState(cpu=cpu).device)
    started = time.perf_counter()
    scored = list(
        tqdm(
            score_solutions(solutions, loaded, tokenizer, given.batch_size, max_length),
            total=len(solutions),
            desc="audit",
            unit="solution",
        )
    )
    found = [(solution, scores) for solution, scores in scored if not isinstance(scores, str)]
    verdicts = [verdicts_of(scores, solution.first_error) for solution, scores in found]
    left_out = Counter(scores for _, scores in scored if isinstance(scores, str))
    reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or "none"
    if not verdicts:
        sys.exit(f"acpo-trl audit: error: no solution could be judged; left out: {reasons}.")
    rows = summarize(verdicts)
    about = (
        f"{len(verdicts)} failed solutions of {', '.join(path.name for path in given.data)} under "
        f"{Path(given.model).name}, left out: {reasons}; seed {given.seed}, 95 % intervals; "
        f"{time.perf_counter() - started:.0f} s, {platform.machine()}, Python {platform.python_version()}, "
        f"torch {torch.__version__}"
    )
    print(text_table(rows))
    print(about)
    if given.output_dir is not None:
        given.output_dir.mkdir(parents=True, exist_ok=True)
        (given.output_dir / "audit.md").write_text(f"{markdown_table(rows)}\n\n{about}.\n", encoding="utf-8")
        content = {
            "model": given.model,
            "data": [str(path) for path in given.data],
            "seed": given.seed,
            "num_solutions": len(verdicts),
            "left_out": dict(left_out),
            "about": about,
            "rows": [asdict(row) for row in rows],
        }
        (given.output_dir / "audit.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
