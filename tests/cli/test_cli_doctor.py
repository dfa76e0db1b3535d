"""What doctor says where a whole machine would be needed to see it."""

import os
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from longboat.cli import doctor
from longboat.cli.doctor import Finding, Severity, examine
from longboat.config.load import user_config_file
from longboat.installation import install_command
from longboat.models.registry import ProviderInfo
from longboat.tools.sandbox import sandbox, wall


def data(home: Path, monkeypatch: pytest.MonkeyPatch) -> Finding:
    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(home))
    return next(each for each in examine(home) if each.subject == "data")


def test_a_disk_that_is_nearly_full_is_said_to_be_so_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data(tmp_path, monkeypatch).severity is Severity.OK
    monkeypatch.setattr(doctor, "LOW_DISK", 1 << 62)
    found = data(tmp_path, monkeypatch)
    assert found.severity is Severity.WRONG
    assert found.detail.endswith("GB free: too little. Free some space, or set LONGBOAT_DATA_DIR to another directory.")


def test_where_a_provider_comes_from_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(get_args(get_type_hints(ProviderInfo)["source"])) == set(doctor.SOURCES)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    found = next(each for each in examine(tmp_path) if each.subject == "openai")
    assert found.detail == "openai, key set, from the environment"


def wall_told(directory: Path) -> Finding:
    wall.find_wall.cache_clear()
    return next(each for each in examine(directory) if each.subject == "wall")


def test_what_holds_commands_that_run_unasked_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longboat.tools.sandbox.landlock.version", lambda: 1)
    monkeypatch.setattr("longboat.tools.sandbox.seccomp.read_only", lambda *, signals: b"a filter")
    told = wall_told(tmp_path)
    assert (told.severity, told.detail) == (
        Severity.OK,
        "commands that run without asking are read-only, enforced by Landlock",
    )
    monkeypatch.setattr("longboat.tools.sandbox.landlock.version", lambda: 0)
    monkeypatch.setattr(wall, "bubblewrap_lacks", lambda _: "bubblewrap (`bwrap`) is not installed")
    told = wall_told(tmp_path)
    assert told.severity is Severity.NOTE
    assert told.detail.startswith(
        "none: the system has no Landlock, and bubblewrap (`bwrap`) is not installed. Only a "
    )
    wall.find_wall.cache_clear()


def test_a_sandbox_that_is_switched_off_is_worth_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counted as ok because it could be used."""

    def told(mode: str) -> tuple[Severity, str]:
        file = user_config_file(os.environ, Path.home())
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'{{"sandbox": "{mode}"}}')
        found = next(each for each in examine(tmp_path) if each.subject == "sandbox")
        return found.severity, found.detail

    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(sandbox, "examine_sandbox", lambda policy: Usable())
    assert told("auto") == (Severity.OK, '"auto"; available: bubblewrap')
    assert told("off") == (Severity.NOTE, '"off"; available: bubblewrap. To use it, set sandbox to "auto".')


class Usable:
    lack = ""

    def __str__(self) -> str:
        return "bubblewrap"


def test_traces_without_their_packages_are_a_problem_with_the_command_that_solves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> list[tuple[Severity, str]]:
        return [(each.severity, each.detail) for each in examine(tmp_path) if each.subject == "traces"]

    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(tmp_path / "data"))
    assert told() == []
    file = user_config_file(os.environ, Path.home())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"server": {"otel": {"enabled": true}}}')
    assert told() == [(Severity.OK, "OpenTelemetry, without contents")]
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "longboat.runtime.otel")
    ((severity, detail),) = told()
    assert severity is Severity.WRONG
    assert install_command("otel") in detail
