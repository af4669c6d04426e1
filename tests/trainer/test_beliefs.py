"""The belief in the gold answer before each turn is what full logits say."""

import pytest
import torch
from tiny import build_trainer

from acpo_trl.advantages import needs, outcome
from acpo_trl.envs import Step
from acpo_trl.rollouts import MultiTurnRollout

SEEN = []


@needs("beliefs")
def believer(turns):
    if turns.values.size(0) > 2:  # not the trial before training
        SEEN.append(turns.beliefs)
    return outcome(turns)


class TwoTurns:
    reward_kinds = ("outcome",)

    def reset(self, **row):
        self.left = 2

    def step(self, action):
        self.left -= 1
        return Step("[x]", {} if self.left else {"outcome": float(len(action))}, self.left == 0)


def believing_trainer(tmp_path, gold, **settings):
    SEEN.clear()
    trainer = build_trainer(
        output_dir=str(tmp_path),
        turn_estimator="test_beliefs.believer",
        rollout_func=MultiTurnRollout(TwoTurns, max_turns=4, max_turn_tokens=3),
        reward_funcs=None,
        max_completion_length=40,
        prompts=["1+1=", "2+2="],
        columns={"answer": ["2", "4"]},
        **settings,
    )
    trainer.model.train()
    trainer._generate_and_score_completions([{"prompt": "1+1=", "answer": gold}] * 4)
    return trainer, SEEN[-1]


def naive_belief(trainer, row, turn, prefix, gold):
    """Mean log-probability in float64, from the logits of the whole text."""
    recorded = trainer.recorded
    context = [*recorded.rows[row].prompt_ids, *recorded.rows[row].completion_ids[: recorded.views[row][turn].span[0]]]
    ids = context + trainer.processing_class.encode(prefix + gold)
    with torch.no_grad():
        logits = trainer.model(torch.tensor([ids])).logits[0].double() / trainer.temperature
    scores = logits.log_softmax(-1)
    places = range(len(ids) - len(gold), len(ids))
    return sum(scores[at - 1, ids[at]].item() for at in places) / len(gold)


def test_beliefs_equal_those_of_full_logits(tmp_path):
    trainer, beliefs = believing_trainer(
        tmp_path, "42", belief_options={"column": "answer", "prefix": "So: "}, temperature=0.7
    )
    assert beliefs.shape == (4, 2)
    for row in range(4):
        for turn in range(2):
            assert beliefs[row, turn].item() == pytest.approx(naive_belief(trainer, row, turn, "So: ", "42"), abs=1e-4)
    assert beliefs[0, 0].item() != beliefs[0, 1].item()


def test_of_several_right_answers_the_likeliest_counts(tmp_path):
    trainer, beliefs = believing_trainer(tmp_path, ["42", "forty-two", "4"])
    expected = [naive_belief(trainer, 2, 1, "", gold) for gold in ("42", "forty-two", "4")]
    assert beliefs[2, 1].item() == pytest.approx(max(expected), abs=1e-4)


def test_numbers_are_answers_too(tmp_path):
    trainer, beliefs = believing_trainer(tmp_path, 7)
    assert beliefs[1, 0].item() == pytest.approx(naive_belief(trainer, 1, 0, "", "7"), abs=1e-4)


@pytest.mark.parametrize("gold", [None, [], ""])
def test_without_a_gold_answer_a_belief_is_unknown(tmp_path, gold):
    _, beliefs = believing_trainer(tmp_path, gold)
    assert beliefs.isnan().all()


def test_an_answer_that_is_no_text_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"column 'answer' of row 0 .*'a'.*expected a text, a number"):
        believing_trainer(tmp_path, {"a": 1})


def test_a_dataset_without_the_column_is_refused_before_anything_is_loaded(tmp_path):
    with pytest.raises(ValueError, match=r"belief_options column 'answer': .*has the columns \['prompt'\]"):
        build_trainer(output_dir=str(tmp_path), turn_estimator="test_beliefs.believer", model="nowhere/to-be-found")
