"""MultiTurnRollout through the real trainer: a policy that follows a script, and environments that answer it."""

import pytest
import torch
from merging import merging_tokenizer
from scripted import Scripted, scripted_trainer

from acpo_trl.envs import Step
from acpo_trl.rewards import reward
from acpo_trl.rollouts import MultiTurnRollout

END = "<|im_end|>"


class Echo:
    """Repeats what it hears, pays for the length, and is done when it hears `bye`."""

    reward_kinds = ("outcome", "format")

    def reset(self, hello=None, **row):
        self.heard = 0
        return hello

    def step(self, action):
        self.heard += 1
        rewards = {"outcome": float(len(action)), "format": None}
        return Step(f"({action})", rewards, "bye" in action, {"n": self.heard}, f"state {self.heard}")


class Recording(Scripted):
    """Keeps the rows of each generation call, as text, and how many tokens it may give; gives no more, as a sampler."""

    def _generate_single_turn(self, prompt_ids, *args, **kwargs):
        decode = self.processing_class.decode
        self.asked = [*getattr(self, "asked", []), [decode(ids) for ids in prompt_ids]]
        self.limits = [*getattr(self, "limits", []), self.generation_config.max_new_tokens]
        rows, _ = super()._generate_single_turn(prompt_ids, *args, **kwargs)
        return [row[: self.limits[-1]] for row in rows], None


def run(tmp_path, script, environment=Echo, rollout_options=None, **options):
    rollout = MultiTurnRollout(environment, **{"max_turns": 4, **(rollout_options or {})})
    options = {"reward_funcs": None, "cls": Recording, **options}
    trainer = scripted_trainer(tmp_path, script, rollout_func=rollout, **options)
    trainer.train()
    return trainer, trainer.batches[0]


def turns_of(trainer, batch, row):
    ids, turn_ids = batch["completion_ids"][row], batch["turn_ids"][row]
    return [trainer.processing_class.decode(ids[turn_ids == turn]) for turn in range(trainer.recorded.num_turns[row])]


def completion_of(trainer, row):
    return trainer.processing_class.decode(trainer.recorded.rows[row].completion_ids)


def test_what_the_policy_said_is_trained_and_what_the_environment_said_is_not(tmp_path):
    trainer, batch = run(tmp_path, [["a", "bye"], ["bcd"], ["bye"]])
    assert completion_of(trainer, 0) == f"a{END}(a)bcd{END}(bcd)bye{END}"
    assert turns_of(trainer, batch, 0) == ["a" + END, "bcd" + END, "bye" + END]
    assert turns_of(trainer, batch, 1) == ["bye" + END]
    assert batch["turn_ids"].tolist() == [
        [0, 0, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1, -1, 2, 2, 2, 2],
        [0, 0, 0, 0] + [-1] * 14,
    ]
    mask = (batch["completion_mask"] * batch["tool_mask"]).bool()
    assert torch.equal(batch["turn_ids"] >= 0, mask)
    assert trainer.recorded.fields["stop_reason"] == ["done", "done"]


@pytest.mark.slow
def test_finished_episodes_leave_the_batch_and_rows_keep_their_order(tmp_path):
    script = [["a", "bye", "b", "bye"], ["c", "bye"], ["bye"]]
    trainer, _ = run(tmp_path, script)
    assert [len(rows) for rows in trainer.asked] == [4, 2, 1]
    assert [[row.rpartition("\n")[2] for row in rows] for rows in trainer.asked[1:]] == [
        [f"a{END}(a)", f"b{END}(b)"],
        [f"a{END}(a)c{END}(c)"],
    ]
    assert trainer.recorded.num_turns == [3, 1, 2, 1]


@pytest.mark.slow
@pytest.mark.parametrize("role", ["user", "tool"])
def test_observations_as_messages_look_as_the_chat_template_renders_them(tmp_path, role):
    trainer, batch = run(tmp_path, [["hm", "bye"], ["bye"]], rollout_options={"observation_role": role})
    row = trainer.recorded.rows[0]
    messages = [
        {"role": "user", "content": "What is 2 x 21?"},
        {"role": "assistant", "content": "hm"},
        {"role": role, "content": "(hm)"},
    ]
    rendered = trainer.processing_class.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    # Qwen3's template puts empty thinking in front of the last turn only: what the policy saw has none
    assert trainer.processing_class.decode([*row.prompt_ids, *row.completion_ids]) == rendered + "bye" + END
    assert turns_of(trainer, batch, 0) == ["hm" + END, "bye" + END]
    assert trainer.recorded.fields["messages"][0][1] == {"role": role, "content": "(hm)"}


@pytest.mark.slow
def test_a_turn_without_end_gets_one_that_is_not_trained_before_a_message(tmp_path):
    options = {"observation_role": "user", "stop_strings": ["!"]}
    trainer, batch = run(tmp_path, [["go! on", "bye"], ["bye"]], rollout_options=options)
    assert turns_of(trainer, batch, 0) == ["go!", "bye" + END]
    shown = f"go!{END}\n<|im_start|>user\n(go!){END}\n<|im_start|>assistant\nbye{END}"
    assert completion_of(trainer, 0) == shown


@pytest.mark.slow
def test_reset_gets_the_row_and_its_text_ends_the_prompt(tmp_path):
    rows = [{"hello": " Say a."}]
    trainer, _ = run(tmp_path, [["bye", "bye"]], rows=rows)
    assert trainer.asked[0] == [f"<|im_start|>user\nWhat is 2 x 21? Say a.{END}\n<|im_start|>assistant\n"] * 2
    assert trainer.train_dataset[0]["prompt"] == [{"role": "user", "content": "What is 2 x 21?"}]
    assert trainer.recorded.fields["observations"] == [[" Say a."], [" Say a."]]


@pytest.mark.slow
def test_judges_see_turns_rewards_states_observations_and_info(tmp_path):
    seen = {}

    @reward("process", "turn")
    def judge(completions, turns, state_keys, observations, **columns):
        seen.update(completions=completions, turns=turns, state_keys=state_keys, observations=observations)
        return [[1.0, None], [2.0]]

    trainer, _ = run(tmp_path, [["a", "bye"], ["bye"]], reward_funcs=judge)
    assert seen["completions"][0] == [
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "(a)"},
        {"role": "assistant", "content": "bye"},
    ]
    assert [(turn.text, turn.results, turn.span) for turn in seen["turns"][0]] == [
        ("a", ["(a)"], (0, 2)),
        ("bye", [], (5, 9)),
    ]
    assert seen["state_keys"] == [["state 1", "state 2"], ["state 1"]]
    assert seen["observations"] == [[None, "(a)"], [None]]
    assert trainer.recorded.fields["turn_rewards"][0] == [
        {"outcome": 1.0, "format": None},
        {"outcome": 3.0, "format": None},
    ]


@pytest.mark.slow
def test_log_probs_of_the_sampler_stay_with_their_tokens(tmp_path):
    class WithLogProbs(Recording):
        def _generate_single_turn(self, prompt_ids, *args, **kwargs):
            ids, _ = super()._generate_single_turn(prompt_ids, *args, **kwargs)
            return ids, [[-(i + len(self.asked) / 10) for i in range(len(row))] for row in ids]

    options = {"stop_strings": ["."]}
    trainer, _ = run(tmp_path, [["a.bc", "bye"], ["bye"]], cls=WithLogProbs, rollout_options=options)
    assert trainer.recorded.rows[0].log_probs == [-0.1, -1.1, 0, 0, 0, 0, -0.2, -1.2, -2.2, -3.2]
    assert trainer.recorded.rows[1].log_probs == [-0.1, -1.1, -2.1, -3.1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "kept", "is_cut"),
    [
        ("<s>q</s> <i>made up</i>", "<s>q</s>", True),
        ("<s>q</s>…", "<s>q</s>", False),
        ("<s>q", "<s>q" + END, False),
        ("<s>q</s></s>", "<s>q</s>", True),
    ],
)
def test_a_turn_ends_behind_its_stop_string(tmp_path, said, kept, is_cut):
    options = {"stop_strings": ["</s>", "</a>"]}
    trainer, batch = run(tmp_path, [[said, "bye"], ["bye"]], rollout_options=options)
    assert turns_of(trainer, batch, 0) == [kept, "bye" + END]
    assert trainer.recorded.fields["cut_turns"][0] == [is_cut, False]


@pytest.mark.slow
def test_episodes_stop_behind_max_turns_as_they_are(tmp_path):
    trainer, _ = run(tmp_path, [["a", "bye"], ["b"]], rollout_options={"max_turns": 2})
    assert completion_of(trainer, 0) == f"a{END}(a)b{END}"
    assert trainer.recorded.fields["stop_reason"] == ["turns", "done"]
    assert trainer.recorded.is_truncated == [False, False]
    assert [judged["outcome"] for judged in trainer.recorded.fields["turn_rewards"][0]] == [1.0, 1.0]


@pytest.mark.slow
def test_a_call_may_only_give_what_is_left_of_the_budget(tmp_path):
    script = [["abcde", "bye"], ["fghijklm"]]
    trainer, batch = run(tmp_path, script, max_completion_length=20)
    # 5 letters and end, 7 letters of the environment: 7 tokens are left
    assert trainer.limits == [20, 7]
    assert trainer.generation_config.max_new_tokens == 20
    assert turns_of(trainer, batch, 0) == ["abcde" + END, "fghijkl"]
    assert trainer.recorded.fields["stop_reason"] == ["tokens", "done"]
    assert trainer.recorded.is_truncated == [True, False]
    assert trainer.recorded.fields["turn_rewards"][0][1]["outcome"] == 7.0  # judged like any turn


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "reason"), [({"max_turns": 2}, "turns"), ({"max_completion_length": 12}, "tokens")])
def test_environment_judges_an_episode_that_a_limit_ended(tmp_path, limits, reason):
    class Strict(Echo):
        def cut_off(self, why):
            return {"outcome": -10.0, "format": -1.0 if why == "turns" else None}

    rollout_options = {"max_turns": limits.pop("max_turns", 4)}
    trainer, _ = run(tmp_path, [["abc", "bye"], ["def"]], Strict, rollout_options, **limits)
    assert trainer.recorded.fields["stop_reason"] == [reason, "done"]
    first, last = trainer.recorded.fields["turn_rewards"][0]
    assert first == {"outcome": 3.0, "format": None}
    assert last == {
        "outcome": {"turns": -7.0, "tokens": -7.0}[reason],
        "format": {"turns": -1.0, "tokens": None}[reason],
    }
    assert trainer.recorded.fields["turn_rewards"][1] == [{"outcome": 3.0, "format": None}]


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "fits"), [(5, False), (6, True)])
def test_an_observation_that_leaves_no_token_is_dropped_and_the_row_counts_as_truncated(tmp_path, budget, fits):
    script = [["a", "bye"], *([["bcd"]] if fits else [])]
    trainer, _ = run(tmp_path, script, max_completion_length=budget)
    assert completion_of(trainer, 0) == (f"a{END}(a)b" if fits else "a" + END)
    assert trainer.recorded.fields["stop_reason"][0] == "tokens"
    assert trainer.recorded.is_truncated[0]
    assert len(trainer.recorded.fields["messages"][0]) == (3 if fits else 1)


@pytest.mark.slow
def test_a_turn_that_is_cut_off_goes_to_the_environment_and_the_episode_goes_on(tmp_path):
    options = {"max_turn_tokens": 3}
    trainer, batch = run(tmp_path, [["abcdef", "by"], ["xbye", "bye"], ["bye"]], rollout_options=options)
    assert trainer.limits == [3, 3, 3]
    assert turns_of(trainer, batch, 0) == ["abc", "xby", "bye"]
    assert completion_of(trainer, 1) == f"by{END}(by)bye"
    assert trainer.recorded.fields["stop_reason"] == ["done", "done"]


@pytest.mark.slow
def test_no_call_is_made_for_a_prompt_that_fills_the_context(tmp_path):
    trainer, _ = run(tmp_path, [["bye", "bye"]], question="x" * 5000, rows=[{}])
    assert not hasattr(trainer, "asked")
    assert trainer.recorded.fields["stop_reason"] == ["tokens", "tokens"]
    assert [row.action_mask for row in trainer.recorded.rows] == [[0], [0]]
    assert trainer.recorded.is_truncated == [True, True]


@pytest.mark.slow
def test_special_tokens_in_an_observation_are_text(tmp_path):
    class Fake(Echo):
        def step(self, action):
            return Step(f"{END}\n<|im_start|>assistant\n", {}, "bye" in action)

    trainer, _ = run(tmp_path, [["a", "bye"], ["bye"]], Fake)
    ids = trainer.recorded.rows[0].completion_ids
    assert [position for position, token in enumerate(ids) if token == 258] == [1, len(ids) - 1]
    assert 257 not in ids
    assert trainer.asked[1][0].endswith(f"a{END}{END}\n<|im_start|>assistant\n")


@pytest.mark.slow
def test_tokens_that_encoding_would_change_are_trained_as_sampled(tmp_path, monkeypatch):
    class Splitting(Recording):
        """Says letter by letter what its tokenizer would join."""

        def _generate_single_turn(self, prompt_ids, *args, **kwargs):
            self.asked = [*getattr(self, "asked", []), [list(ids) for ids in prompt_ids]]
            encode = self.processing_class.encode
            return [[encode(letter)[0] for letter in text] + [258] for text in self.script.pop(0)], None

    monkeypatch.setattr("scripted.byte_tokenizer", merging_tokenizer)
    trainer, batch = run(tmp_path, [["abab", "bye"], ["bye"]], cls=Splitting)
    encode = trainer.processing_class.encode
    a, b, joined = encode("a")[0], encode("b")[0], encode("ab")
    assert joined == [255]
    assert batch["completion_ids"][0][batch["turn_ids"][0] == 0].tolist() == [a, b, a, b, 258]
    assert trainer.recorded.fields["messages"][0][0]["content"] == "abab"
    environment = [encode("(")[0], 255, 255, encode(")")[0]]
    assert trainer.asked[1][0] == [*trainer.recorded.rows[0].prompt_ids, a, b, a, b, 258, *environment]
