"""Which servers a workspace has: what its settings say, what is installed, and for which root."""

import os
from pathlib import Path

import pytest

from longboat.errors import ConfigInvalid
from longboat.tools.lsp.client.server_specs import language_of, python_settings, server_specs
from longboat.tools.lsp.client.settings import read


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A PATH on which the named commands are installed."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin")}


def install(environ: dict[str, str], *commands: str) -> None:
    for command in commands:
        path = Path(environ["PATH"], command)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)


def test_without_settings_what_is_installed_is_taken(environ: dict[str, str]) -> None:
    install(environ, "pylsp", "gopls")
    found = server_specs({}, environ)
    assert [(spec.name, spec.argv) for spec in found] == [("pylsp", ("pylsp",)), ("gopls", ("gopls",))]
    assert found[0].takes(Path("a.PY"))
    assert not found[0].takes(Path("a.go"))


def test_of_several_built_in_servers_for_a_type_the_first_is_taken(environ: dict[str, str]) -> None:
    install(environ, "pylsp", "basedpyright-langserver", "pyright-langserver")
    assert [spec.name for spec in server_specs({}, environ)] == ["basedpyright"]


def test_a_command_that_only_a_relative_path_finds_is_not_taken(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository must not be able to bring its own `pylsp` along."""
    install(environ, "pylsp")
    monkeypatch.chdir(environ["PATH"])
    assert server_specs({}, {"PATH": "."}) == ()


def test_a_configured_server_takes_the_place_of_built_in_ones(environ: dict[str, str]) -> None:
    install(environ, "pylsp")
    section = read({"mine": {"command": "my-server", "args": ["-v"], "file_types": ["py", ".PYI"], "env": {"A": "1"}}})
    (mine,) = server_specs(section, environ)
    assert (mine.argv, mine.file_types, mine.env) == (("my-server", "-v"), {".py", ".pyi"}, {"A": "1"})


def test_a_known_server_needs_only_what_differs(environ: dict[str, str]) -> None:
    section = read({"basedpyright": {"settings": {"basedpyright": {"analysis": {"typeCheckingMode": "strict"}}}}})
    (spec,) = server_specs(section, environ)
    assert spec.argv == ("basedpyright-langserver", "--stdio")
    analysis = spec.settings["basedpyright"]["analysis"]
    assert (analysis["typeCheckingMode"], analysis["autoSearchPaths"]) == ("strict", True)


def test_several_configured_servers_may_share_a_type(environ: dict[str, str]) -> None:
    section = read({"pylsp": {}, "ruff": {"command": "ruff", "args": ["server"], "file_types": ["py"]}})
    assert [spec.name for spec in server_specs(section, environ)] == ["pylsp", "ruff"]


def test_a_server_can_be_turned_off(environ: dict[str, str]) -> None:
    install(environ, "pylsp")
    assert server_specs(read({"pylsp": {"enabled": False}}), environ) == ()


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        ({"mine": {"file_types": ["x"]}}, "lsp.mine: command and file_types are required"),
        ({"mine": {"command": "x"}}, "lsp.mine: command and file_types are required"),
        ({"mine": {"comand": "x"}}, "lsp.mine: Object contains unknown field `comand`"),
        ({"mine": {"command": 1}}, "lsp.mine: Expected `str"),
        ({"mine": "x"}, "lsp.mine: Expected `object`"),
    ],
)
def test_a_section_that_cannot_be_used_is_told_by_name(section: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        server_specs(read(section), {})
    assert caught.value.message.startswith(complaint)


def test_the_root_is_the_outermost_marked_directory_within_the_workspace(tmp_path: Path) -> None:
    (spec,) = server_specs(read({"rust-analyzer": {}}), {})
    workspace = tmp_path / "work"
    file = workspace / "repo/crates/one/src/lib.rs"
    file.parent.mkdir(parents=True)
    assert spec.root_of(file, workspace) == workspace
    for directory in (tmp_path, workspace / "repo", workspace / "repo/crates/one"):
        (directory / "Cargo.toml").touch()
    assert spec.root_of(file, workspace) == workspace / "repo"


def test_a_projects_own_python_is_told_to_its_server(tmp_path: Path) -> None:
    assert python_settings(tmp_path, {}) == {}
    other = tmp_path / "other"
    for python in (tmp_path / ".venv/bin/python", other / "bin/python"):
        python.parent.mkdir(parents=True)
        os.symlink("/bin/true", python)
    assert python_settings(tmp_path / "elsewhere", {"VIRTUAL_ENV": str(other)})["python"] == {
        "pythonPath": str(other / "bin/python")
    }
    assert python_settings(tmp_path, {"VIRTUAL_ENV": str(other)})["python"] == {
        "pythonPath": str(tmp_path / ".venv/bin/python")
    }


def test_languages_have_the_names_that_servers_know() -> None:
    names = [language_of(Path(name)) for name in ("a.py", "a.tsx", "a.go", "a.zig", "a.H")]
    assert names == ["python", "typescriptreact", "go", "zig", "cpp"]
