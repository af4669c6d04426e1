"""Which checkpoint a run starts from."""

import pytest

from acpo_trl.cli.checkpoint import find_checkpoint


@pytest.fixture
def output_dir(tmp_path):
    """Checkpoints 9 and 10 are complete; the saves of 11 and 12 were interrupted."""
    for step in (9, 10, 11, 12):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-9" / "trainer_state.json").write_text('{"global_step": 9}')
    (tmp_path / "checkpoint-10" / "trainer_state.json").write_text('{"global_step": 10}')
    (tmp_path / "checkpoint-11" / "trainer_state.json").write_text('{"global_st')
    (tmp_path / "checkpoint-best").mkdir()
    return str(tmp_path)


@pytest.mark.parametrize("wanted", [True, "true", "auto", "last", "Auto"])
def test_newest_complete_checkpoint_is_taken_and_broken_ones_are_named(output_dir, wanted, capsys):
    assert find_checkpoint(output_dir, wanted) == f"{output_dir}/checkpoint-10"
    said = capsys.readouterr().out
    assert f"Skipping {output_dir}/checkpoint-12: no readable trainer_state.json" in said
    assert f"Skipping {output_dir}/checkpoint-11" in said
    assert f"Resuming from {output_dir}/checkpoint-10." in said


def test_automatic_resume_starts_afresh_when_there_is_nothing(tmp_path, capsys):
    assert find_checkpoint(str(tmp_path / "new"), "auto") is None
    assert "No complete checkpoint in" in capsys.readouterr().out


def test_named_checkpoint_is_taken(output_dir):
    assert find_checkpoint(output_dir, f"{output_dir}/checkpoint-9") == f"{output_dir}/checkpoint-9"


@pytest.mark.parametrize("name", ["checkpoint-11", "checkpoint-12", "checkpoint-13"])
def test_named_checkpoint_must_be_complete(output_dir, name):
    with pytest.raises(ValueError, match=f"{name}': holds no readable trainer_state.json"):
        find_checkpoint(output_dir, f"{output_dir}/{name}")


@pytest.mark.parametrize("wanted", [None, False, "false", "none"])
def test_fresh_run_into_old_checkpoints_warns(output_dir, wanted, caplog):
    assert find_checkpoint(output_dir, wanted) is None
    assert "already holds checkpoint-12" in caplog.text
    assert "--resume_from_checkpoint auto" in caplog.text


def test_fresh_run_into_a_new_folder_is_silent(tmp_path, caplog, capsys):
    assert find_checkpoint(str(tmp_path), None) is None
    assert caplog.text == "" and capsys.readouterr().out == ""
