"""Turns of TRL's tool loop: right masks, right turn ids, right counts; the contract is checked on every batch."""

import pytest
import torch
from scripted import Scripted, call, double, scripted_trainer

from acpo_trl.rollouts.check import RolloutError


def broken(x: int) -> int:
    """
    Fail.

    Args:
        x: The number.
    """
    raise RuntimeError(f"no {x}")


def long(n: int) -> str:
    """
    Say a lot.

    Args:
        n: How many letters.
    """
    return "a" * n


TOOLS = [double, broken, long]


def run(tmp_path, script, **options):
    trainer = scripted_trainer(tmp_path, script, **{"tools": TOOLS, **options})
    trainer.train()
    (batch,) = trainer.batches
    return trainer, batch


def turns_of(trainer, batch, row):
    """Decoded text of each turn of a row, by turn id."""
    ids, turn_ids = batch["completion_ids"][row], batch["turn_ids"][row]
    return [trainer.processing_class.decode(ids[turn_ids == turn]) for turn in range(trainer.recorded.num_turns[row])]


@pytest.mark.slow
def test_rows_with_different_turn_counts_keep_their_own_turns(tmp_path):
    script = [[call("double", x=21), "I know: 42"], [call("double", x=4)], ["It is 8"]]
    trainer, batch = run(tmp_path, script)
    assert trainer.recorded.num_turns == [3, 1]
    assert turns_of(trainer, batch, 0) == [
        call("double", x=21) + "<|im_end|>",
        call("double", x=4) + "<|im_end|>",
        "It is 8<|im_end|>",
    ]
    assert turns_of(trainer, batch, 1) == ["I know: 42<|im_end|>"]
    mask = (batch["completion_mask"] * batch["tool_mask"]).bool()
    assert torch.equal(batch["turn_ids"] >= 0, mask)


@pytest.mark.slow
def test_views_carry_calls_and_results(tmp_path):
    trainer, _ = run(tmp_path, [["", "think " + call("double", x=21)], ["done"]])
    (empty,), (first, last) = trainer.recorded.views
    assert empty.text == ""
    assert first.tool_calls == [{"name": "double", "arguments": {"x": 21}}]
    assert (first.results, last.text) == (["42"], "done")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "results"),
    [
        (call("double", x=1) + "\n" + call("double", x=2), ["2", "4"]),
        (call("halve", x=1), ["{'error': 'Tool halve not found.'}"]),
        (call("broken", x=1), ["{'error': 'no 1'}"]),
    ],
    ids=["parallel", "unknown", "exception"],
)
def test_results_of_a_call_are_environment_tokens_of_one_border(tmp_path, text, results):
    trainer, batch = run(tmp_path, [[text, "x"], ["so"]])
    assert trainer.recorded.num_turns == [2, 1]
    assert trainer.recorded.views[0][0].results == results
    assert turns_of(trainer, batch, 0) == [text + "<|im_end|>", "so<|im_end|>"]
    environment = batch["completion_ids"][0][(batch["turn_ids"][0] < 0) & batch["completion_mask"][0].bool()]
    shown = trainer.processing_class.decode(environment)
    assert all(f"<tool_response>\n{result}\n</tool_response>" in shown for result in results)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ['<tool_call>\n{"name": "double", "arg\n</tool_call>', '<tool_call>{"name": "double"…']
)
def test_call_that_cannot_be_read_is_an_invalid_last_turn(tmp_path, text):
    trainer, batch = run(tmp_path, [[text, "x"]])
    assert trainer.recorded.num_turns == [1, 1]
    assert turns_of(trainer, batch, 0)[0].startswith("<tool_call>")
    assert trainer.state.log_history[0]["turns/invalid"] == 0.5


@pytest.mark.slow
def test_result_that_does_not_fit_is_taken_back_and_the_row_counts_as_truncated(tmp_path):
    script = [[call("long", n=500), "short"]]
    trainer, batch = run(tmp_path, script)
    assert trainer.recorded.num_turns == [1, 1]
    assert trainer.recorded.is_truncated == [True, False]
    assert trainer.recorded.stop_reasons == ["tokens", "done"]
    assert "a" * 20 not in trainer.processing_class.decode(batch["completion_ids"][0])
    trainer, batch = run(tmp_path, script, mask_truncated_completions=True)
    assert batch["completion_mask"].sum(1).tolist() == [0, len("short") + 1]
    assert batch["num_items_in_batch"] == len("short") + 1
    assert batch["turn_ids"][0].max() == 0  # what was a turn stays one


@pytest.mark.slow
def test_call_behind_the_last_allowed_one_is_not_truncation(tmp_path):
    script = [[call("double", x=1), "x"], [call("double", x=2)]]
    trainer, _ = run(tmp_path, script, max_tool_calling_iterations=1)
    assert trainer.recorded.num_turns == [2, 1]
    assert trainer.recorded.is_truncated == [False, False]
    log = trainer.state.log_history[0]
    assert (log["turns/stop/turns"], log["turns/stop/done"], log["turns/stop/tokens"]) == (0.5, 0.5, 0.0)


@pytest.mark.slow
def test_last_turn_without_room_for_a_token_is_a_turn(tmp_path):
    first = call("double", x=21)
    full = len(f"{first}#") + len("\n<|im_start|>user\n<tool_response>\n42\n</tool_response>") - len("<|im_start|>")
    full += 1 + len("#\n<|im_start|>assistant\n") - len("<|im_start|>") + 1
    trainer, batch = run(tmp_path, [[first, "x"], ["none of this fits"]], max_completion_length=full)
    assert trainer.recorded.num_turns == [2, 1]
    assert turns_of(trainer, batch, 0) == [first + "<|im_end|>", ""]
    start, end = trainer.recorded.views[0][1].span
    assert start == end
    assert batch["completion_ids"].size(1) == full


@pytest.mark.slow
def test_last_turn_is_cut_at_the_limit(tmp_path):
    trainer, batch = run(tmp_path, [["short", call("double", x=21)], ["a" * 400]], max_completion_length=200)
    text = turns_of(trainer, batch, 1)[1]
    assert set(text) == {"a"}
    assert batch["completion_ids"].size(1) == 200


def test_metrics_count_turns_tokens_and_calls(tmp_path):
    script = [[call("double", x=21), "I know: 42"], [call("double", x=4)], ["It is 8"]]
    trainer, batch = run(tmp_path, script)
    log = trainer.state.log_history[0]
    assert (log["turns/count/mean"], log["turns/count/min"], log["turns/count/max"]) == (2, 1, 3)
    assert (log["turns/share/1"], log["turns/share/2"], log["turns/share/3_5"], log["turns/share/6_15"]) == (
        0.5,
        0,
        0.5,
        0,
    )
    actions = (batch["turn_ids"] >= 0).sum().item()
    assert log["turns/tokens"] == actions / 4
    assert log["turns/action_share"] == pytest.approx(actions / batch["completion_mask"].sum().item())
    assert log["tools/calls"] == 1.0
    assert log["tools/name_entropy"] == 0.0
    assert log["tools/argument_entropy"] == pytest.approx(0.6931, abs=1e-4)
    assert log["turns/invalid"] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda ids, mask: (ids, [[*mask[0][:3], 0, *mask[0][4:]], mask[1]]),
            "completion 0, position 3: turn 0 would train .*but the policy sampled",
        ),
        (lambda ids, mask: (ids, [mask[0], [*mask[1][:-1], 0]]), "completion 1, position .: turn 0 would train"),
        (
            lambda ids, mask: ([[*ids[0][:2], 65, *ids[0][3:]], ids[1]], mask),
            r"completion 0, position 2: turn 0 would train \[65",
        ),
        (
            lambda ids, mask: ([ids[0], [*ids[1], 65]], [mask[0], [*mask[1], 1]]),
            "completion 1, position .*: turn 0 would train",
        ),
        (lambda ids, mask: (ids, [mask[0][:-1], mask[1]]), "completion 0: length mismatch, .* mask for"),
        (lambda ids, mask: (ids, [mask[0], [2, *mask[1][1:]]]), "completion 1, position 0: mask is 2"),
        (lambda ids, mask: ([[9999, *ids[0][1:]], ids[1]], mask), "completion 0, position 0: id 9999 has no embedding"),
    ],
    ids=["action_masked", "end_masked", "other_id", "added_id", "short_mask", "two", "no_embedding"],
)
def test_broken_contract_stops_the_run_with_row_and_position(tmp_path, change, message):
    class Mutating(Scripted):
        def _tool_call_loop(self, *args):
            mask, completions, ids, *rest = super()._tool_call_loop(*args)
            ids, mask = change(ids, mask)
            return (mask, completions, ids, *rest)

    trainer = scripted_trainer(tmp_path, [[call("double", x=21), "x = 42"], ["done"]], cls=Mutating, tools=TOOLS)
    with pytest.raises((RolloutError, IndexError), match=message):
        trainer.train()


@pytest.mark.slow
def test_run_stops_if_generation_was_not_recorded(tmp_path, monkeypatch):
    from trl import GRPOTrainer

    def generate(self, prompts):
        return [[1]], [[2]], None, ["x"], None, {}, None, []

    monkeypatch.setattr(GRPOTrainer, "_generate", generate)
    trainer = scripted_trainer(tmp_path, [["a", "b"]], tools=TOOLS)
    with pytest.raises(RuntimeError, match="what the policy sampled was not recorded"):
        trainer.train()


def forgets(prompts, trainer):
    raise AssertionError("not called")


@pytest.mark.parametrize(("options", "warns"), [({"rollout_func": forgets}, True), ({"tools": TOOLS}, False)])
def test_template_that_rewrites_earlier_turns_is_named_at_the_start_with_one_that_does_not(
    tmp_path, options, warns, caplog
):
    scripted_trainer(tmp_path, [["a", "b"]], **options)
    assert ("TRL's is trl.chat_template_utils.qwen3_training_chat_template" in caplog.text) is warns


@pytest.mark.slow
def test_row_of_environment_tokens_only_adds_nothing_and_its_reward_counts(make_trainer):
    def rollout(prompts, trainer):
        ids = [[65, 66, 258]] * len(prompts)
        mask = [[1, 1, 1]] * (len(prompts) - 1) + [[0, 0, 0]]
        encoded = trainer.processing_class(text=prompts)["input_ids"]
        return {"prompt_ids": encoded, "completion_ids": ids, "logprobs": None, "env_mask": mask}

    def reward(completions, **columns):
        return [1.0, 2.0, 3.0, 6.0]

    trainer = make_trainer(rollout_func=rollout, reward_funcs=reward, num_generations=4, max_steps=1)
    trainer.train()
    assert trainer.recorded.num_turns == [1, 1, 1, 0]
    assert trainer.state.log_history[0]["reward"] == 3.0
    assert trainer.state.log_history[0]["grad_norm"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"stop_reason": "done"}, "rollout_func returned 'stop_reason' = 'done'; expected a list"),
        ({"stop_reason": ["foo"] * 4}, "completion 0: stop_reason 'foo'; expected one of"),
        ({"turn_ids": None}, "rollout_func returned 'turn_ids' = None"),
        ({"turn_ids": [[0, 0, 0]]}, "one entry for each of the 4"),
        ({"messages": ["x"] * 4}, "completion 0: messages 'x'; expected a list of chat messages"),
        ({"messages": [[{"content": "x"}]] * 4}, "completion 0: messages .*with a role"),
    ],
    ids=lambda value: "".join(value) if isinstance(value, dict) else "",
)
def test_fields_of_a_rollout_that_would_be_read_wrongly_stop_the_run(make_trainer, field, message):
    def rollout(prompts, trainer):
        encoded = trainer.processing_class(text=prompts)["input_ids"]
        return {"prompt_ids": encoded, "completion_ids": [[65, 66, 258]] * 4, "logprobs": None, **field}

    with pytest.raises(RolloutError, match=message):
        make_trainer(rollout_func=rollout, max_steps=1).train()
