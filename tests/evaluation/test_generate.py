"""What a model says to a batch of prompts."""

import re
from types import SimpleNamespace

import pytest
import torch
from tiny import byte_tokenizer, qwen2

from acpo_trl.evaluation.generate import Sampling, TransformersGenerator, VLLMGenerator, cut_at
from acpo_trl.evaluation.plan import Batch, Request

END = 258


@pytest.fixture(scope="module")
def model():
    return qwen2(seed=3).eval()


def batch_of(*prompts, seed=1):
    return Batch(0, seed, tuple(Request("b", f"p{i}", 0, tuple(text.encode())) for i, text in enumerate(prompts)))


def generator_of(model, **sampling):
    return TransformersGenerator(model, byte_tokenizer(), Sampling(**{"max_new_tokens": 12, **sampling}))


def greedy(model, prompt, limit):
    """One token after the other, of a single prompt without padding."""
    ids = list(prompt.encode())
    said = []
    while len(said) < limit:
        with torch.no_grad():
            said.append(model(torch.tensor([ids + said])).logits[0, -1].argmax().item())
        if said[-1] == END:
            break
    return said


def test_temperature_0_says_the_likeliest_token_each_time_whatever_the_padding(model):
    prompts = ["1+1=", "a much longer prompt than the other: ", "x"]
    responses = generator_of(model)(batch_of(*prompts), ())
    for prompt, response in zip(prompts, responses, strict=True):
        said = greedy(model, prompt, 12)
        whole = said[-1] == END
        assert response.text == byte_tokenizer().decode(said, skip_special_tokens=True)
        assert (response.num_tokens, response.is_truncated) == (len(said) - whole, not whole)


def test_samples_follow_from_the_seed_alone_and_leave_the_random_state_alone(model):
    generate = generator_of(model, temperature=1.0)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = generate(batch_of("1+1=", "2"), ())
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    assert generate(batch_of("1+1=", "2"), ()) == first
    assert generate(batch_of("1+1=", "2", seed=2), ()) != first


def test_defaults_for_sampling_that_lie_with_the_model_count_for_nothing():
    prompts = batch_of("1+1=", "2")
    plain, tuned = qwen2(seed=3).eval(), qwen2(seed=3).eval()
    tuned.generation_config.update(do_sample=True, top_k=1, top_p=0.1, temperature=9.0, repetition_penalty=5.0)
    for temperature in (0.0, 1.0):
        expected = generator_of(plain, temperature=temperature)(prompts, ())
        assert generator_of(tuned, temperature=temperature)(prompts, ()) == expected


def test_a_stop_string_ends_a_response_and_is_cut_off(model):
    (response,) = generator_of(model, max_new_tokens=40)(batch_of("1+1="), ())
    stop = re.search(r"[!-~]{2}", response.text).group()
    (stopped,) = generator_of(model, max_new_tokens=40)(batch_of("1+1="), (stop,))
    assert stopped.text == response.text[: response.text.index(stop)]
    assert not stopped.is_truncated
    assert stopped.num_tokens < 40


def test_every_end_token_of_the_model_ends_a_response():
    model = qwen2(seed=3).eval()
    (free,) = generator_of(model)(batch_of("1+1="), ())
    third = greedy(model, "1+1=", 12)[2]
    model.generation_config.eos_token_id = [third, END]
    (ended,) = generator_of(model)(batch_of("1+1="), ())
    assert ended.num_tokens <= 2 < free.num_tokens
    assert not ended.is_truncated


def test_the_first_stop_string_in_the_text_counts():
    assert cut_at("ab\nQ: cd#", ("#", "\nQ:")) == ("ab", True)
    assert cut_at("abc", ("\nQ:",)) == ("abc", False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens 0: nothing could be said"),
        ({"max_new_tokens": 2.5}, "max_new_tokens 2.5"),
        ({"temperature": -0.1}, "temperature -0.1: expected 0"),
        ({"temperature": float("nan")}, "temperature nan: expected 0"),
        ({"temperature": float("inf")}, "temperature inf: expected 0"),
        ({"top_p": 0.0}, "top_p 0.0: expected a share"),
    ],
)
def test_sampling_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**options)


def test_vllm_gets_prompt_ids_and_a_seed_for_each_request():
    asked = {}

    def generate(prompts, params, use_tqdm, lora_request):
        asked.update(prompts=prompts, params=params, lora=lora_request)
        said = SimpleNamespace(text="four", token_ids=[1, 2, 3], finish_reason="length")
        return [SimpleNamespace(outputs=[said])] * len(prompts)

    engine, sampling = SimpleNamespace(generate=generate), Sampling(12, 0.6, 0.9)
    responses = VLLMGenerator(engine, sampling, dict, lora="adapter")(batch_of("2", "3", seed=2**63 - 1), ("\n",))
    assert responses == [("four", 3, True)] * 2
    assert asked["prompts"] == [{"prompt_token_ids": [50]}, {"prompt_token_ids": [51]}]
    assert [params["seed"] for params in asked["params"]] == [2**63 - 1, 0]
    assert asked["params"][0] == {
        "temperature": 0.6,
        "top_p": 0.9,
        "max_tokens": 12,
        "seed": 2**63 - 1,
        "stop": ["\n"],
    }
    assert asked["lora"] == "adapter"
