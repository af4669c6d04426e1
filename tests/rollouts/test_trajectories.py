"""Every trajectory of the shared data loads, exactly."""

import gzip
import json
import time
from unicodedata import normalize

import pytest
from shared import shared_file
from transformers import AutoTokenizer

from acpo_trl.rollouts import episode_from_messages

pytestmark = pytest.mark.slow

# file -> rows, turns, rows of which the stock template leaves out part of an earlier turn
FILES = {
    "agentprocessbench_hotpotqa": (105, 274, 16),
    "math_python_tools": (18, 56, 0),
    "react_hotpotqa": (45, 171, 0),
    "tau_bench_airline": (72, 868, 0),
    "wiki_search_tools": (122, 589, 0),
    "wordle": (16, 75, 0),
}


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qwen3")
    packed = shared_file("data/tokenizers/qwen3/tokenizer.json.gz")
    (folder / "tokenizer.json").write_bytes(gzip.decompress(packed.read_bytes()))
    (folder / "tokenizer_config.json").write_bytes(packed.with_name("tokenizer_config.json").read_bytes())
    return AutoTokenizer.from_pretrained(folder)


def answer_of(message):
    """What the assistant wrote, in Qwen3's form."""
    calls = [call["function"] for call in message.get("tool_calls") or []]
    form = '<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
    return "\n".join(([message["content"]] if message["content"] else []) + [form.format(**call) for call in calls])


def rest_of(messages):
    """What stands around the answers, in Qwen3's form, from the end of the prompt on."""
    pieces, text, previous = [], "", None
    for message in messages:
        if previous == "tool" and message["role"] != "tool":
            text += "<|im_end|>"
        if message["role"] == "assistant":
            text += "\n<|im_start|>assistant\n"
            text += "" if "</think>" in message["content"] else "<think>\n\n</think>\n\n"
            pieces, text = [*pieces, text], ""
        elif message["role"] == "tool":
            text += "" if previous == "tool" else "\n<|im_start|>user"
            text += f"\n<tool_response>\n{message['content']}\n</tool_response>"
        else:
            text += f"\n<|im_start|>{message['role']}\n{message['content']}<|im_end|>"
        previous = message["role"]
    text += "<|im_end|>" if previous == "tool" else ""
    return [pieces[0].removeprefix("\n<|im_start|>assistant\n"), *pieces[1:], text + "\n" * bool(text)]


@pytest.mark.parametrize("name", FILES)
def test_actions_are_what_the_assistant_wrote_and_nothing_else_is(name, qwen3, capsys):
    began, dropped, turns, actions, tokens = time.perf_counter(), 0, 0, 0, 0
    with gzip.open(shared_file(f"data/trajectories/{name}.jsonl.gz"), "rt") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        kwargs = {"chat_template_kwargs": {"tools": row.get("tools")}}
        try:
            episode = episode_from_messages(row["messages"], qwen3, **kwargs)
        except ValueError as error:
            assert "leaves out" in str(error)
            assert any("</think>" in message["content"] for message in row["messages"][:-1])
            episode = episode_from_messages(row["messages"], qwen3, keep_dropped=True, **kwargs)
            dropped += 1
        answers = [answer_of(message) for message in episode.messages if message["role"] == "assistant"]
        written = [qwen3.decode(turn.token_ids) for turn in episode.turns]
        assert written == [answer + "<|im_end|>" for answer in answers], row["id"]
        assert [i for i, m in zip(episode.completion_ids, episode.action_mask, strict=True) if m] == [
            i for turn in episode.turns for i in turn.token_ids
        ]
        rest, *others = rest_of(episode.messages)
        expected = rest + "".join(a + "<|im_end|>" + other for a, other in zip(answers, others, strict=True))
        # the tokenizer normalises what others say; what the policy wrote is compared above, to the letter
        assert qwen3.decode(episode.completion_ids) == normalize("NFC", expected), row["id"]
        turns, actions, tokens = (
            turns + len(answers),
            actions + sum(episode.action_mask),
            tokens + len(episode.turn_ids),
        )
    seconds = time.perf_counter() - began
    with capsys.disabled():
        print(
            f"\n{name}: {len(rows)} episodes, {turns} turns, {actions} action tokens of {tokens}, "
            f"{dropped} with text that the template drops, {seconds:.1f} s"
        )
    assert (len(rows), turns, dropped) == FILES[name]
    assert seconds < 10
