"""MCP at the command line: a server's prompts, and a login from another machine (A1)."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cli_home import GIVE_UP_S, Home
from terminal import Terminal

from longboat.testing import Say

pytestmark = pytest.mark.acceptance

SERVERS = Path(__file__).parents[1] / "support"


def configure(home: Home, cwd: Path, mcp: dict[str, Any]) -> None:
    (cwd / "longboat.json").write_text(json.dumps({"mcp": mcp}))
    assert home.longboat("trust", "--yes", cwd=cwd).code == 0


@contextmanager
def guarded() -> Iterator[str]:
    """The address of a server that asks for a login."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVERS / "mcp_login_server.py"), str(port), "3600"])
    transport = httpx2.HTTPTransport(retries=10)  # until it listens: with a growing delay between
    with httpx2.Client(transport=transport) as client:
        client.get(f"http://127.0.0.1:{port}/")
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait(GIVE_UP_S)


def sent_to(page: str) -> str:
    """Where the login page leads a browser, which is on another machine and gets no further."""
    with httpx2.Client() as browser:
        return str(browser.get(page).headers["location"])


def test_a_prompt_of_a_server_is_listed_and_used(home: Home, cwd: Path) -> None:
    notes = cwd / "notes"
    notes.mkdir()
    script = str(SERVERS / "mcp_server.py")
    configure(home, cwd, {"test": {"command": sys.executable, "args": [script, "stdio", str(notes)]}})
    home.endpoint.script("review", [Say("Fine.")])
    done = home.longboat("run", "/test:review [[review]] tone=dry", cwd=cwd)
    assert (done.code, done.out) == (0, "Fine.\n"), done.err
    lines = home.longboat("mcp", cwd=cwd).lines
    assert [line.split() for line in lines[-3:]] == [
        ["PROMPT", "DESCRIPTION"],
        ["/test:review", "path", "[tone]", "Review", "a", "file."],
        ["/test:dawdle"],
    ]
    assert "/test:review path [tone]" in home.longboat("skills", cwd=cwd).out
    failed = home.longboat("run", "/test:review", cwd=cwd)
    assert (failed.code, "Missing: path" in failed.err) == (1, True), failed.err
    session = json.loads(home.longboat("runs", "--format", "json", cwd=cwd).lines[-1])["session_id"]
    assert "Review [[review]] in a dry tone." in home.longboat("session", "show", session, cwd=cwd).out


def test_a_login_in_two_commands(home: Home, cwd: Path) -> None:
    with guarded() as url:
        configure(home, cwd, {"g": {"url": url}})
        begun = home.longboat("mcp", "login", "g", cwd=cwd)
        assert begun.code == 0, begun.err
        page = begun.out.split()[-1]
        assert f"To log in to g, run longboat mcp login g, or open {page}" in home.longboat("mcp", cwd=cwd).out
        address = sent_to(page)
        done = home.longboat("mcp", "login", "g", address, cwd=cwd)
        assert (done.code, done.out) == (0, "g is ready\n"), done.err
        again = home.longboat("mcp", "login", "g", address, cwd=cwd)
        assert (again.code, "to start a login" in again.err) == (1, True), again.err
        code = address.split("code=")[1].split("&")[0]
        assert code not in home.log + done.err + again.err
        assert home.longboat("mcp", "login", "nobody", cwd=cwd).code == 1


def test_a_login_with_the_address_pasted(home: Home, cwd: Path) -> None:
    with guarded() as url:
        configure(home, cwd, {"g": {"url": url}})
        terminal = Terminal(home, "mcp", "login", "g", cwd=cwd)
        shown = terminal.until("paste the address")
        terminal.type(sent_to(shown.split("open ")[1].split()[0]))
        terminal.until("g is ready")
        assert terminal.finish() == 0
