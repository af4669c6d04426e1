"""ACPOConfig: defaults, and settings refused or warned about before anything is loaded."""

import dataclasses

import pytest
from trl import GRPOConfig
from trl.scripts.utils import TrlParser

from acpo_trl import ACPOConfig
from acpo_trl.trainer.choices import gate_of


def config(tmp_path, **kwargs):
    return ACPOConfig(str(tmp_path), use_cpu=True, bf16=False, report_to="none", **kwargs)


def test_defaults_are_those_of_grpo_plus_acpo(tmp_path):
    ours = config(tmp_path)
    theirs = GRPOConfig(str(tmp_path), use_cpu=True, bf16=False, report_to="none")
    assert (ours.credit_rule, ours.credit_mix, ours.credit_normalization) == ("acpo", 1.0, "none")
    assert ours.on_reward_error == "raise"
    for field in dataclasses.fields(GRPOConfig):
        if field.name not in ("logging_dir", "distributed_state"):
            assert str(getattr(ours, field.name)) == str(getattr(theirs, field.name)), field.name


def test_every_own_field_has_help():
    own = {f.name for f in dataclasses.fields(ACPOConfig)} - {f.name for f in dataclasses.fields(GRPOConfig)}
    assert own == {"ratio"} | {"credit_rule", "credit_mix", "credit_normalization", "on_reward_error"} | {
        "turn_estimator",
        "turn_estimator_options",
        "credit_log",
        "watches",
        "watch_options",
        "watch_stop",
        "kinds",
        "kind_estimators",
        "critic_options",
        "belief_options",
        "dynamic_sampling",
    }
    assert all(f.metadata["help"] for f in dataclasses.fields(ACPOConfig) if f.name in own)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"credit_rule": "acop"}, "did you mean 'acpo'"),
        ({"credit_rule": "no_such_package.rule"}, "cannot be imported"),
        ({"credit_rule": "math.no_such_rule"}, "cannot be imported"),
        ({"credit_rule": "math.pi"}, "credit_rule 'math.pi': is no function"),
        ({"num_iterations": 0}, "num_iterations 0"),
        ({"loss_type": "sapo", "sapo_temperature_pos": 0.0}, "sapo_temperature_pos 0.0"),
        ({"loss_type": "sapo", "sapo_temperature_neg": -1.0}, "sapo_temperature_neg -1.0"),
        ({"ratio": "sequence"}, "ratio 'sequence': no such ratio"),
        ({"ratio": "gspo"}, "ratio 'gspo' with credit_rule 'acpo'.*set ratio='gspo_token'"),
        ({"ratio": "gspo", "credit_rule": "uniform", "turn_estimator": "outcome"}, "turn_estimator 'outcome': the"),
        ({"ratio": "token", "importance_sampling_level": "sequence"}, "they differ; leave one of them out"),
        ({"kinds": "sum"}, "kinds 'sum': no such treatment"),
        ({"kinds": "mixed"}, "kinds 'mixed': there is no turn_estimator"),
        ({"kinds": "gdpo", "turn_estimator": "outcome"}, "turn_estimator 'outcome': nothing would use it"),
        ({"kind_estimators": {"cost": "local"}}, "kind_estimators {'cost': 'local'}: nothing would use it"),
        ({"turn_estimator": "outcome", "kind_estimators": {"outcome": "local"}}, "kind_estimators has 'outcome'"),
        ({"turn_estimator": "outcome", "kind_estimators": {"cost": "locl"}}, "kind_estimators of cost 'locl': no such"),
        (
            {"turn_estimator": "outcome", "kind_estimators": {"cost": {"name": "local", "x": 1}}},
            "unexpected keyword argument 'x'",
        ),
        ({"credit_mix": 1.5}, "credit_mix 1.5"),
        ({"credit_mix": float("nan")}, "credit_mix nan"),
        ({"credit_normalization": "batch"}, "credit_normalization 'batch'"),
        ({"loss_type": "dappo"}, "loss_type 'dappo'"),
        ({"credit_rule": "acpo_live", "loss_type": "cispo"}, "set credit_rule='acpo'"),
        ({"credit_rule": "acpo_live", "loss_type": "vespo"}, "set credit_rule='acpo'"),
        (
            {"num_generations": 3, "per_device_train_batch_size": 4},
            r"divisible by num_generations .* change one of these",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_with_the_option_named(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        config(tmp_path, **settings)


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"loss_type": "dapo"}, "leaks through clipped ratios"),
        ({"loss_type": "sapo", "num_iterations": 2}, "can change sign"),
    ],
)
def test_live_credit_is_warned_about_where_it_works_against_itself(tmp_path, caplog, settings, warning):
    config(tmp_path, credit_rule="acpo_live", **settings)
    assert warning in caplog.text


def test_live_credit_on_policy_under_sapo_is_not_warned_about(tmp_path, caplog):
    config(tmp_path, credit_rule="acpo_live", loss_type="sapo")
    assert "credit_rule" not in caplog.text


def test_a_dotted_path_is_a_rule(tmp_path):
    assert config(tmp_path, credit_rule="acpo_trl.credit.acpo.uniform").credit_rule == "acpo_trl.credit.acpo.uniform"


def test_gate_follows_the_loss(tmp_path):
    assert gate_of(config(tmp_path, loss_type="dapo")) == (1.0, 1.0)
    assert gate_of(config(tmp_path, loss_type="sapo")) == (2.0, 2 / 1.05)


def test_parser_reads_own_fields_from_yaml_and_rejects_unknown_keys(tmp_path):
    good = tmp_path / "good.yaml"
    good.write_text(f"output_dir: {tmp_path}\nuse_cpu: true\nbf16: false\ncredit_rule: uniform\ncredit_mix: 0.5\n")
    (parsed,) = TrlParser([ACPOConfig]).parse_args_and_config(["--config", str(good)])
    assert (parsed.credit_rule, parsed.credit_mix) == ("uniform", 0.5)
    bad = tmp_path / "bad.yaml"
    bad.write_text(f"output_dir: {tmp_path}\nuse_cpu: true\nbf16: false\ncredit_rul: uniform\n")
    with pytest.raises(ValueError, match="credit_rul"):
        TrlParser([ACPOConfig]).parse_args_and_config(["--config", str(bad)])
