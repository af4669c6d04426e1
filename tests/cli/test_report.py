"""`acpo-trl report`."""

import pytest
from recorded import record

from acpo_trl.cli.report import run
from acpo_trl.records import write_records


def report(*arguments):
    run([str(argument) for argument in arguments], "acpo-trl report")


def test_a_page_is_written_beside_the_records_or_where_one_says(tmp_path, capsys):
    write_records(tmp_path / "credit_log", 0, 0, [record()])
    report(tmp_path)
    assert (tmp_path / "credit.html").read_text().startswith("<!doctype html>")
    assert f"{tmp_path / 'credit.html'}: 1 completions" in capsys.readouterr().out
    report(tmp_path, "-o", tmp_path / "other.html")
    assert (tmp_path / "other.html").is_file()


def test_text_goes_to_the_terminal(tmp_path, capsys):
    write_records(tmp_path / "credit_log", 0, 0, [record()])
    report(tmp_path, "--text")
    assert "step 0, random: What is 1 + 1?" in capsys.readouterr().out
    assert not (tmp_path / "credit.html").exists()


def test_the_demo_needs_no_run(tmp_path, capsys):
    report("--demo", "-o", tmp_path / "demo.html")
    assert (tmp_path / "demo.html").is_file()


def test_mistakes_are_told_in_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit, match=r"acpo-trl report: error: .*holds no records of credit"):
        report(tmp_path)
    for arguments in ((), (tmp_path, "--demo")):
        with pytest.raises(SystemExit):
            report(*arguments)
        assert "expected RUN_DIR, or --demo, and not both" in capsys.readouterr().err
