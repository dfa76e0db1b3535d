"""`longboat connect`: from a pipe and at a terminal, from nothing to the first answer, with the server that runs."""

import asyncio
import json
import stat
from pathlib import Path

import pytest
from cli_home import Home
from terminal import Terminal

from longboat.testing.endpoint import ScriptedEndpoint
from secrecy import SECRETS

pytestmark = pytest.mark.acceptance

KEY = SECRETS["stored key"]
NO_LOCAL_MODEL = "import sys; sys.modules['xllamacpp'] = None"


@pytest.fixture
def home(own_home: Home) -> Home:
    """Nothing is configured, and no model is installed."""
    library = own_home.path / "library"
    library.mkdir()
    (library / "sitecustomize.py").write_text(NO_LOCAL_MODEL)
    own_home.environ["PYTHONPATH"] = str(library)
    config(own_home).write_text('{"models": {"detect": false}, "titles": false} // mine\n')
    return own_home


@pytest.fixture
def cwd(home: Home) -> Path:
    return home.workspace("w")


def config(home: Home) -> Path:
    return home.path / "config" / "longboat" / "longboat.json"


def credentials(home: Home) -> Path:
    return config(home).with_name("credentials.json")


def test_from_a_pipe_to_the_first_answer_without_a_restart(home: Home, cwd: Path) -> None:
    refused = home.longboat("run", "hi", cwd=cwd)
    assert refused.code == 1
    assert "No model is configured. Run `longboat connect`" in refused.err
    server = home.discovery().pid
    done = home.longboat(
        *("connect", "box", "--key", "-", "--base-url", home.endpoint.url, "--model", "scripted"), cwd=cwd, given=KEY
    )
    assert (done.code, done.out) == (0, f"Connected to {home.endpoint.url}/v1. Default model: box/scripted.\n"), (
        done.err
    )
    assert f"Testing {home.endpoint.url}…" in done.err
    assert home.longboat("run", "hi", cwd=cwd).out.strip() == "echo: hi"
    assert home.discovery().pid == server
    assert stat.S_IMODE(credentials(home).stat().st_mode) == 0o600
    assert json.loads(credentials(home).read_text())["box"]["base_url"] == f"{home.endpoint.url}/v1"
    assert config(home).read_text().endswith("// mine\n")
    assert not (cwd / "longboat.json").exists()


def test_what_does_not_work_is_said_and_not_stored(home: Home, cwd: Path) -> None:
    done = home.longboat("connect", "box", "--key", "-", "--base-url", "http://127.0.0.1:1/v1", cwd=cwd, given=KEY)
    assert done.code == 1
    assert "Cannot connect to 127.0.0.1:1." in done.err
    assert "Nothing was stored." in done.err
    assert not credentials(home).exists()


async def test_a_server_without_a_list_of_models_needs_a_name(home: Home, cwd: Path) -> None:
    async with ScriptedEndpoint(models=None) as endpoint:
        connect = ("connect", "nomodels", "--base-url", endpoint.base_url)
        done = await asyncio.to_thread(home.longboat, *connect, cwd=cwd)
        assert done.code == 1
        assert "The server has no list of models." in done.err
        assert "Name the model with --model MODEL. Nothing was stored." in done.err
        done = await asyncio.to_thread(home.longboat, *connect, "--model", "odd", cwd=cwd)
        assert done.code == 0, done.err
        assert "The server has no list of models; using odd." in done.err
        answered = await asyncio.to_thread(home.longboat, "run", "hi", cwd=cwd)
        assert answered.out.strip() == "echo: hi"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Which provider?"),
        (("anthropic",), "Pass it on standard input: longboat connect anthropic --key -"),
        (("anthropic", "--key", "-"), "Standard input has no key.\n  For example"),
        (("box", "--base-url", "http://127.0.0.1:1/v1", "--key", "-"), "Leave out --key if the server needs none."),
        (("custom",), "Pass --base-url URL"),
        (("anthropic", "--list"), "Use only one of PROVIDER, --list and --forget."),
        (("--forget", "no body"), "`longboat connect --list` lists the providers."),
    ],
)
def test_without_a_terminal_it_says_what_is_missing(
    home: Home, cwd: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = home.longboat("connect", *arguments, cwd=cwd)
    assert done.code in (1, 2)
    assert said in done.err


def test_a_key_on_the_command_line_is_refused(home: Home, cwd: Path) -> None:
    done = home.longboat("connect", "anthropic", "--key", "sk-1", cwd=cwd)
    assert done.code == 2
    assert "Pass the key on standard input" in done.err
    assert not credentials(home).exists()


def test_the_list_says_what_is_connected_and_forget_forgets(home: Home, cwd: Path) -> None:
    assert "No default model: run `longboat connect`." in home.longboat("connect", "--list", cwd=cwd).out
    home.longboat("connect", "box", "--key", "-", "--base-url", home.endpoint.url, cwd=cwd, given=KEY)
    listed = json.loads(home.longboat("connect", "--list", "--format", "json", cwd=cwd).out)
    box = next(each for each in listed["items"] if each["id"] == "box")
    assert (box["connected"], box["stored"], listed["model"]) == (True, True, "box/scripted")
    assert "Default model: box/scripted" in home.longboat("connect", "--list", cwd=cwd).out
    assert "Deleted the stored key for box." in home.longboat("connect", "--forget", "box", cwd=cwd).out
    assert KEY not in credentials(home).read_text()
    assert home.longboat("connect", "--forget", "box", cwd=cwd).out == "No key is stored for box.\n"
    assert home.longboat("connect", "--forget", "openai", cwd=cwd).out == "No key is stored for OpenAI.\n"


def test_doctor_says_once_that_there_is_no_model_and_what_to_do(home: Home, cwd: Path) -> None:
    home.longboat("status", cwd=cwd)
    for running in (False, True):
        if running:
            home.longboat("connect", "--list", cwd=cwd)
        done = home.longboat("doctor", cwd=cwd)
        assert done.out.count("No model is configured. Run `longboat connect`") == 1, done.out
        assert "1 problem found." in done.err


def test_at_a_terminal_a_person_picks_types_and_chooses(home: Home, cwd: Path) -> None:
    shown = Terminal(home, "connect", cwd=cwd)
    listed = shown.until("Provider")
    number = next(line.split()[0] for line in listed.splitlines() if "OpenAI-compatible" in line)
    shown.type(number)
    shown.until("Base URL")
    shown.type(home.endpoint.url)
    shown.until("API key (Enter if none)")
    shown.type(KEY)
    shown.until(f"Testing {home.endpoint.url}…")
    shown.until(f"Connected to {home.endpoint.url}/v1. Default model: custom/scripted")
    assert shown.finish() == 0
    assert KEY not in shown.seen, "what is typed is not shown"
    assert home.longboat("run", "hi", cwd=cwd).out.strip() == "echo: hi"
