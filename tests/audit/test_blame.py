"""Blame of steps, and how well it finds the first wrong one."""

import math
import random

import pytest
import torch
from tiny import byte_tokenizer, qwen2

from acpo_trl.audit import SIGNALS, Solution, judge_solution, markdown_table, score_solutions, summarize, text_table
from acpo_trl.audit.blame import pooled, verdicts_of
from acpo_trl.audit.score import EMPTY_STEP, TOO_LONG, TokenScores, encode
from acpo_trl.audit.solutions import Segment


def solution(*texts, problem="1+1=?", first_error=0, shown=None):
    segments = [Segment(text, step) for step, text in enumerate(texts)]
    if shown is not None:
        segments.insert(1, Segment(shown, None))
    return Solution("s", problem, tuple(segments), first_error)


def plain_tokenizer():
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = None
    return tokenizer


# Numbers


@pytest.mark.parametrize(
    ("blame", "first_error", "expected"),
    [
        ([0.1, 0.9, 0.3], 1, (1.0, 1.0, 1.0, 1.0)),
        ([0.1, 0.9, 0.3], 0, (0.0, 0.0, None, 3.0)),
        ([0.1, 0.9, 0.3], 2, (0.0, 0.5, 0.5, 2.0)),
        ([0.5, 0.5, 0.1], 0, (0.5, 0.75, None, 1.5)),
        ([0.0, 0.0, 0.0, 0.0], 2, (0.25, 0.5, 0.5, 2.5)),
        ([2.0, 1.0], 1, (0.0, 0.0, 0.0, 2.0)),
    ],
)
def test_verdicts_by_hand(blame, first_error, expected):
    assert judge_solution(blame, first_error) == expected


def test_area_and_rank_say_the_same():
    chance = random.Random(0)
    for _ in range(300):
        blame = [chance.choice([0.0, 0.5, chance.random()]) for _ in range(chance.randint(2, 9))]
        verdict = judge_solution(blame, chance.randrange(len(blame)))
        assert verdict.auc == pytest.approx(1 - (verdict.rank - 1) / (len(blame) - 1))


def test_random_blame_is_what_chance_expects_on_average():
    chance = random.Random(0)
    found = [judge_solution([chance.random() for _ in range(4)], 2) for _ in range(4000)]
    assert sum(v.top1 for v in found) / 4000 == pytest.approx(0.25, abs=0.025)
    assert sum(v.auc for v in found) / 4000 == pytest.approx(0.5, abs=0.025)


def test_a_single_step_is_refused():
    with pytest.raises(ValueError, match="blame of 1 steps: there is nothing to find"):
        judge_solution([1.0], 0)


def test_blame_is_pooled_step_by_step():
    blame, steps = torch.tensor([1.0, 2.0, 6.0, 4.0]), torch.tensor([0, 0, 0, 1])
    assert pooled(blame, steps, 2, "mean") == [3.0, 4.0]
    assert pooled(blame, steps, 2, "sum") == [9.0, 4.0]


def test_signals_are_those_of_their_formulas():
    mode, own = [0.8, 0.6], [0.8, 0.1]
    scores = TokenScores(
        torch.tensor([0, 1]),
        torch.tensor(own).log(),
        torch.tensor(mode).log(),
        torch.tensor([True, False]),
        torch.tensor([0.5, 0.0]),
    )
    expected = {
        "uniform": [1.0, 1.0],
        "acpo": [2 * 0.8, 3 * 0.6],  # (1 + F)(1 - delta) on the mode, 3 (1 - delta) off it
        "acpo_as_written": [0.8, 3 * 0.6],
        "gtpo (1 / entropy)": [2.0, 1000.0],
        "delta": [0.2, 0.4],
        "entropy": [0.5, 0.0],
        "surprisal": [-math.log(0.8), -math.log(0.1)],
    }
    assert {name: signal(scores).tolist() for name, signal in SIGNALS.items()} == {
        name: pytest.approx(values, rel=1e-5) for name, values in expected.items()
    }


def test_baselines_know_nothing_of_the_model():
    scores = TokenScores(
        torch.tensor([0, 1, 1, 2]), *[torch.zeros(4)] * 2, torch.ones(4, dtype=torch.bool), torch.ones(4)
    )
    found = verdicts_of(scores, 1)
    assert found["long steps", "tokens"].top1 == 1.0
    assert found["early steps", "position"].rank == found["late steps", "position"].rank == 2.0
    assert found["nothing", "random"] == (1 / 3, 0.5, 0.5, 2.0)
    assert found["uniform", "sum"] == found["long steps", "tokens"]
    assert found["uniform", "mean"] == found["nothing", "random"]


# Scores


def naive(model, tokenizer, one):
    """Log-probability, largest log-probability and entropy of each token of the steps, one prefix at a time."""
    code = encode(one, tokenizer)
    found = []
    for place in range(1, len(code.ids)):
        if code.steps[place] >= 0:
            with torch.no_grad():
                logits = model(code.ids[:place].unsqueeze(0)).logits[0, -1].double()
            p = logits.softmax(-1)
            entropy = -sum(x * math.log(x) for x in p.tolist() if x > 0)
            found.append((int(code.steps[place]), math.log(p[code.ids[place]]), math.log(p.max()), entropy))
    return found


@pytest.mark.parametrize("make_tokenizer", [byte_tokenizer, plain_tokenizer])
def test_scores_are_those_of_one_prefix_after_the_other_whatever_the_batch(make_tokenizer):
    model, tokenizer = qwen2(seed=2).eval(), make_tokenizer()
    ones = [
        solution("ab", "c"),
        solution("two and", "é three", "x", problem="A longer problem"),
        solution("y", "zz", shown="?"),
    ]
    for batch_size in (1, 3):
        for one, scores in score_solutions(ones, model, tokenizer, batch_size):
            wanted = naive(model, tokenizer, one)
            assert scores.steps.tolist() == [row[0] for row in wanted]
            for values, place in ((scores.log_probs, 1), (scores.mode_log_probs, 2), (scores.entropies, 3)):
                assert values.tolist() == pytest.approx([row[place] for row in wanted], abs=2e-5)


def test_tokens_belong_to_the_step_that_they_begin_in_and_shown_text_to_none():
    tokenizer = plain_tokenizer()
    code = encode(solution("ab", "cd", shown="!"), tokenizer)
    text = tokenizer.decode(code.ids)
    assert text == "1+1=?\n\nab\n\n!\n\ncd\n\n"
    assert code.steps.tolist() == [-1] * 7 + [0] * 4 + [-1] * 3 + [1] * 4


def test_what_is_too_long_or_has_an_empty_step_is_told():
    model, tokenizer = qwen2().eval(), plain_tokenizer()
    ones = [solution("ab", "c"), solution("a" * 90, "b"), Solution("e", "?", (Segment("", 0), Segment("", 1)), 0)]
    tokenizer.add_special_tokens({"additional_special_tokens": ["\n\n"]})  # so that an empty step has no token
    found = {
        one.id + one.segments[0].text[:2]: scores for one, scores in score_solutions(ones, model, tokenizer, 2, 50)
    }
    assert isinstance(found["sab"], TokenScores)
    assert (found["saa"], found["e"]) == (TOO_LONG, EMPTY_STEP)


def test_the_order_of_solutions_does_not_matter():
    model, tokenizer = qwen2(seed=2).eval(), plain_tokenizer()
    ones = [solution("ab", "c" * size, problem="?" * size) for size in (1, 9, 4, 6)]
    there, back = (
        {one: scores.log_probs for one, scores in score_solutions(order, model, tokenizer, 3)}
        for order in (ones, ones[::-1])
    )
    for one in ones:
        torch.testing.assert_close(there[one], back[one], rtol=0, atol=1e-5)


def test_a_slow_tokenizer_is_refused():
    with pytest.raises(ValueError, match="cannot say where its tokens begin"):
        next(score_solutions([], qwen2(), object()))


# Tables


def test_tables_have_a_line_for_each_blame_and_unknown_is_a_dash():
    verdicts = [{("acpo", "mean"): judge_solution([0.1, 0.9], 0)}, {("acpo", "mean"): judge_solution([0.9, 0.1], 0)}]
    rows = summarize(verdicts)
    assert (rows[0].top1.mean, rows[0].auc.mean, rows[0].auc_before, rows[0].mean_rank) == (0.5, 0.5, None, 1.5)
    assert text_table(rows).splitlines()[1].split()[:3] == ["acpo", "mean", "0.500"]
    assert markdown_table(rows).splitlines()[2].startswith("| acpo | mean | 0.500 [")
    assert "| - |" in markdown_table(rows)
    with pytest.raises(ValueError, match="no solution could be judged"):
        summarize([])
