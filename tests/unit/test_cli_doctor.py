"""What doctor says where a whole machine would be needed to see it."""

from pathlib import Path

import pytest

from longboat.cli import doctor
from longboat.cli.doctor import Finding, Verdict, examine


def data(home: Path, monkeypatch: pytest.MonkeyPatch) -> Finding:
    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(home))
    return next(each for each in examine(home) if each.subject == "data")


def test_a_disk_that_is_nearly_full_is_said_to_be_so_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data(tmp_path, monkeypatch).verdict is Verdict.OK
    monkeypatch.setattr(doctor, "LOW_DISK", 1 << 62)
    found = data(tmp_path, monkeypatch)
    assert found.verdict is Verdict.WRONG
    assert found.detail.endswith("GB free: too little. Make room, or set LONGBOAT_DATA_DIR to another place.")
