"""Prompts for base and chat models."""

import pytest
from shared import shared_file
from tiny import byte_tokenizer
from transformers import AutoTokenizer

from acpo_trl.evaluation.benchmarks import BENCHMARKS, Benchmark, Problem
from acpo_trl.evaluation.prompts import PromptStyle, make_prompts, messages_of

PLAIN = Benchmark(
    "plain",
    template="{problem}\nUse \\boxed{{}}.",
    text_template="Q: {problem}\nA:",
    few_shot=({"problem": "1+1?", "response": "\\boxed{2}"}, {"problem": "1+2?", "response": "\\boxed{3}"}),
)
PROBLEM = Problem("p", "Is {x} in {1, 2}?", {"answer": "yes"})


def base_tokenizer():
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = None
    return tokenizer


def prompt_of(tokenizer, benchmark=PLAIN, problem=PROBLEM, **style):
    (prompt,) = make_prompts(benchmark, [problem], tokenizer, PromptStyle(**style))
    return prompt


def test_base_model_continues_text_and_braces_of_the_problem_stay():
    tokenizer = base_tokenizer()
    prompt = prompt_of(tokenizer)
    assert prompt.text == tokenizer.decode(prompt.ids) == "Q: Is {x} in {1, 2}?\nA:"
    assert prompt.problem_id == "p" and not prompt.is_thinking


def test_examples_stand_before_the_problem_in_text():
    prompt = prompt_of(base_tokenizer(), num_examples=2)
    assert prompt.text == "Q: 1+1?\nA: \\boxed{2}\n\nQ: 1+2?\nA: \\boxed{3}\n\nQ: Is {x} in {1, 2}?\nA:"


def test_chat_model_reads_messages_with_examples_as_turns():
    style = PromptStyle(system_prompt="Be brief.", num_examples=1)
    assert messages_of(PLAIN, PROBLEM, style) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1+1?\nUse \\boxed{}."},
        {"role": "assistant", "content": "\\boxed{2}"},
        {"role": "user", "content": "Is {x} in {1, 2}?\nUse \\boxed{}."},
    ]


def test_chat_prompt_has_the_ids_that_the_chat_template_gives():
    tokenizer = byte_tokenizer()
    prompt = prompt_of(tokenizer, system_prompt="Be brief.")
    messages = messages_of(PLAIN, PROBLEM, PromptStyle(system_prompt="Be brief."))
    given = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
    assert list(prompt.ids) == given["input_ids"] and prompt.ids[0] == 257


def test_special_tokens_stand_before_text_and_once_before_chat(monkeypatch):
    tokenizer = byte_tokenizer()
    asked = []
    monkeypatch.setattr(
        type(tokenizer),
        "__call__",
        lambda self, text, add_special_tokens: asked.append(add_special_tokens) or {"input_ids": []},
    )
    prompt_of(tokenizer)
    prompt_of(tokenizer, is_chat=False)
    assert asked == [False, True]


def test_arguments_reach_the_chat_template_and_an_open_thinking_block_is_seen():
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = (
        "{{ messages[0]['content'] }}{% if enable_thinking %}<think>\n{% else %}<think>\n</think>\n{% endif %}"
    )
    assert prompt_of(tokenizer, template_kwargs={"enable_thinking": True}).is_thinking
    assert not prompt_of(tokenizer, template_kwargs={"enable_thinking": False}).is_thinking


def test_qwen3_closes_the_thinking_block_when_asked_not_to_think():
    folder = shared_file("data/tokenizers/qwen3_mini")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    silent = prompt_of(tokenizer, template_kwargs={"enable_thinking": False})
    free = prompt_of(tokenizer)
    assert silent.text.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n") and not silent.is_thinking
    assert free.text.endswith("<|im_start|>assistant\n") and not free.is_thinking


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ({"is_chat": True}, "prompt format 'chat': the tokenizer has no chat template"),
        ({"system_prompt": "Be brief."}, "system_prompt 'Be brief.': text has no place"),
        ({"template_kwargs": {"enable_thinking": False}}, "chat template arguments {'enable_thinking': False}"),
        ({"num_examples": 3}, "number of examples 3: benchmark 'plain' has 2"),
        ({"num_examples": -1}, "number of examples -1"),
    ],
)
def test_what_the_model_cannot_read_is_refused(style, message):
    with pytest.raises(ValueError, match=message):
        prompt_of(base_tokenizer(), **style)


@pytest.mark.parametrize("template", ["{question}", "{problem", "{0}", "{problem.x}"])
def test_template_that_cannot_be_filled_is_refused(template):
    with pytest.raises(ValueError, match=r"cannot be filled .*expected names among \['answer', 'problem'\]"):
        prompt_of(byte_tokenizer(), Benchmark("mine", template=template))


def test_pro_prompt_shows_both_problems_and_mbpp_its_tests_one_a_line():
    row = {"raw_problem": "def f(x):", "new_problem": "def g(xs):"}
    text = prompt_of(byte_tokenizer(), BENCHMARKS["humaneval_pro"], Problem("p", "def g(xs):", row)).text
    assert "```python\ndef f(x):\ndef g(xs):\n```" in text
    row = {"test_list": ["assert f(1) == 2", "assert f(2) == 3"]}
    text = prompt_of(base_tokenizer(), BENCHMARKS["mbpp"], Problem("p", "Add one.", row)).text
    assert text.startswith("Add one.\n") and text.endswith("block.\n\n```python\n")
    assert "\nassert f(1) == 2\nassert f(2) == 3\n" in text


def test_humaneval_for_base_models_is_the_bare_prompt():
    assert prompt_of(base_tokenizer(), BENCHMARKS["humaneval"], Problem("p", "def f(x):\n", {})).text == "def f(x):\n"
