"""The tokenizer, checked before the weights are read."""

import pytest
from transformers import AutoTokenizer
from trl import ModelConfig

from acpo_trl import ACPOConfig
from acpo_trl.cli.model import load_processor, model_init_kwargs


@pytest.fixture
def config(tmp_path):
    return ACPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False)


@pytest.fixture
def saved_tokenizer(model_dir, tmp_path):
    """Save the tiny model's tokenizer without the named special tokens and give its folder."""

    def save(*missing):
        tokenizer = AutoTokenizer.from_pretrained(model_dir)
        for name in missing:
            setattr(tokenizer, name, None)
        tokenizer.save_pretrained(tmp_path / "tokenizer")
        return str(tmp_path / "tokenizer")

    return save


def test_tokenizer_pads_on_the_left(model_dir):
    tokenizer = load_processor(model_dir, None, False)
    assert tokenizer(["1", "22"], padding=True)["attention_mask"] == [[0, 1], [1, 1]]


def test_missing_pad_token_is_announced(saved_tokenizer, caplog):
    tokenizer = load_processor(saved_tokenizer("pad_token"), None, False)
    assert tokenizer.pad_token is None  # TRL's trainer sets it
    assert "has no pad token: '<|im_end|>' pads" in caplog.text


@pytest.mark.parametrize("missing", [["eos_token"], ["eos_token", "pad_token"]])
def test_tokenizer_without_eos_is_refused(saved_tokenizer, missing):
    with pytest.raises(ValueError, match="has no eos token, so no completion could end"):
        load_processor(saved_tokenizer(*missing), None, False)


def test_missing_model_is_named():
    with pytest.raises(ValueError, match="model_name_or_path None: there is no model"):
        load_processor(None, None, False)
    with pytest.raises(ValueError, match="model_name_or_path '/absent/model': no tokenizer could be loaded"):
        load_processor("/absent/model", None, False)


def test_init_kwargs_of_the_config_win(config):
    config.model_init_kwargs = {"dtype": "float16", "use_cache": False}
    assert model_init_kwargs(ModelConfig(dtype="bfloat16"), config) == {
        "revision": "main",
        "trust_remote_code": False,
        "attn_implementation": None,
        "dtype": "float16",
        "use_cache": False,
    }
