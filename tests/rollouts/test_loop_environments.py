"""Environments of MultiTurnRollout: those that fail, those that wait, those of Gymnasium; a model that samples."""

import asyncio
import functools
import math
import pickle
import re
import threading
import time

import pytest
import torch
from datasets import Dataset
from scripted import scripted_trainer

from acpo_trl.envs import GymEnvironment, Step
from acpo_trl.rollouts import MultiTurnRollout
from acpo_trl.rollouts.sampling import sample


class Length:
    """Done at once; pays for the length."""

    reward_kinds = ("outcome",)

    def reset(self, **row):
        return None

    def step(self, action):
        return Step("", {"outcome": float(len(action))}, True)


class Failing(Length):
    def step(self, action):
        if action == "boom":
            raise RuntimeError("no such door")
        return super().step(action)


class Hanging(Length):
    release = threading.Event()
    made = 0

    def __init__(self):
        Hanging.made += 1

    def step(self, action):
        if action == "hang":
            self.release.wait()
        return super().step(action)


class Waiting(Length):
    async def reset(self, **row):
        await asyncio.sleep(0.1)
        return " Wait."

    async def step(self, action):
        await asyncio.sleep(0.1)
        return super().step(action)


def run(tmp_path, script, environment, rollout_options=None, **options):
    rollout = MultiTurnRollout(environment, **{"max_turns": 4, **(rollout_options or {})})
    trainer = scripted_trainer(tmp_path, script, rollout_func=rollout, **{"reward_funcs": None, **options})
    trainer.train()
    return trainer, trainer.batches[0]


def test_an_environment_that_raises_ends_its_own_episode_unscored(tmp_path, caplog):
    trainer, batch = run(tmp_path, [["boom", "abc", "abcdef", "boom"]], Failing)
    fields = trainer.recorded.fields
    assert fields["stop_reason"] == ["error", "done", "done", "error"]
    assert fields["episode_info"][0] == {"error": "RuntimeError: no such door"}
    assert fields["turn_rewards"][0] == [{}]
    rewards = trainer.reward_table.rewards[:, 0]
    assert rewards[1:3].tolist() == [3.0, 6.0]
    assert rewards[[0, 3]].isnan().all()
    assert batch["advantages"].tolist() == pytest.approx([0.0, -math.sqrt(0.5), math.sqrt(0.5), 0.0], abs=1e-4)
    (message,) = [record.message for record in caplog.records if "environment failed" in record.message]
    assert "failed in 2 of 4 episodes" in message
    assert "first RuntimeError: no such door" in message
    assert trainer.state.log_history[0]["turns/stop/error"] == 0.5


@pytest.mark.slow
def test_an_exception_without_text_ends_its_own_episode_too(tmp_path, caplog):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    class Sulking(Length):
        def step(self, action):
            if action == "boom":
                raise Mute
            return super().step(action)

    trainer, _ = run(tmp_path, [["boom", "abc"]], Sulking)
    assert trainer.recorded.fields["episode_info"] == [{"error": "Mute: <no text>"}, {}]
    assert "first Mute: <no text>" in caplog.text


@pytest.mark.slow
def test_halves_of_characters_are_replaced_wherever_the_environment_speaks(tmp_path):
    class Halves(Length):
        def reset(self, **row):
            return " \ud83d"

        def step(self, action):
            return Step("[\udc00\ud83d\ude00]", {"outcome": 1.0}, action == "b")

    trainer, _ = run(tmp_path, [["a", "b"], ["b"]], Halves)
    fields = trainer.recorded.fields
    assert fields["stop_reason"] == ["done", "done"]
    assert fields["observations"][0] == [" \ufffd", "[\ufffd😀]"]
    assert fields["messages"][0][1]["content"] == "[\ufffd😀]"
    assert trainer.processing_class.decode(trainer.recorded.rows[0].prompt_ids).count("\ufffd") == 1


@pytest.mark.slow
def test_a_reward_that_is_not_a_number_is_unscored_and_numbers_of_other_libraries_are_floats(tmp_path):
    class Odd(Length):
        reward_kinds = ("outcome", "process", "cost")

        def step(self, action):
            return Step("", {"outcome": math.nan, "process": torch.tensor(0.5), "cost": True}, action != "go on")

        def cut_off(self, reason):
            return None

    trainer, _ = run(tmp_path, [["go on", "a"]], Odd, {"max_turns": 1})
    assert trainer.recorded.fields["turn_rewards"] == [[{"outcome": None, "process": 0.5, "cost": 1.0}]] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (5, TypeError, "cut_off of Wrong gave rewards 5: no rewards by kind"),
        ({"outcome": "x"}, TypeError, "cut_off of Wrong gave rewards {'outcome': 'x'}: no rewards by kind"),
        ({"outcome": math.inf}, ValueError, "cut_off of Wrong gave rewards {'outcome': inf}: an infinite one"),
    ],
)
def test_a_cut_off_that_breaks_the_interface_stops_the_run(tmp_path, given, error, message):
    step, cut_off = lambda self, action: Step("", {}), lambda self, reason: given
    with pytest.raises(error, match=re.escape(message)):
        run(tmp_path, [["a", "b"]], type("Wrong", (Length,), {"step": step, "cut_off": cut_off}), {"max_turns": 1})


def test_an_environment_that_is_not_made_in_time_is_refused_within_the_limit():
    def slow():
        time.sleep(2.0)

    begun = time.monotonic()
    with pytest.raises(ValueError, match=r"environment: it was not made within step_limit_s, 0.2 s"):
        MultiTurnRollout(slow, max_turns=1, step_limit_s=0.2)
    assert time.monotonic() - begun < 1.0


@pytest.mark.slow
def test_the_environment_of_the_check_plays_an_episode(tmp_path):
    Hanging.made = 0
    run(tmp_path, [["a", "bb"]], Hanging)
    assert Hanging.made == 2


@pytest.mark.slow
def test_a_reset_that_raises_ends_its_own_episode_before_the_first_call(tmp_path):
    class Picky(Length):
        waiting = iter([False, True])

        def reset(self, **row):
            if next(self.waiting):
                raise ConnectionError("down")

    options = {"rollout_options": {"num_workers": 1}, "per_device_train_batch_size": 2, "num_generations": 2}
    trainer, _ = run(tmp_path, [["abc"]], Picky, **options)
    assert trainer.recorded.fields["stop_reason"] == ["done", "error"]
    assert trainer.recorded.fields["episode_info"] == [{}, {"error": "ConnectionError: down"}]
    assert trainer.recorded.fields["messages"][1] == [{"role": "assistant", "content": ""}]
    assert trainer.recorded.rows[1].action_mask == [0]


@pytest.mark.slow
def test_one_of_sixteen_environments_that_hangs_costs_one_limit_and_the_others_train(tmp_path, caplog):
    Hanging.made = 0
    rollout = MultiTurnRollout(Hanging, max_turns=4, step_limit_s=0.5)
    said = ["a" * length for length in range(1, 17)]
    said[5] = "hang"
    trainer = scripted_trainer(tmp_path, [said, ["x"] * 16], rollout_func=rollout, reward_funcs=None, max_steps=2)
    generate = trainer._generate
    seconds = []

    def timed(prompts):
        begun = time.monotonic()
        try:
            return generate(prompts)
        finally:
            seconds.append(time.monotonic() - begun)

    trainer._generate = timed
    trainer.train()
    assert 0.5 <= seconds[0] < 1.0
    assert seconds[1] < 0.5
    first = trainer.batches[0]["advantages"]
    assert first[5] == 0.0
    others = torch.cat([first[:5], first[6:]])
    assert (others != 0).all()
    expected = torch.tensor([float(len(text)) for text in said if text != "hang"])
    assert torch.allclose(others, (expected - expected.mean()) / (expected.std() + 1e-4), atol=1e-4)
    assert trainer.state.log_history[0]["turns/stop/error"] == 1 / 16
    (message,) = [record.message for record in caplog.records if "environment failed" in record.message]
    assert "1 of 16" in message
    assert "(1 gave no answer within 0.5 s; 1 threads still wait for one)" in message
    assert Hanging.made == 17  # the one that hangs has no second episode
    Hanging.release.set()


def test_environments_with_coroutines_wait_beside_each_other(tmp_path):
    rollout = MultiTurnRollout(Waiting, max_turns=2)
    trainer = scripted_trainer(tmp_path, [["a", "bb", "ccc", "dddd"]], rollout_func=rollout, reward_funcs=None)
    begun = time.monotonic()
    trainer.rollout_rows = [dict(trainer.train_dataset[0]) for _ in range(4)]
    rolled = rollout([row["prompt"] for row in trainer.rollout_rows], trainer)
    assert time.monotonic() - begun < 0.5  # one after another: 0.8 s
    assert rolled["turn_rewards"] == [[{"outcome": float(length)}] for length in (1, 2, 3, 4)]
    assert rolled["observations"][0] == [" Wait."]


class Corridor:
    """Gymnasium's interface: go right three times."""

    def reset(self, seed=None):
        self.place = seed or 0
        return self.place, {}

    def step(self, action):
        self.place += action
        return self.place, float(self.place == 3), self.place == 3, False, {}


@pytest.mark.slow
def test_an_environment_with_gymnasium_s_interface(tmp_path):
    environment = functools.partial(GymEnvironment, Corridor, to_text=" at {}".format, to_action=int)
    trainer, _ = run(tmp_path, [["1", "1"], ["1", "x"], ["1"]], environment, rows=[{"seed": 1}])
    assert {function.__name__ for function in trainer.reward_funcs} == {"environment_process", "environment_format"}
    fields = trainer.recorded.fields
    assert fields["turn_rewards"] == [
        [{"process": 0.0, "format": 0.0}, {"process": 1.0, "format": 0.0}],
        [{"process": 0.0, "format": 0.0}, {"process": None, "format": -1.0}, {"process": 1.0, "format": 0.0}],
    ]
    assert fields["state_keys"][0] == [" at 1", " at 2"]
    assert fields["stop_reason"] == ["done", "done"]


class Chatty:
    """Answers each turn with five letters; pays for different letters."""

    reward_kinds = ("outcome",)

    def reset(self, **row):
        self.turns = 0
        return None

    def step(self, action):
        self.turns += 1
        return Step("[so?]", {"outcome": float(len(set(action)))}, self.turns == 3, state_key=str(self.turns))


@pytest.mark.slow
def test_a_model_trains_on_what_it_sampled_in_every_turn(make_trainer):
    rollout = MultiTurnRollout(Chatty, max_turns=3, max_turn_tokens=4)
    trainer = make_trainer(rollout_func=rollout, reward_funcs=None, max_completion_length=40, max_steps=1)
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    assert trainer.recorded.num_turns == [3, 3, 3, 3]
    for row in trainer.recorded.rows:
        sampled = [row.turn_ids.count(turn) for turn in range(3)]
        assert all(1 <= count <= 4 for count in sampled)
        environment = [token for token, action in zip(row.completion_ids, row.action_mask, strict=True) if not action]
        shown = trainer.processing_class.decode(environment)
        assert shown in ("[so?][so?]", "[so?][so?]<|im_end|>")
    assert trainer.state.log_history[0]["turns/count/mean"] == 3.0
    assert trainer.state.log_history[0]["grad_norm"] > 0
    assert math.isfinite(trainer.state.log_history[0]["loss"])
    assert any((weight != before[name]).any() for name, weight in trainer.model.named_parameters())


def test_evaluation_rolls_out_the_rows_of_the_evaluation(make_trainer):
    rollout = MultiTurnRollout(Chatty, max_turns=2, max_turn_tokens=2)
    held_out = Dataset.from_dict({"prompt": ["1+2=", "2+3=", "3+4=", "4+5="]})
    trainer = make_trainer(
        rollout_func=rollout, reward_funcs=None, max_completion_length=40, eval_dataset=held_out, num_generations_eval=1
    )
    metrics = trainer.evaluate()
    assert metrics["eval_turns/count/mean"] == 2.0
    assert metrics["eval_turns/stop/turns"] == 1.0
    assert sorted(row["prompt"] for row in trainer.rollout_rows) == ["1+2=", "2+3=", "3+4=", "4+5="]


class Together:
    """A trainer of two processes whose other process has `others` rows, with a limit of `limit`."""

    use_vllm, is_fsdp_enabled, is_deepspeed_enabled = False, True, False

    def __init__(self, others, limit):
        self.others = torch.tensor([[others, limit]])
        self.accelerator = self
        self.num_processes, self.device = 2, "cpu"
        self.generation_config = type("Config", (), {"max_new_tokens": 99})()
        self.calls = []

    def gather(self, own):
        return torch.cat([own, self.others])

    def _generate_single_turn(self, prompt_ids, images, fields, num_generations):
        self.calls.append((prompt_ids, self.generation_config.max_new_tokens))
        return [[7, 8, 9] for _ in prompt_ids], None


def test_every_process_makes_the_same_calls_with_the_same_number_of_rows():
    trainer = Together(others=3, limit=5)
    samples = sample(trainer, [[1, 2]], limits=[2], spare=[4])
    assert trainer.calls == [([[1, 2], [4], [4]], 5)]
    assert [row.token_ids for row in samples] == [[7, 8]]
    assert sample(trainer, [], limits=[], spare=[4]) == []
    assert trainer.calls[1] == ([[4], [4], [4]], 5)
    assert sample(Together(others=0, limit=0), [], limits=[], spare=[4]) is None
    alone = Together(others=3, limit=5)
    alone.is_fsdp_enabled = False
    sample(alone, [[1, 2]], limits=[2], spare=[4])
    assert alone.calls == [([[1, 2]], 2)]
    assert sample(alone, [], limits=[], spare=[4]) is None


@pytest.mark.slow
def test_a_rollout_that_was_used_can_be_pickled(tmp_path):
    rollout = MultiTurnRollout(Length, max_turns=4, stop_strings=["."])
    copy = pickle.loads(pickle.dumps(rollout))
    assert (copy.max_turns, copy.stop_strings, copy.reward_kinds) == (4, (".",), ("outcome",))
    trainer = scripted_trainer(tmp_path, [["a", "bb"]], rollout_func=copy, reward_funcs=None)
    trainer.train()
    assert trainer.reward_table.rewards[:, 0].tolist() == [1.0, 2.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (lambda: ("text", 1.0, True), TypeError, r"step of Wrong gave \('text', 1.0, True\): no answer to a turn"),
        (lambda: Step(None), TypeError, "no answer to a turn"),
        (lambda: Step("", info=None), TypeError, r"step of Wrong gave Step\(.*no answer to a turn"),
        (lambda: Step("", state_key=["a"]), TypeError, "no answer to a turn"),
        (lambda: Step("", None), TypeError, "step of Wrong gave rewards None: no rewards by kind"),
        (lambda: Step("", {"outcome": "1"}), TypeError, "no rewards by kind"),
        (lambda: Step("", {"outcome": torch.ones(2)}), TypeError, "no rewards by kind"),
        (lambda: Step("", {"outcome": -math.inf}), ValueError, "an infinite one leaves nothing"),
        (lambda: Step("", {"style": 1.0}), ValueError, "of kind 'style': nobody would read them"),
    ],
)
def test_an_environment_that_breaks_its_interface_stops_the_run(tmp_path, step, error, message):
    environment = type("Wrong", (Length,), {"step": lambda self, action: step()})
    with pytest.raises(error, match=message):
        run(tmp_path, [["a", "b"]], environment)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_turns": 0}, ValueError, "max_turns 0"),
        ({"max_turns": 1.5}, TypeError, "max_turns 1.5: is a float; expected a whole number"),
        ({"max_turns": True}, TypeError, "max_turns True: is a bool; expected a whole number"),
        ({"max_turn_tokens": 0}, ValueError, "max_turn_tokens 0"),
        ({"max_turn_tokens": "4"}, TypeError, "max_turn_tokens '4': is a str"),
        ({"num_workers": 2.0}, TypeError, "num_workers 2.0: is a float"),
        ({"step_limit_s": "x"}, TypeError, "step_limit_s 'x': is a str; expected a number"),
        ({"stop_strings": None}, TypeError, "stop_strings None"),
        ({"stop_strings": 5}, TypeError, "stop_strings 5"),
        ({"step_limit_s": math.inf}, ValueError, "step_limit_s inf"),
        ({"num_workers": -1}, ValueError, "num_workers -1"),
        ({"observation_role": "system"}, ValueError, "observation_role 'system': unknown"),
        ({"stop_strings": "</a>"}, TypeError, "stop_strings '</a>'"),
        ({"stop_strings": [""]}, TypeError, "one or more letters"),
        ({"environment": dict}, TypeError, "it has no reward_kinds"),
        ({"environment": type("Wrong", (Length,), {"reward_kinds": "outcome"})}, TypeError, "reward_kinds 'outcome'"),
    ],
)
def test_options_that_cannot_work_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        MultiTurnRollout(**{"environment": Length, "max_turns": 4, **options})


def test_tools_beside_the_rollout_are_refused(make_trainer):
    def tool(x: int) -> int:
        """
        Do.

        Args:
            x: What.
        """
        return x

    rollout = MultiTurnRollout(Length, max_turns=1)
    trainer = make_trainer(rollout_func=rollout, reward_funcs=None)
    trainer.tools = [tool]
    with pytest.raises(ValueError, match="tools: TRL would run its own tool loop"):
        rollout(["1"], trainer)
