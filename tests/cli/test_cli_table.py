"""The command table: quick to show, true to its commands, and failures that look the same everywhere."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from local_files import put_stub

from cases import for_each
from longboat.cli.main import COMMANDS, HINTS, cli
from longboat.errors import LongboatError

HEAVY = ("httpx2", "asyncio", "msgspec", "litestar", "uvicorn", "pydantic", "http.client", "sqlite3")


def modules_after(*arguments: str) -> set[str]:
    code = f"import sys; sys.argv = ['longboat', *{arguments!r}]\ntry:\n from longboat.cli.main import main; main()\n"
    code += "except SystemExit: pass\nprint('\\n' + ' '.join(sys.modules))"
    environ = os.environ | {"LONGBOAT_SOCKET": "/nowhere"}  # a named server is never started
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    return set(done.stdout.splitlines()[-1].split())


def test_help_imports_nothing_heavy() -> None:
    assert not modules_after("--help") & set(HEAVY)


@pytest.mark.parametrize("command", ["runs", "status", "version", "cancel"])
def test_short_commands_need_neither_httpx2_nor_an_event_loop(command: str) -> None:
    assert not modules_after(command, *(["x"] if command == "cancel" else [])) & {"httpx2", "asyncio", "litestar"}


@for_each("name", COMMANDS)
def test_the_table_agrees_with_the_command_and_its_help_has_an_example(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.short_help == COMMANDS[name]
    shown = CliRunner().invoke(cli, [name, "--help"])
    assert shown.exit_code == 0
    assert f"  longboat {name}" in shown.output


def test_every_command_file_is_in_the_table() -> None:
    commands = {
        path.stem
        for path in (Path(__file__).parents[2] / "src" / "longboat" / "cli").glob("*.py")
        if f"def {path.stem}(" in path.read_text() and "@click." in path.read_text()
    }
    assert commands - {"main"} == set(COMMANDS)


def _codes(family: type[LongboatError]) -> set[str]:
    return {family.code}.union(*(_codes(child) for child in family.__subclasses__()))


def test_every_hint_belongs_to_an_error() -> None:
    assert set(HINTS) <= _codes(LongboatError)


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(cli, ["xyzzy"])
    assert result.exit_code == 2
    assert "No such command 'xyzzy'.\n" in result.output


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("rum", "No such command 'rum'. Did you mean run?"),
        ("sesion", "Did you mean session?"),
        ("hi there", 'To send a prompt: longboat run "hi there"'),
    ],
)
def test_a_command_that_is_none_is_told_what_it_may_have_been(given: str, told: str) -> None:
    result = CliRunner().invoke(cli, [given])
    assert result.exit_code == 2
    assert told in result.output


@pytest.mark.parametrize(
    "arguments",
    [["run", "-s", "x", "-c", "hi"], ["cancel"], ["cancel", "x", "--all"], ["run", "--delivery", "now", "x"]],
)
def test_contradicting_arguments_are_usage_errors(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, arguments).exit_code == 2


def test_an_expected_failure_is_one_line_with_a_next_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LONGBOAT_SOCKET", str(tmp_path / "nobody"))
    result = CliRunner().invoke(cli, ["runs"])
    assert result.exit_code == 1
    first, second = result.stderr.splitlines()
    assert first.startswith("longboat: No answer from the Longboat server")
    assert "unset LONGBOAT_SOCKET" in second


def test_models_pull_keeps_a_file_that_is_here(tmp_path: Path) -> None:
    path = put_stub(tmp_path)
    result = CliRunner().invoke(cli, ["models", "pull", "--data-dir", str(tmp_path)])
    assert (result.exit_code, result.output) == (0, f"{path}\nUse it: longboat run -m local/smollm2-135m …\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpt-5"], "There is no model 'gpt-5' to download. Use one of smollm2-135m, qwen2.5-coder-1.5b, or a URL."),
        (["http://example.com/m.gguf", "--sha256", "a" * 64], "Only https URLs can be downloaded."),
        (["https://example.com/m.gguf"], "Pass the file's SHA-256 with --sha256: 64 hexadecimal digits."),
        (["https://example.com/m.gguf", "--sha256", "abc"], "64 hexadecimal digits"),
        (["https://example.com/..%2Fm.gguf", "--as", "../m", "--sha256", "a" * 64], "Name the model with --as"),
        (["https://example.com/smollm2-135m.gguf", "--sha256", "a" * 64], "Name the model with --as"),
        (["smollm2-135m", "--sha256", "a" * 64], "--sha256 and --as need a URL."),
    ],
)
def test_models_pull_says_what_is_missing(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["models", "pull", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
