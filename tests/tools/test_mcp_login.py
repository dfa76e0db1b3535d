"""Logging in to an MCP server (OAuth), against a real authorization server."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp_harness import McpHarness, free_port, opened, running

from longboat.tools.mcp import Phase
from longboat.tools.mcp.logins import Logins


@pytest.fixture
async def section() -> AsyncIterator[dict[str, Any]]:
    port = free_port()
    async with running(port, "mcp_login_server.py", str(port), "3600"):
        yield {"g": {"url": f"http://127.0.0.1:{port}/mcp"}}


@pytest.fixture
def logins(tmp_path: Path) -> Iterator[Logins]:
    logins = Logins(tmp_path / "logins")
    yield logins
    logins.close()


async def browse(harness: McpHarness) -> httpx2.Response:
    """What a person does: open the page and follow where it leads."""
    asked = await harness.until(lambda state: state.authorization_url)
    assert asked.phase is Phase.CONNECTING
    assert asked.authorization_url is not None
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        return await browser.get(asked.authorization_url)


def kept(tmp_path: Path) -> Path:
    (file,) = [file for file in (tmp_path / "logins").iterdir() if file.name != "port.json"]
    return file


async def log_in(tmp_path: Path, section: dict[str, Any], logins: Logins) -> str:
    async with opened(tmp_path, section, logins=logins, wait_s=0) as harness:
        assert "You are logged in" in (await browse(harness)).text
        await harness.until(lambda state: state.phase is Phase.READY)
        assert harness.servers.states()[0].authorization_url is None
        return await harness.use("mcp__g__logins")


async def test_a_person_logs_in_once_and_is_not_asked_again(
    tmp_path: Path, section: dict[str, Any], logins: Logins
) -> None:
    assert await log_in(tmp_path, section, logins) == "1"
    assert kept(tmp_path).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "logins").stat().st_mode & 0o777 == 0o700
    address = logins.address()
    logins.close()
    again = Logins(tmp_path / "logins")
    assert again.address() == address
    async with opened(tmp_path, section, logins=again) as harness:
        assert await harness.use("mcp__g__logins") == "1"
        assert all(state.authorization_url is None for state in harness.states)
    again.close()


async def test_a_token_that_ran_out_while_we_were_away_is_renewed_without_a_person(
    tmp_path: Path, section: dict[str, Any], logins: Logins
) -> None:
    await log_in(tmp_path, section, logins)
    file = kept(tmp_path)
    before = json.loads(file.read_text())
    file.write_text(json.dumps(before | {"expires_at": time.time() - 1}))
    async with opened(tmp_path, section, logins=logins) as harness:
        assert await harness.use("mcp__g__logins") == "1"
    after = json.loads(file.read_text())
    assert after["tokens"]["access_token"] != before["tokens"]["access_token"]
    assert after["expires_at"] > time.time() + 3_000


async def test_a_token_renewed_by_one_workspace_serves_the_others(
    tmp_path: Path, section: dict[str, Any], logins: Logins
) -> None:
    await log_in(tmp_path, section, logins)
    async with opened(tmp_path, section, logins=logins) as one:
        file = kept(tmp_path)
        before = json.loads(file.read_text())
        file.write_text(json.dumps(before | {"expires_at": time.time() - 1}))
        async with opened(tmp_path, section, logins=logins) as two:
            assert await two.use("mcp__g__logins") == "1"
            assert json.loads(file.read_text())["tokens"] != before["tokens"]
            assert await one.use("mcp__g__logins") == "1"
        assert all(state.authorization_url is None for state in (*one.states, *two.states))


async def test_the_address_a_browser_elsewhere_was_sent_to_can_be_pasted(
    tmp_path: Path, section: dict[str, Any], logins: Logins
) -> None:
    """The server may run on another machine than the browser."""
    async with opened(tmp_path, section, logins=logins, wait_s=0) as harness:
        asked = await harness.until(lambda state: state.authorization_url)
        async with httpx2.AsyncClient() as browser:
            sent_to = (await browser.get(asked.authorization_url or "")).headers["location"]
        assert not logins.arrive("http://127.0.0.1/callback?code=forged&state=forged")
        assert logins.arrive(sent_to)
        assert not logins.arrive(sent_to)
        await harness.until(lambda state: state.phase is Phase.READY)


async def test_a_refused_login_is_told_and_not_repeated(
    tmp_path: Path, section: dict[str, Any], logins: Logins
) -> None:
    async with opened(tmp_path, section, logins=logins, wait_s=0) as harness:
        asked = await harness.until(lambda state: state.authorization_url)
        state = httpx2.URL(asked.authorization_url or "").params["state"]
        assert logins.arrive(f"/callback?error=access_denied&error_description=No+thanks&state={state}")
        failed = await harness.until(lambda state: state.phase is Phase.FAILED)
        assert failed.reason == "the login failed: the login was refused: No thanks"
        assert harness.phases("g").count(Phase.FAILED) == 1


async def test_closing_while_a_person_is_asked_ends_the_wait(
    tmp_path: Path, section: dict[str, Any], logins: Logins
) -> None:
    async with opened(tmp_path, section, logins=logins, wait_s=0) as harness:
        await harness.until(lambda state: state.authorization_url)
    assert harness.states[-1].phase is Phase.CLOSED
    assert harness.states[-1].authorization_url is None
