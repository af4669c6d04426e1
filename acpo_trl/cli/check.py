"""Check the rewards of a config on its dataset: `acpo-trl rewards check --config FILE.yaml [--key value ...]`."""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..rewards.declare import declaration_of
from .arguments import ACPOScriptArguments
from .parse import configure
from .train import make_parser

if TYPE_CHECKING:
    from .gold import Checked, Said

MAX_ROWS_SHOWN = 10
MAX_CHARACTERS = 70
HEADER = (
    "reward",
    "kind",
    "level",
    "weight",
    "rows",
    "right",
    "wrong",
    "unscored",
    "unread",
    "raised",
    "no gold",
    "seconds",
)


def run(arguments: list[str], prog: str) -> None:
    """Print what the rewards say about the dataset; exits with 1 after a mistake in `arguments` or in a reward."""
    parser = argparse.ArgumentParser(
        prog=prog,
        usage="%(prog)s check --config FILE.yaml [--num_rows N] [--key value ...]",
        description="Let every reward score its own gold answers on the first rows of the training split. Takes the "
        "configs and options of `acpo-trl train`, and loads neither model nor tokenizer.",
        allow_abbrev=False,
    )
    parser.add_argument("action", choices=["check"], help="what to do")
    parser.add_argument("--num_rows", type=int, default=100, metavar="N", help="rows to check (default: %(default)s)")
    found, rest = parser.parse_known_args(arguments or ["--help"])
    try:
        rewards, weights, rows, environment = prepare(rest, found.num_rows)
    except (ValueError, TypeError, OSError) as error:
        sys.exit(f"{prog} check: error: {error}")
    results = [check(reward, rows) for reward in rewards if not why_unchecked(reward)]
    for line in report(rewards, weights, results):
        show(line)
    if environment:
        show(f"\n{environment}: its rewards are not checked: they judge turns, which only a rollout has.")
    if not all(result.is_fine for result in results):
        sys.exit(1)


class Rows(NamedTuple):
    """The first rows of the training split."""

    prepared: list[dict[str, Any]]
    """As TRL takes them."""
    sources: list[dict[str, Any]]
    """With the same columns, but the prompts that the dataset has."""
    is_chat: bool
    """Whether prompts and completions are chat messages."""


def prepare(arguments: list[str], num_rows: int) -> tuple[list[Any], list[float], Rows, str]:
    """The rewards, their weights, the rows to check them on, and what errors call the environment ("": none).

    Raises:
        ValueError, OSError: arguments, rewards or data that cannot be used.
    """
    if num_rows < 1:
        raise ValueError(f"num_rows {num_rows}: nothing to check; expected 1 or more.")
    parser, options = configure(partial(make_parser, prog="acpo-trl train"), arguments)
    from transformers import set_seed
    from trl import DatasetMixtureConfig

    from . import data
    from .environment import load_environment
    from .rewards import check_arguments, effective_weights, load_rewards

    # The training options stay unread: whether they fit this machine is not the question.
    given = vars(parser.parse_args(options))
    script_args, mixture = (
        kind(**{option.name: given[option.name] for option in fields(kind) if option.init})
        for kind in (ACPOScriptArguments, DatasetMixtureConfig)
    )
    environment = load_environment(script_args.environment, script_args.rollout)
    rewards, weights = load_rewards(
        script_args.reward_funcs, script_args.reward_model_name_or_path, given["reward_weights"], environment
    )
    set_seed(given["seed"])  # as in training, for the same rows
    script_args = replace(script_args, max_train_samples=min(num_rows, script_args.max_train_samples or num_rows))
    (split,) = data.load_splits(script_args, mixture, evaluate=False)
    is_chat = script_args.prompt_format != "text"
    prepared = list(data.prepare(split, script_args, has_chat_template=is_chat))
    sources = [{**row, "prompt": raw.get("prompt", row["prompt"])} for row, raw in zip(prepared, split, strict=True)]
    check_arguments(rewards, list(prepared[0]), environment)
    weights = weights or effective_weights(rewards, [None] * len(rewards))
    return rewards, weights[: len(rewards)], Rows(prepared, sources, is_chat), environment.label


def why_unchecked(reward: Any) -> str:
    """Why a reward cannot be asked about single completions, "" if it can."""
    if isinstance(reward, str):
        return "a reward model, which is not loaded here"
    if declaration_of(reward).level == "turn":
        return "it scores turns, which only a rollout has"
    return ""


def check(reward: Any, rows: Rows) -> "Checked":
    """What a reward says about the rows, with a progress bar where stderr is a terminal."""
    from tqdm import tqdm  # type: ignore[import-untyped]
    from trl.trainer.utils import get_callable_name

    from .gold import check_reward

    total = len(rows.prepared) * (2 if hasattr(reward, "gold") else 1)
    with tqdm(total=total, desc=get_callable_name(reward), unit="row", disable=None) as bar:
        return check_reward(reward, *rows, bar.update)


def report(rewards: Sequence[Any], weights: Sequence[float], results: Sequence["Checked"]) -> Iterator[str]:
    """Lines: a table of the rewards, then for each of them what was not right."""
    checked = [weight for reward, weight in zip(rewards, weights, strict=True) if not why_unchecked(reward)]
    yield from align([HEADER, *map(line_of, results, checked)])
    for reward in rewards:
        if why := why_unchecked(reward):
            yield f"\n{getattr(reward, '__name__', reward)}: not checked: {why}."
    for result in results:
        yield from (gold_details if result.has_gold else score_details)(result)


def show(line: str) -> None:
    """Print a line; what the output cannot encode, such as lone surrogates of a completion, is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "backslashreplace").decode(encoding))


def line_of(result: "Checked", weight: float) -> tuple[str, ...]:
    """The reward's line in the table; without gold answers of its own nothing is right, wrong or missing."""
    label, count = result.declaration, "{}".format if result.has_gold else lambda number: "-"
    return (
        *(result.name, label.kind, label.level, f"{weight:g}", str(len(result.said))),
        *(count(len(result.right)), count(len(result.wrong)), str(len(result.unscored)), count(len(result.unread))),
        *(str(len(result.raised)), count(len(result.no_gold)), f"{result.seconds:.1f}"),
    )


def align(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table: words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = [cell.ljust(width) for cell, width in zip(line[:3], widths, strict=False)]
        cells += [cell.rjust(width) for cell, width in zip(line[3:], widths[3:], strict=True)]
        yield "  ".join(cells)


def gold_details(result: "Checked") -> Iterator[str]:
    """Which gold answers a reward did not find right, the gravest first, and which mean nothing to it."""
    if len(result.no_gold) == len(result.said):
        yield f"\n{result.name}: warning: no row tells a right completion, so nothing was checked."
    pairs = list(zip(result.said, result.swapped, strict=True))
    errors = [other if other.is_error else own for own, other in pairs]
    blank = [replace(own, score=None, reason=other.reason) for own, other in pairs]
    for indices, said, what in (
        (result.raised, errors, "raised an exception"),
        (result.wrong, result.said, "do not give their own gold answer the best score"),
        (result.unscored, result.said, "do not score their own gold answer and teach nothing in training"),
        (result.unread, blank, "score no answer but a copy of the gold one and teach nothing in training"),
        (result.fooled, result.swapped, "give the gold answer of the next row the best score too"),
    ):
        yield from row_details(result, indices, said, what)


def score_details(result: "Checked") -> Iterator[str]:
    """Which scores a reward without gold answers of its own gave."""
    scores = [said.score for said in result.said if said.score is not None]
    found = "none"
    if scores:
        found = f"min {min(scores):g}, mean {statistics.fmean(scores):g}, max {max(scores):g}"
    yield f"\n{result.name}: tells no right completions; its scores for the dataset's bare answers: {found}."
    yield from row_details(result, result.raised, result.said, "raised an exception")


def row_details(result: "Checked", indices: Sequence[int], said: Sequence["Said"], what: str) -> Iterator[str]:
    """The first of some rows, with completion, score and reason."""
    if indices:
        yield f"\n{result.name}: {len(indices)} of {len(said)} rows {what}:"
    for index in indices[:MAX_ROWS_SHOWN]:
        one = said[index]
        score = "raised" if one.is_error else "unscored" if one.score is None else f"{one.score:g}"
        reason = f": {shorten(one.reason)}" if one.reason else ""
        yield f"  row {index}: {score}: {shorten(one.text or '')!r}{reason}"
    if len(indices) > MAX_ROWS_SHOWN:
        yield f"  and {len(indices) - MAX_ROWS_SHOWN} more"


def shorten(text: str) -> str:
    """`text` on one line, cut to its beginning."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_CHARACTERS else f"{line[: MAX_CHARACTERS - 3]}..."
