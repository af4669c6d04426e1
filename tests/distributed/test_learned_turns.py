"""Estimators that ask a critic, the policy or texts, on two processes."""

import pytest
from test_two_processes import launch


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["turn_ppo", "ppo", "spa_rl", "igpo", "gigpo_similar", "gtpo_trajectory"])
def test_two_processes_learn_alike_and_resume_within_a_generation_window(tmp_path, estimator):
    said = launch(2, "learned_turns.py", str(tmp_path), estimator)
    assert said.count("resumed as if it had not stopped") == 2


@pytest.mark.slow
def test_a_critic_on_a_sharded_model_reads_and_learns_what_one_on_the_whole_does():
    assert launch(2, "sharded_critic.py").count("what one on the whole model does") == 2
