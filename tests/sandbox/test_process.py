import logging

from acpo_trl.sandbox import ProcessSandbox


def test_it_says_at_its_start_what_it_does_not_cover(caplog):
    with caplog.at_level(logging.WARNING):
        ProcessSandbox()
    assert "does not isolate" in caplog.text
    for risk in ("every file", "network", "signal", "outlive"):
        assert risk in caplog.text
