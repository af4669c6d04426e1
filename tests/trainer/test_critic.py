"""The critic reads the right states, learns what it is told, and leaves the policy alone unless asked."""

import math

import pytest
import torch
from peft import LoraConfig
from scripted import call, double, scripted_trainer
from tiny import build_trainer, qwen2

from acpo_trl.advantages import needs, outcome
from acpo_trl.critic import explained_variance, sum_loss, value_loss
from acpo_trl.envs import Step
from acpo_trl.rollouts import MultiTurnRollout
from acpo_trl.trainer.turn_choices import CriticOptions


@needs("state_values")
def like_outcome(turns):
    """Advantages of `outcome`, and a critic that learns the reward."""
    return outcome(turns), torch.where(turns.exists, turns.totals.unsqueeze(1), torch.nan)


@needs("tokens", "token_values")
def of_tokens(turns):
    has_token = turns.tokens.turn_ids >= 0
    targets = torch.where(has_token, turns.totals.unsqueeze(1), torch.nan)
    return targets.nan_to_num(nan=0.0), targets


@needs("contributions")
def of_contributions(turns):
    return outcome(turns), turns.totals


@needs("contributions", "state_values")
def of_two_critics(turns):
    return outcome(turns), turns.totals


class Countdown:
    """Lasts two turns, pays for different letters in the last."""

    reward_kinds = ("outcome",)

    def reset(self, **row):
        self.left = 2

    def step(self, action):
        self.left -= 1
        return Step("[x]", {"outcome": self.pay(action)} if not self.left else {}, self.left == 0)

    def pay(self, action):
        return float(len(set(action)))


class Salary(Countdown):
    """Pays 3 in the end."""

    def pay(self, action):
        return 3.0


def weights(trainer):
    return [parameter.detach().clone() for parameter in trainer.model.parameters()]


def train(tmp_path, name="run", **settings):
    trainer = build_trainer(output_dir=str(tmp_path / name), **{"credit_rule": "uniform", **settings})
    trainer.train()
    return trainer


def two_turns(tmp_path, estimator, environment=Countdown, **settings):
    rollout = MultiTurnRollout(environment, max_turns=4, max_turn_tokens=3)
    return train(
        tmp_path,
        rollout_func=rollout,
        reward_funcs=None,
        max_completion_length=40,
        turn_estimator=estimator,
        **settings,
    )


@pytest.mark.slow
def test_a_detached_critic_does_not_move_the_policy(tmp_path):
    alone = train(tmp_path, "alone", turn_estimator="outcome")
    beside = train(tmp_path, "beside", turn_estimator="test_critic.like_outcome")
    assert beside.critic.head.weight.abs().sum() > 0
    assert all(torch.equal(a, b) for a, b in zip(weights(alone), weights(beside), strict=True))


@pytest.mark.slow
def test_a_critic_of_its_own_model_does_not_move_the_policy_either(tmp_path):
    qwen2(seed=3).save_pretrained(tmp_path / "critic")
    options = {"model": str(tmp_path / "critic"), "learning_rate": 1e-3}
    alone = train(tmp_path, "alone", turn_estimator="outcome")
    beside = train(tmp_path, "beside", turn_estimator="test_critic.like_outcome", critic_options=options)
    start = dict(qwen2(seed=3).model.named_parameters())
    moved = [not torch.equal(value, start[name]) for name, value in beside.critic.backbone.named_parameters()]
    assert all(moved)
    assert all(torch.equal(a, b) for a, b in zip(weights(alone), weights(beside), strict=True))


def test_an_attached_critic_adds_its_gradient_to_the_policys(tmp_path):
    gradients, largest = {}, 0.0
    for name, options in {"alone": None, "attached": {"detach": False, "coefficient": 0.5}}.items():
        estimator = "outcome" if options is None else "test_critic.like_outcome"
        trainer = build_trainer(
            output_dir=str(tmp_path / name),
            credit_rule="uniform",
            turn_estimator=estimator,
            critic_options=options,
            gradient_checkpointing=False,
        )
        if trainer.critic is not None:
            torch.nn.init.normal_(trainer.critic.head.weight, generator=torch.Generator().manual_seed(5))
        batch = trainer._prepare_inputs(next(iter(trainer.get_train_dataloader())))
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.train()
        trainer.compute_loss(trainer.model, batch).backward()
        gradients[name] = [parameter.grad.clone() for parameter in trainer.model.parameters()]
        if trainer.critic is None:
            continue
        trainer.model.zero_grad()
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        hidden = trainer.model.model(ids, attention_mask=mask).last_hidden_state
        first = hidden[:, batch["prompt_ids"].size(1) - 1]  # behind the prompt, before the only turn
        normal = (first - first.mean(-1, keepdim=True)) / (first.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        value = normal @ trainer.critic.head.weight[0]
        reward = batch["critic_targets"][:, 0]
        assert sorted(reward.tolist()) == sorted(trainer.reward_table.rewards[:, 0].tolist())
        (0.5 * 0.5 * (value - reward).square().mean()).backward()
        for alone, both, own in zip(gradients["alone"], gradients["attached"], trainer.model.parameters(), strict=True):
            extra = torch.zeros_like(both) if own.grad is None else own.grad
            torch.testing.assert_close(both, alone + extra, rtol=1e-3, atol=1e-4)
            largest = max(largest, extra.abs().max().item())
    assert largest > 0.1


@pytest.mark.slow
def test_states_are_read_before_a_turn_and_contributions_at_its_last_token(tmp_path):
    for estimator, where in (("test_critic.like_outcome", 0), ("test_critic.of_contributions", 1)):
        trainer = two_turns(tmp_path, estimator, max_steps=1, learning_rate=0.0, critic_options={"learning_rate": 1e-9})
        torch.nn.init.normal_(trainer.critic.head.weight)
        trainer.model.train()
        batch = trainer._generate_and_score_completions([{"prompt": "1"}] * 4)
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        with torch.no_grad():
            values = trainer.critic(trainer.model.model(ids, attention_mask=mask).last_hidden_state)
        start = batch["prompt_ids"].size(1)
        for row, views in enumerate(trainer.recorded.views):
            places = {view.span[where] for view in views}
            assert len(places) == 2
            assert {i for i, t in enumerate(batch["critic_targets"][row].tolist()) if not math.isnan(t)} == places
            for place in places:  # the state before token `place` is the one behind the token at place - 1
                read = batch["critic_values"][row, place]
                torch.testing.assert_close(read, values[row, start + place - 1], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_tokens_of_the_policy_alone_are_learned_from(tmp_path):
    trainer = two_turns(tmp_path, "test_critic.of_tokens", max_steps=1)
    batch = trainer._generate_and_score_completions([{"prompt": "1"}] * 4)
    learned = ~batch["critic_targets"][:, :-1].isnan()
    assert torch.equal(learned, batch["turn_ids"] >= 0)
    assert batch["critic_targets"][:, -1].isnan().all()
    assert (batch["advantages"][batch["turn_ids"] < 0] == 0).all()


@pytest.mark.slow
def test_the_critic_comes_to_foretell_a_reward_that_the_prompt_decides(tmp_path):
    def even(prompts, **columns):
        return [float(int(prompt[0]) % 2) for prompt in prompts]

    trainer = train(
        tmp_path,
        turn_estimator="test_critic.like_outcome",
        reward_funcs=even,
        prompts=[f"{i}=" for i in range(8)],
        learning_rate=1e-9,
        max_steps=120,
        per_device_train_batch_size=8,
        critic_options={"learning_rate": 0.05},
        logging_steps=40,
    )
    explained = [log["critic/explained_variance"] for log in trainer.state.log_history if "reward" in log]
    assert explained[0] < explained[-1]
    assert explained[-1] > 0.8


@pytest.mark.slow
def test_contributions_come_to_add_up_to_the_reward(tmp_path):
    trainer = two_turns(
        tmp_path,
        "test_critic.of_contributions",
        Salary,
        learning_rate=1e-9,
        max_steps=90,
        critic_options={"learning_rate": 0.01},
        logging_steps=30,
    )
    losses = [log["critic/loss"] for log in trainer.state.log_history if "reward" in log]
    assert trainer.reward_table.rewards.unique().tolist() == [3.0]
    assert losses[-1] < 0.3 * losses[0]
    assert abs(trainer.state.log_history[-2]["critic/values"] - 3.0) < 0.4


@pytest.mark.slow
@pytest.mark.parametrize("own_model", [False, True])
def test_a_resumed_critic_equals_one_that_went_on(tmp_path, own_model):
    options = {}
    if own_model:
        qwen2(seed=3).save_pretrained(tmp_path / "critic")
        options = {"critic_options": {"model": str(tmp_path / "critic"), "learning_rate": 1e-3}}
    settings = {
        "turn_estimator": "test_critic.like_outcome",
        "save_strategy": "steps",
        "save_steps": 2,
        "max_steps": 4,
        "steps_per_generation": 4,
        "gradient_accumulation_steps": 2,
        **options,
    }
    whole = train(tmp_path, "whole", **settings)
    resumed = build_trainer(output_dir=str(tmp_path / "resumed"), credit_rule="uniform", **settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-2"))
    for (name, expected), got in zip(
        whole.critic.state_dict().items(), resumed.critic.state_dict().values(), strict=True
    ):
        assert torch.equal(expected, got), name
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(resumed), strict=True))


@pytest.mark.slow
def test_a_checkpoint_without_critic_is_refused(tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 1, "max_steps": 2}
    train(tmp_path, "plain", turn_estimator="outcome", **settings)
    trainer = build_trainer(output_dir=str(tmp_path / "critic"), turn_estimator="test_critic.like_outcome", **settings)
    with pytest.raises(ValueError, match="holds no critic"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "plain" / "checkpoint-1"))


@pytest.mark.slow
def test_a_critic_learns_beside_an_adapter(tmp_path):
    trainer = train(
        tmp_path,
        turn_estimator="test_critic.like_outcome",
        peft_config=LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM"),
    )
    assert trainer.critic.head.weight.abs().sum() > 0


@pytest.mark.slow
def test_evaluation_asks_the_critic_and_does_not_teach_it(tmp_path):
    trainer = train(tmp_path, turn_estimator="test_critic.like_outcome", max_steps=1)
    before = trainer.critic.head.weight.clone()
    trainer.evaluate(trainer.train_dataset)
    assert torch.equal(before, trainer.critic.head.weight)
    assert "eval_critic/explained_variance" in trainer.state.log_history[-1]


@pytest.mark.slow
def test_no_hook_stays_on_the_model(tmp_path):
    trainer = train(tmp_path, turn_estimator="test_critic.like_outcome")
    assert not trainer.model.base_model._forward_hooks


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"turn_estimator": "outcome", "critic_options": {}}, "would not use them"),
        ({"turn_estimator": "test_critic.like_outcome", "critic_options": {"rate": 1}}, "expected a mapping"),
        ({"turn_estimator": "test_critic.like_outcome", "critic_options": {"learning_rate": 0}}, "would not learn"),
        ({"turn_estimator": "test_critic.like_outcome", "critic_options": {"clip": "no"}}, "would not learn"),
        ({"turn_estimator": "test_critic.like_outcome", "critic_options": {"detach": 1}}, "true or false"),
        ({"turn_estimator": "outcome", "belief_options": {"column": "gold"}}, "would not use them"),
        (
            {
                "turn_estimator": "test_critic.like_outcome",
                "kind_estimators": {"process": "test_critic.of_contributions"},
            },
            "one critic cannot serve several",
        ),
        ({"turn_estimator": "test_critic.of_two_critics"}, "needs contributions and state_values: a critic says one"),
        (
            {"turn_estimator": "test_critic.of_two_critics", "kinds": "mixed"},
            "needs contributions and state_values: a critic says one",
        ),
    ],
)
def test_a_critic_that_cannot_work_is_refused_before_anything_is_loaded(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        build_trainer(output_dir=str(tmp_path), **settings)


def test_defaults_of_the_critic():
    assert CriticOptions() == CriticOptions(None, None, True, 0.1, 0.2, 1.0)


def test_the_value_loss_is_the_worse_of_two_halved_squares():
    values, old = torch.tensor([[1.0, 0.5, 9.9]]), torch.tensor([[0.0, 0.5, 0.0]])
    targets = torch.tensor([[2.0, 0.0, torch.nan]])
    # clipped to 0.2: (0.2 - 2)^2 = 3.24 against (1 - 2)^2; the second has not moved: 0.25
    assert value_loss(values, old, targets, 0.2).item() == pytest.approx(0.5 * (3.24 + 0.25) / 2)
    assert value_loss(values, old, targets, None).item() == pytest.approx(0.5 * (1.0 + 0.25) / 2)
    assert value_loss(values, old, torch.full_like(targets, torch.nan), 0.2).item() == 0.0


def test_the_loss_of_contributions_is_that_of_their_sum():
    values = torch.tensor([[0.1, 9.9, 0.3], [5.0, 5.0, 5.0], [0.2, 0.2, 0.2]])
    targets = torch.tensor([[1.0, torch.nan, 1.0], [torch.nan] * 3, [0.6, 0.6, 0.6]])
    assert sum_loss(values, targets).item() == pytest.approx((0.6**2 + 0.0) / 2, abs=1e-6)


def test_explained_variance():
    targets = torch.tensor([1.0, 2.0, 3.0, torch.nan])
    assert explained_variance(torch.tensor([1.0, 2.0, 3.0, 9.9]), targets) == 1.0
    assert explained_variance(torch.tensor([2.0, 2.0, 2.0, 9.9]), targets) == 0.0
    assert explained_variance(torch.tensor([3.0, 2.0, 1.0, 9.9]), targets) == -3.0
    assert math.isnan(explained_variance(targets, torch.tensor([1.0, 1.0, 1.0, 1.0])))


@pytest.mark.slow
def test_a_turn_without_tokens_teaches_nothing(tmp_path):
    script = [
        ["Hm. " + call("double", x=21), "42"],
        [
            "…",
        ],
    ]
    trainer = scripted_trainer(
        tmp_path, script, tools=[double], turn_estimator="test_critic.like_outcome", max_completion_length=400
    )
    trainer.train()
    (batch,) = trainer.batches
    taught = [[i for i, target in enumerate(row) if not math.isnan(target)] for row in batch["critic_targets"].tolist()]
    starts = [[v.span[0] for v in views if v.span[1] > v.span[0]] for views in trainer.recorded.views]
    assert taught == starts
    assert any(view.span[0] == view.span[1] for views in trainer.recorded.views for view in views)
