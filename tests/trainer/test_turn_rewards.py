"""Rewards of turns: from functions, environments and rollouts, by kind, on the turns that earned them."""

import pytest
import torch
from scripted import Doubler, call, double, scripted_trainer

from acpo_trl.advantages.kinds import Credit
from acpo_trl.rewards import reward
from acpo_trl.rollouts import TurnView
from acpo_trl.trainer.environment import judge_turns
from acpo_trl.trainer.recording import RecordedRollout
from acpo_trl.trainer.turn_choices import TurnCredit

SCRIPT = [[call("double", x=21), "I know: 42"], [call("double", x=4)], ["It is 8"]]  # rows of 3 turns and of 1


class Judge(Doubler):
    """Doubles numbers and judges turns: a call is a step, the last turn an outcome."""

    reward_kinds = ("outcome", "process")

    def _score(self, turns):
        from acpo_trl.envs import TurnScore

        steps = [
            TurnScore({"process": float(bool(t.tool_calls)), "outcome": None}, f"after {i}")
            for i, t in enumerate(turns)
        ]
        return [*steps[:-1], TurnScore({"process": None, "outcome": float("8" in turns[-1].text)}, "end")]


@reward(kind="process", level="turn", weight=2.0)
def call_reward(completions, turns, **columns):
    return [[float(len(turn.tool_calls)) if turn.tool_calls else None for turn in views] for views in turns]


@reward(kind="format", level="turn")
async def short(completions, turns, **columns):
    return [[0.0 if turn.span[1] - turn.span[0] < 20 else -1.0 for turn in views] for views in turns]


def run(tmp_path, **options):
    trainer = scripted_trainer(tmp_path, SCRIPT, **options)
    trainer.train()
    return trainer, trainer.batches[0], trainer.state.log_history[0]


@pytest.mark.slow
def test_function_for_turns_gets_the_turns_and_trl_the_sum(tmp_path):
    trainer, _, log = run(tmp_path, reward_funcs=[call_reward, short], tools=[double])
    assert trainer.reward_table.rewards[:, 0].tolist()[:1] == [2.0]
    assert trainer.reward_table.rewards[1, 0].isnan()  # no turn of the second row was scored
    assert trainer.reward_table.rewards[:, 1].tolist() == [-2.0, 0.0]
    assert log["rewards/process/mean"] == 4.0
    assert trainer.reward_funcs[0].turn_scores == [[1.0, 1.0, None], [None]]
    assert trainer.reward_funcs[1].turn_scores == [[-1.0, -1.0, 0.0], [0.0]]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"reward_weights": [1.0]}])
def test_kinds_of_an_environment_are_picked_up(tmp_path, options):
    trainer, _, log = run(tmp_path, environment_factory=Judge, **options)
    assert trainer.reward_func_names == ["length", "environment_outcome", "environment_process"]
    assert trainer.reward_weights.tolist() == [1.0, 1.0, 1.0]
    assert trainer.reward_table.rewards[:, 1].tolist() == [1.0, 0.0]
    assert trainer.reward_table.rewards[0, 2] == 2.0
    assert trainer.reward_table.rewards[1, 2].isnan()
    assert trainer.state_keys == [["after 0", "after 1", "end"], ["end"]]
    assert log["rewards/environment_outcome/mean"] == 0.5


@pytest.mark.slow
def test_environment_alone_is_a_source_of_rewards(tmp_path):
    trainer, _, _ = run(tmp_path, reward_funcs=None, environment_factory=Judge)
    assert trainer.reward_func_names == ["environment_outcome", "environment_process"]


@pytest.mark.slow
def test_environment_with_a_reward_of_its_own_keeps_it(tmp_path):
    class Own(Judge):
        def get_reward(self):
            return 5.0

    trainer, _, log = run(tmp_path, environment_factory=Own)
    assert trainer.reward_func_names == ["length", "environment_outcome", "environment_process", "Own"]
    assert log["rewards/Own/mean"] == 5.0


class Listing:
    """Notes a reward whenever it is called; forgets the last turn, which calls nothing."""

    reward_kinds = ("process", "cost")

    def reset(self, **row):
        self.turn_rewards = []

    def double(self, x: int) -> int:
        """
        Double a number.

        Args:
            x: The number.
        """
        self.turn_rewards.append({"process": 0.25, "cost": -1.0} if self.turn_rewards else 0.5)
        return 2 * x


@pytest.mark.slow
def test_list_of_turn_rewards_needs_one_for_each_turn(tmp_path):
    with pytest.raises(ValueError, match="turn_rewards of completion 0 has 2 entries, but it has 3 turns"):
        run(tmp_path, environment_factory=Listing)


def test_list_of_turn_rewards_is_read_as_process_or_by_kind():
    environment = Listing()
    environment.turn_rewards = [0.5, {"process": 0.25, "cost": -1.0}, None]
    views = [TurnView("", [], [], (0, 0))] * 3
    recorded = RecordedRollout([], [3], [views], [False], [None])
    judged, keys = judge_turns(recorded, [environment], ("process", "cost"))
    assert judged == [[{"process": 0.5}, {"process": 0.25, "cost": -1.0}, {"process": None}]]
    assert keys == [[None, None, None]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "returned the NoneType None; expected a list of 2 lists"),
        ([[1.0, 1.0, 1.0]], "expected a list of 2 lists"),
        ([[1.0, 1.0], [1.0]], "returned turn rewards .* for completion 0, which has 3 turns"),
        ([[1.0, 1.0, 1.0], 1.0], "returned turn rewards the float 1.0 for completion 1, which has 1 turns"),
        ([[1.0, "x", 1.0], [1.0]], "'wrong, completion 0' returned the str 'x' for completion 1"),
    ],
)
def test_wrong_number_of_turn_rewards_names_the_completion(tmp_path, result, message):
    @reward(level="turn")
    def wrong(completions, **columns):
        return result

    with pytest.raises(ValueError, match=message):
        run(tmp_path, reward_funcs=[wrong], tools=[double])


@pytest.mark.slow
def test_environment_that_fails_on_judging_leaves_its_completion_unscored(tmp_path, caplog):
    class Failing(Judge):
        def _score(self, turns):
            if len(turns) == 1:
                raise ZeroDivisionError("no turns to divide by")
            return super()._score(turns)

    trainer, batch, log = run(tmp_path, environment_factory=Failing)
    assert trainer.reward_table.rewards[1].isnan().all()
    assert batch["advantages"].tolist() == [0.0, 0.0]  # a group of one scored completion
    assert log["rewards/outcome/unscored"] == 0.5
    assert log["turns/stop/error"] == 0.5
    assert "environment of completion 1 failed on judging" in caplog.text


@pytest.mark.slow
def test_turn_estimator_puts_advantages_on_the_turns_that_earned_them(tmp_path):
    _, batch, log = run(tmp_path, reward_funcs=[call_reward, short], tools=[double], turn_estimator="outcome")
    turn_ids, advantages = batch["turn_ids"], batch["advantages"]
    assert advantages.shape == turn_ids.shape
    assert (advantages[turn_ids < 0] == 0).all()
    # process: rewards 1, 1, unscored to go with gamma 0.95; the group has no other scored turn. Weight 2.
    returns = torch.tensor([1.95, 1.0, 0.0])
    process = 2 * (returns - returns.mean()) / (returns.std() + 1e-4)
    expected = process + torch.tensor([-1.0, -1.0, 0.0])  # format, neither normalised nor spread
    for turn in range(3):
        assert advantages[0][turn_ids[0] == turn].tolist() == pytest.approx(
            [expected[turn].item()] * int((turn_ids[0] == turn).sum())
        )
    assert (advantages[1] == 0).all()
    assert log["turns/advantage_share/process"] + log["turns/advantage_share/format"] == pytest.approx(1.0)


def test_outcome_estimator_on_outcomes_alone_is_grpo(tmp_path):
    _, turns, _ = run(tmp_path, tools=[double], turn_estimator="outcome")
    _, plain, _ = run(tmp_path, tools=[double])
    mask = turns["turn_ids"] >= 0
    assert torch.allclose(turns["advantages"][mask], plain["advantages"].unsqueeze(1).expand_as(mask)[mask], atol=1e-6)
    assert plain["advantages"].abs().max() > 0.5


@pytest.mark.slow
def test_discount_counts_turns_from_the_end(tmp_path):
    _, batch, _ = run(tmp_path, tools=[double], turn_estimator="outcome", turn_estimator_options={"gamma": 0.5})
    first = [batch["advantages"][0][batch["turn_ids"][0] == turn][0].item() for turn in range(3)]
    assert first[0] == pytest.approx(first[2] / 4)
    assert first[1] == pytest.approx(first[2] / 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"turn_estimator": "outcom"}, "turn_estimator 'outcom': no such name.*did you mean 'outcome'"),
        (
            {"turn_estimator": "outcome", "turn_estimator_options": {"gama": 1}},
            "'outcome' with options .*unexpected keyword argument 'gama'",
        ),
        ({"turn_estimator_options": {"gamma": 1}}, "nothing would use it without a turn_estimator"),
        ({"turn_estimator": "math.pi"}, "turn_estimator 'math.pi': is no function"),
        ({"turn_estimator": "outcome", "turn_estimator_options": ["gamma"]}, "options of turn_estimator .*no mapping"),
        ({"turn_estimator": "json.dumps"}, "turn_estimator 'json.dumps' with options .*fails on a table of two"),
        ({"turn_estimator": "outcome", "turn_estimator_options": {"gamma": float("nan")}}, "gave nan for turn 0"),
        ({"turn_estimator": "outcome", "turn_estimator_options": {"gamma": "a"}}, "fails on a table of two"),
        (
            {"turn_estimator": "kevin", "turn_estimator_options": {"mode": "mean"}},
            "turn_estimator 'kevin' with options",
        ),
        ({"reward_weights": [float("nan")]}, r"reward_weights \[nan\]: rewards would be lost"),
    ],
)
def test_wrong_turn_estimator_is_refused_before_training(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(tmp_path, tools=[double], **options)


@pytest.mark.slow
def test_advantages_that_would_destroy_the_model_stop_the_run(tmp_path):
    def forgetful(turns):
        return turns.values if turns.values.size(1) > 2 else torch.zeros_like(turns.values)

    trainer = scripted_trainer(tmp_path, SCRIPT, tools=[double], turn_estimator="outcome")
    trainer.turn_credit = TurnCredit(lambda tables, weights: Credit(forgetful(tables["outcome"]), {}), frozenset())
    with pytest.raises(
        ValueError, match="turn_estimator 'outcome' gave nan for turn 0 of completion 0: it would destroy"
    ):
        trainer.train()


@pytest.mark.slow
def test_rewards_of_a_kind_that_nobody_reads_stop_the_run(tmp_path):
    class Misspelt(Judge):
        def _score(self, turns):
            from acpo_trl.envs import TurnScore

            return [TurnScore({"proces": 1.0}) for _ in turns]

    with pytest.raises(
        ValueError, match="turn_rewards of completion 0 have the kind 'proces', which nobody would read"
    ):
        run(tmp_path, environment_factory=Misspelt)


@pytest.mark.slow
@pytest.mark.parametrize("result", [None, [{"process": 1.0}] * 3, "abc"])
def test_judgement_of_wrong_form_names_the_environment(tmp_path, result):
    class Wrong(Judge):
        def _score(self, turns):
            return result

    with pytest.raises(TypeError, match=r"_score of Wrong gave .* for completion 0; expected a list of"):
        run(tmp_path, environment_factory=Wrong)


@pytest.mark.slow
def test_turn_reward_that_is_not_a_number_is_unscored_and_an_infinite_one_is_refused(tmp_path):
    @reward(kind="process", level="turn")
    def odd(completions, turns, **columns):
        return [[float("nan"), 5.0, value][: len(views)] for views in turns]

    value = 1.0
    trainer, _, _ = run(tmp_path, reward_funcs=[odd], tools=[double])
    assert trainer.reward_funcs[0].turn_scores == [[None, 5.0, 1.0], [None]]
    value = float("inf")
    with pytest.raises(ValueError, match="'odd, completion 0' returned inf for completion 2"):
        run(tmp_path, reward_funcs=[odd], tools=[double])
