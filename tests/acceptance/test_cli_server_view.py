"""What the running server has and what this shell has are told apart; and a server that is not there, by its name."""

import json
import os
import re
import threading
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cli_home import Home, Process, finished
from terminal import Terminal

from longboat.testing import Gate, Pause, Say

pytestmark = pytest.mark.acceptance

KEY = {"FLEET_KEY": "k"}


@pytest.fixture
def home(own_home: Home) -> Home:
    return own_home


@pytest.fixture
def cwd(home: Home) -> Path:
    return home.workspace("w")


def configure(home: Home, **providers: dict[str, Any]) -> None:
    """Give the user other providers, and leave the choice among them to the order."""
    file = home.path / "config" / "longboat" / "longboat.json"
    changed = {"providers": providers, "models": {}}
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))


def provider(home: Home, **changes: Any) -> dict[str, Any]:
    whole = {"type": "openai-compatible", "base_url": f"{home.endpoint.url}/v1", "models": [{"id": "m"}]}
    return {key: value for key, value in (whole | changes).items() if value is not None}


def serve(home: Home, *arguments: str, **environ: str) -> Process:
    process = home.start("serve", *arguments, cwd=home.path, environ=environ)
    assert process.stdout is not None
    assert "is ready" in process.stdout.readline()
    return process


# The server's keys and the shell's


def test_a_key_that_only_the_shell_has_does_not_make_the_server_ready(home: Home, cwd: Path) -> None:
    configure(home, fleet=provider(home, api_key="$FLEET_KEY"))
    serve(home)
    shown = home.longboat("models", cwd=cwd, **KEY).out
    assert "The running server uses fleet/m" not in shown
    assert "A server started from this shell would use fleet/m." in shown
    assert "started without FLEET_KEY" in shown
    told = home.longboat("doctor", cwd=cwd, **KEY).out
    assert "models (shell)   prompts: fleet/m" in told
    assert "started without FLEET_KEY" in told


def test_a_key_that_only_the_server_has_is_enough(home: Home, cwd: Path) -> None:
    configure(home, fleet=provider(home, api_key="$FLEET_KEY"))
    serve(home, **KEY)
    shown = home.longboat("models", cwd=cwd).out
    assert "The running server uses fleet/m." in shown
    assert json.loads(home.longboat("models", "--format", "json", cwd=cwd).out)["server"]["model"] == "m"
    doctor = home.longboat("doctor", cwd=cwd)
    assert (doctor.code, "models (server)  prompts: fleet/m" in doctor.out) == (0, True), doctor


def test_without_a_server_it_is_said_that_the_shell_alone_was_looked_at(home: Home, cwd: Path) -> None:
    shown = home.longboat("models", cwd=cwd).out
    assert "Model for prompts: mine/m; for titles: mine/m." in shown
    assert "No server is running. This is what a server started from this shell would use." in shown
    assert json.loads(home.longboat("models", "--format", "json", cwd=cwd).out)["server"] is None


def test_a_variable_that_longboat_json_refers_to_reaches_a_server_that_takes_the_idle_ones_place(
    home: Home, cwd: Path
) -> None:
    configure(home, fleet=provider(home, headers={"x-fleet": "of ${FLEET_KEY}"}), spare=provider(home))
    first = home.longboat("run", "--detach", "one", cwd=cwd, FLEET_KEY="")
    assert first.code == 0
    home.longboat("watch", first.out.strip(), cwd=cwd)
    before = home.discovery().pid
    done = home.longboat("run", "two", cwd=cwd, **KEY)
    assert (done.code, done.out) == (0, "echo: two\n"), done.err
    assert "started without FLEET_KEY" in done.err
    assert home.discovery().pid != before
    again = home.longboat("run", "three", cwd=cwd, **KEY)
    assert (again.code, again.err) == (0, "")


def test_a_busy_server_without_the_variable_stays_and_the_person_is_told(home: Home, cwd: Path) -> None:
    configure(home, spare=provider(home, headers={"x-note": "$$FLEET_NOT"}), fleet=provider(home, api_key="$FLEET_KEY"))
    home.endpoint.script("slow", [Say("working"), Pause(Gate("unkeyed")), Say(" done")])
    working = home.start("run", "[[slow]]", cwd=cwd)
    home.endpoint.wait_for_gate("unkeyed")
    before = home.discovery().pid
    assert home.longboat("runs", cwd=cwd, FLEET_NOT="x").err == "", "$$ is a dollar sign, not a reference"
    assert "started without FLEET_KEY. To use it: `longboat stop`" in home.longboat("runs", cwd=cwd, **KEY).err
    assert home.discovery().pid == before
    home.endpoint.open_gate("unkeyed")
    assert finished(working).out == "working done\n"


def test_a_projects_file_counts_like_the_users(home: Home, cwd: Path) -> None:
    (cwd / "longboat.json").write_text(json.dumps({"providers": {"fleet": provider(home, api_key="$FLEET_KEY")}}))
    assert home.longboat("trust", "--yes", cwd=cwd).code == 0
    home.longboat("run", "one", cwd=cwd)
    assert "started without FLEET_KEY" in home.longboat("run", "two", cwd=cwd, **KEY).err


def test_whoever_asks_with_a_key_of_another_shell_is_told_so_at_a_terminal(home: Home, cwd: Path) -> None:
    configure(home, fleet=provider(home, api_key="$FLEET_KEY"))
    serve(home, **KEY)
    for arguments in (["hi"], ["-m", "fleet/m", "hi"]):
        terminal = Terminal(home, "run", *arguments, cwd=cwd)
        assert terminal.finish() == 0
        assert terminal.seen.count("Using the server's FLEET_KEY for fleet; this shell does not set it.") == 1
    assert home.longboat("run", "hi", cwd=cwd).err == "", "a script is not told"
    here = Terminal(home, "run", "hi", cwd=cwd, environ=KEY)
    assert here.finish() == 0
    assert "FLEET_KEY" not in here.seen


# Passed over


@pytest.mark.parametrize("lack", ["base_url", "models"])
def test_a_configured_provider_that_is_passed_over_is_told_of(home: Home, cwd: Path, lack: str) -> None:
    configure(home, broken=provider(home, **{lack: None}), spare=provider(home))
    done = home.longboat("run", "hi", cwd=cwd)
    assert (done.code, done.out) == (0, "echo: hi\n")
    assert "broken (longboat.json) is not ready; using spare/m." in done.err
    shown = home.longboat("models", cwd=cwd).out
    assert f"broken (longboat.json) is skipped: {'Set' if lack == 'base_url' else 'List'}" in shown
    assert f"providers.broken.{lack} in longboat.json" in shown
    assert f"providers.broken.{lack} in longboat.json" in home.longboat("doctor", cwd=cwd).out
    assert "broken" not in home.longboat("run", "-m", "spare/m", "hi", cwd=cwd).err


def test_a_server_at_a_terminal_begins_with_its_banner_and_logs_in_plain_lines(home: Home, cwd: Path) -> None:
    terminal = Terminal(home, "serve", cwd=cwd)
    seen = terminal.until("listening on")
    assert seen.startswith("Longboat ")
    assert "{" not in seen
    home.longboat("stop", cwd=cwd)
    assert terminal.finish() == 0


# A server that is not there, or does not let us in


def test_serve_without_a_socket_says_where_the_token_is_and_a_log_never_has_it(home: Home, cwd: Path) -> None:
    process = serve(home, "--socket", "none", "--port", "0")
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(3)]
    file = home.path / "data" / "token"
    assert said[1] == f"  token  cat {file}\n"
    assert said[2].endswith(f' LONGBOAT_TOKEN=$(cat {file}) longboat run "…"\n')
    assert file.read_text() == home.discovery().token
    assert home.discovery().token not in "".join(said)


def test_serve_on_all_addresses_names_those_that_others_can_use_and_shows_the_token_to_nobody(
    home: Home, cwd: Path
) -> None:
    terminal = Terminal(home, "serve", "--host", "0.0.0.0", "--port", "0", cwd=cwd)
    terminal.until("listening on")
    banner = terminal.seen.partition("listening on")[0]
    assert home.discovery().token not in banner
    named = set(re.findall(r"http://[\d.]+:\d+", banner))
    assert home.discovery().url in named
    for url in named:
        with urllib.request.urlopen(f"{url}/v1/health", timeout=10) as answer:
            assert answer.status == 200, url
    if others := named - {home.discovery().url}:  # a machine without a network has none
        assert re.search(r"  remote longboat attach (\S+)", banner)[1] in others  # type: ignore[index]
    home.longboat("stop", cwd=cwd)
    assert terminal.finish() == 0


def test_attach_says_at_once_that_nobody_answers_and_asks_for_no_token(home: Home, cwd: Path) -> None:
    terminal = Terminal(home, "attach", "http://127.0.0.1:9", cwd=cwd)
    assert terminal.finish() == 1
    assert terminal.lines[0].startswith("longboat: No answer from the Longboat server at http://127.0.0.1:9: ")
    assert "Check the address" in terminal.lines[1]
    assert "Token" not in terminal.seen


class Endless(BaseHTTPRequestHandler):
    """Some other program, whose answer has no end."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b" " * 65_536)

    def log_message(self, *_: object) -> None:
        pass


def test_attach_and_status_give_up_on_an_answer_without_an_end(home: Home, cwd: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as host:
        threading.Thread(target=host.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{host.server_port}"
        terminal = Terminal(home, "attach", url, cwd=cwd)
        assert terminal.finish() == 1
        status = home.longboat("status", cwd=cwd, LONGBOAT_URL=url)
        host.shutdown()
    for told in ("\n".join(terminal.lines), status.err):
        assert f"The response from {url} does not end" in told
        assert "Is this the address of a Longboat server?" in " ".join(told.split())
    assert status.code == 1


@pytest.mark.parametrize("path", [[], ["--cwd", "/tmp"]])
def test_attach_tells_of_a_wrong_token_in_the_words_of_the_other_commands(
    home: Home, cwd: Path, path: list[str]
) -> None:
    serve(home, "--port", "0")
    url = home.discovery().url or ""
    elsewhere = {"LONGBOAT_RUNTIME_DIR": str(home.path / "elsewhere"), "LONGBOAT_TOKEN": "wrong"}
    terminal = Terminal(home, "attach", url, *path, cwd=cwd, environ=elsewhere)
    assert terminal.finish() == 1
    assert terminal.lines[0] == f"longboat: The Longboat server at {url} rejects the token."
    assert "Authorization" not in terminal.seen
    asked = Terminal(home, "attach", url, *path, cwd=cwd, environ=elsewhere | {"LONGBOAT_TOKEN": ""})
    asked.until("Token: ")
    asked.type("guess")
    assert asked.finish() == 1
    assert "rejects the token." in asked.seen
    assert "guess" not in asked.seen


@pytest.mark.parametrize(("token", "told"), [("", "requires a token."), ("wrong", "rejects the token.")])
def test_no_token_and_a_wrong_one_are_told_apart(home: Home, cwd: Path, token: str, told: str) -> None:
    serve(home, "--port", "0")
    url = home.discovery().url or ""
    elsewhere = {"LONGBOAT_URL": url, "LONGBOAT_RUNTIME_DIR": str(home.path / "elsewhere"), "LONGBOAT_TOKEN": token}
    for command in (("runs",), ("run", "hi")):
        done = home.longboat(*command, cwd=cwd, **elsewhere)
        first, hint = done.err.splitlines()
        assert (done.code, first) == (1, f"longboat: The Longboat server at {url} {told}")
        assert "LONGBOAT_TOKEN" in hint
        assert "`longboat serve` prints where" in hint


@pytest.mark.parametrize("name", ["LONGBOAT_URL", "LONGBOAT_SOCKET"])
def test_where_a_named_server_is_missing_no_command_promises_to_start_one(home: Home, cwd: Path, name: str) -> None:
    nobody = {name: "http://127.0.0.1:9" if name == "LONGBOAT_URL" else str(home.path / "nobody")}
    for command in (("run", "hi"), ("runs",), ("status",), ("doctor",), ("version",)):
        done = home.longboat(*command, cwd=cwd, **nobody)
        assert f"unset {name} to use your own" in done.out + done.err, command
        assert "starts one" not in done.out + done.err, command
    assert home.longboat("stop", cwd=cwd, **nobody).out.startswith("No server answers at ")


def test_an_address_that_is_no_url_is_explained(home: Home, cwd: Path) -> None:
    for command in (("run", "hi"), ("status",), ("doctor",)):
        done = home.longboat(*command, cwd=cwd, LONGBOAT_URL="127.0.0.1:8911")
        assert done.code == 1
        assert (
            "LONGBOAT_URL '127.0.0.1:8911' is not an address. Use one like http://127.0.0.1:8911" in done.out + done.err
        )
    assert not os.path.exists(home.socket)
