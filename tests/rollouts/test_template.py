"""What the chat template does to earlier turns is found out before it costs a run."""

import copy
from types import SimpleNamespace

import pytest
from shared import shared_file
from tiny import byte_tokenizer
from tokenizers import processors
from transformers import AutoTokenizer
from trl import GRPOTrainer
from trl import chat_template_utils as templates

from acpo_trl.rollouts import check_template, suffix_ids
from acpo_trl.trainer.template_check import template_advice

BYTES = byte_tokenizer()


@pytest.fixture(scope="module")
def qwen3():
    return AutoTokenizer.from_pretrained(shared_file("data/tokenizers/qwen3_mini"))


@pytest.mark.parametrize(
    ("template", "rewritten_before", "drops_thinking", "opens_thinking"),
    [
        ("qwen3", ("user", "tool"), True, False),
        ("qwen3_training", (), False, False),
        ("qwen3_5_think", ("user",), True, True),
        ("qwen3_5_think_training", (), False, True),
        ("qwen3_instruct_2507", (), False, False),
        ("qwen2_5", (), False, False),
    ],
)
def test_check_says_what_the_template_does(qwen3, template, rewritten_before, drops_thinking, opens_thinking):
    check = check_template(qwen3, chat_template=getattr(templates, f"{template}_chat_template"))
    assert check.rewritten_before == rewritten_before
    assert check.drops_thinking == drops_thinking
    assert check.opens_thinking == opens_thinking
    assert check.keeps_turns == (check.problem is None) == (not rewritten_before)
    assert (check.adds_bos, check.end_of_turn) == (False, "<|im_end|>")


def test_warning_names_the_template_to_use_instead(qwen3):
    tokenizer = copy.deepcopy(qwen3)
    tokenizer.chat_template = templates.qwen3_chat_template
    advice = template_advice(tokenizer)
    assert "rewrites earlier turns and drops their thinking when a message of role user or tool follows" in advice
    assert advice.endswith("TRL's is trl.chat_template_utils.qwen3_training_chat_template.")
    assert template_advice(tokenizer, chat_template=templates.qwen3_training_chat_template) is None
    assert template_advice(BYTES) is None


def test_warning_says_so_if_trl_has_no_such_template():
    forgetful = byte_tokenizer()
    forgetful.chat_template = BYTES.chat_template.replace(
        "{{ message['content'] }}", "{{ message['content'] if loop.last or message.role != 'assistant' }}"
    )
    assert template_advice(forgetful).endswith("TRL has none for this tokenizer.")


def test_bos_of_the_tokenizer_is_seen_and_not_in_what_follows_a_turn():
    tokenizer = byte_tokenizer()
    tokenizer.bos_token = "<|im_start|>"
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 257)]
    )
    assert check_template(tokenizer).adds_bos
    assert not check_template(BYTES).adds_bos
    ids = suffix_ids(tokenizer, [{"role": "user", "content": "u"}])
    assert tokenizer.decode(ids) == "\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n"


def test_template_without_end_of_turn_is_refused():
    with pytest.raises(ValueError, match="no special token ends the turn"):
        check_template(BYTES, chat_template="{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")


@pytest.mark.parametrize("results", [["r"], ["r1", "r2\n"]])
def test_suffix_of_tool_results_is_that_of_trl(qwen3, results):
    messages = [{"role": "tool", "name": "f", "content": result} for result in results]
    trainer = SimpleNamespace(
        processing_class=qwen3,
        _tokenizer=qwen3,
        _is_vlm=False,
        chat_template=templates.qwen3_training_chat_template,
        chat_template_kwargs={},
    )
    expected = GRPOTrainer._get_tool_suffix_ids(trainer, messages)
    assert suffix_ids(qwen3, messages, chat_template=trainer.chat_template) == expected
    assert suffix_ids(qwen3, messages) == expected  # the stock template, which TRL cannot use for this


def test_suffix_of_user_messages_and_of_none(qwen3):
    users = [{"role": "user", "content": "u"}, {"role": "system", "content": "<|im_end|>"}]
    ids = suffix_ids(qwen3, users)
    assert qwen3.decode(ids) == (
        "\n<|im_start|>user\nu<|im_end|>\n<|im_start|>system\n<|im_end|><|im_end|>\n<|im_start|>assistant\n"
    )
    assert ids.count(qwen3.eos_token_id) == 2
    assert qwen3.decode(suffix_ids(qwen3, [])) == "\n<|im_start|>assistant\n"
    closed = suffix_ids(qwen3, [], enable_thinking=False)
    assert qwen3.decode(closed) == "\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
