"""A hint to install an optional part names the command that works for this installation."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longboat.installation import install_command


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    install_command.cache_clear()
    yield
    install_command.cache_clear()


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in which Longboat was installed from an index."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    recorded = tmp_path / "site" / "longboat-0.1.0.dist-info"
    recorded.mkdir(parents=True)
    (recorded / "METADATA").write_text("Metadata-Version: 2.1\nName: longboat\nVersion: 0.1.0\n")
    monkeypatch.syspath_prepend(str(recorded.parent))
    return tmp_path


def installed_from(environment: Path, origin: dict[str, Any]) -> None:
    (environment / "site" / "longboat-0.1.0.dist-info" / "direct_url.json").write_text(json.dumps(origin))


@pytest.mark.parametrize(
    ("written", "command"),
    [
        ("uv-receipt.toml", "uv tool install --force 'longboat[local]'"),
        ("pipx_metadata.json", "pipx install --force 'longboat[local]'"),
    ],
)
def test_a_tool_is_installed_again_by_the_installer_that_made_its_environment(
    environment: Path, written: str, command: str
) -> None:
    (environment / written).touch()
    assert install_command("local") == command


def test_pip_installs_where_this_program_runs(environment: Path) -> None:
    pytest.importorskip("pip")
    assert install_command("local") == f"{environment}/bin/python -m pip install 'longboat[local]'"


def test_an_environment_without_pip_is_left_to_uv(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    assert install_command("local") == f"uv pip install --python {environment}/bin/python 'longboat[local]'"


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        ({"url": "file:///a%20b/longboat", "dir_info": {"editable": True}}, "-e '/a b/longboat[keyring]'"),
        ({"url": "file:///src/longboat", "dir_info": {}}, "'/src/longboat[keyring]'"),
        (
            {"url": "https://git.example/longboat", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            "'longboat[keyring] @ git+https://git.example/longboat'",
        ),
        (
            {"url": "file:///w/longboat-0.1.0.whl", "archive_info": {}},
            "'longboat[keyring] @ file:///w/longboat-0.1.0.whl'",
        ),
    ],
)
def test_it_comes_from_where_longboat_came_from(environment: Path, origin: dict[str, Any], requirement: str) -> None:
    (environment / "uv-receipt.toml").touch()
    installed_from(environment, origin)
    assert install_command("keyring") == f"uv tool install --force {requirement}"
