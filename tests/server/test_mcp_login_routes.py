"""Logging in to an MCP server from another machine: the address that the browser ended at is handed in (http.md)."""

import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp_harness import free_port, running
from other_processes import wait_until
from server_harness import NO_MODEL, Served, refusal, serve_in

from longboat.config.load import user_config_file
from longboat.config.trust import record, trusted_file


@pytest.fixture
async def guarded() -> AsyncIterator[str]:
    port = free_port()
    async with running(port, "mcp_login_server.py", str(port), "3600"):
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def served_with(tmp_path: Path, mcp: dict[str, Any], **changes: Any) -> AsyncIterator[tuple[Served, str]]:
    """A server, and the base path of a trusted workspace with these MCP servers."""
    project = tmp_path / "project"
    project.mkdir()
    text = json.dumps({**NO_MODEL, "mcp": mcp}).encode()
    (project / "longboat.json").write_bytes(text)
    async with serve_in(tmp_path, **changes) as served:
        record(trusted_file(user_config_file(os.environ, Path.home())), project, hashlib.sha256(text).hexdigest())
        yield served, await served.workspace(project)


async def login(served: Served, base: str, name: str = "g", **body: Any) -> httpx2.Response:
    return await served.unix.post(f"{base}/mcp/{name}/login", json=body, timeout=60)


async def browse(page: str) -> str:
    """What a browser on another machine does: it logs in, and is sent to an address that it does not reach."""
    async with httpx2.AsyncClient() as browser:
        return str((await browser.get(page)).headers["location"])


def in_query(address: str, key: str) -> str:
    return parse_qs(urlsplit(address).query)[key][0]


async def test_the_address_is_handed_in_once_and_no_secret_is_told(
    tmp_path: Path, guarded: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with served_with(tmp_path, {"g": {"url": guarded}}) as (served, base):
        begun = await login(served, base)
        page = begun.json()["authorization_url"]
        assert (begun.status_code, begun.json()["phase"]) == (200, "connecting")
        assert (await login(served, base)).json()["authorization_url"] == page
        sent_to = await browse(page)
        ended = await login(served, base, redirect_url=sent_to)
        assert (ended.status_code, ended.json()["phase"], ended.json()["authorization_url"]) == (200, "ready", None)
        late = await login(served, base, redirect_url=sent_to)
        assert refusal(late) == (409, "no_login_pending")
        told = [ended.text, late.text, *(await answers(served, base))]
    events = logged(tmp_path / "data")
    kept = [
        json.loads(file.read_text()) for file in (tmp_path / "data").rglob("*.json") if "tokens" in file.read_text()
    ]
    secrets = {
        "code": in_query(sent_to, "code"),
        "access": kept[0]["tokens"]["access_token"],
        "refresh": kept[0]["tokens"]["refresh_token"],
    }
    ours = "\n".join(line.getMessage() for line in caplog.records if line.name.startswith("longboat"))
    assert "connecting" in events
    for name, secret in secrets.items():
        assert secret not in "\n".join([*told, events, ours]), name
    # The state is a part of the page that a person opens, and of nothing else.
    state = in_query(sent_to, "state")
    assert state in page
    assert state not in "\n".join([*told, events.replace(page, ""), ours])


async def answers(served: Served, base: str) -> list[str]:
    return [(await served.unix.get(f"{base}/{what}")).text for what in ("mcp", "skills", "agent", "runs")]


def logged(data: Path) -> str:
    """All events of a server that has ended."""
    with closing(sqlite3.connect(data / "longboat.db")) as store:
        return "\n".join(bytes(row[0]).decode() for row in store.execute("SELECT frames FROM events"))


async def test_what_fits_no_login_is_refused_with_a_code_and_without_the_address(tmp_path: Path, guarded: str) -> None:
    servers = {"g": {"url": guarded}, "off": {"url": guarded, "enabled": False}}
    async with served_with(tmp_path, servers) as (served, base):
        early = await login(served, base, redirect_url="http://127.0.0.1:1/callback?code=sEcReT&state=sEcReT")
        assert refusal(early) == (409, "no_login_pending")
        page = (await login(served, base)).json()["authorization_url"]
        state = in_query(page, "state")
        for address in ("", "nonsense", "http://[::1", "http://x/callback?code=sEcReT", f"http://x/?state={state}"):
            answer = await login(served, base, redirect_url=address)
            assert refusal(answer) == (400, "bad_redirect_url"), address
            assert "sEcReT" not in answer.text
        forged = await login(served, base, redirect_url="http://127.0.0.1/callback?code=sEcReT&state=sEcReT")
        assert refusal(forged) == (409, "no_login_pending")
        assert "sEcReT" not in early.text + forged.text
        assert refusal(await login(served, base, "nobody")) == (404, "mcp_server_not_found")
        assert refusal(await login(served, base, "nobody", redirect_url=page)) == (404, "mcp_server_not_found")
        assert refusal(await login(served, base, redirect_uri="x")) == (400, "bad_input")
        assert (await login(served, base, "off")).json()["phase"] == "closed"
        assert (await login(served, base)).json()["authorization_url"] == page


async def test_a_login_of_one_server_is_none_of_another(tmp_path: Path, guarded: str) -> None:
    async with served_with(tmp_path, {"g": {"url": guarded}, "h": {"url": f"{guarded}?h"}}) as (served, base):
        page = (await login(served, base)).json()["authorization_url"]
        assert (await login(served, base, "h")).json()["authorization_url"] != page
        sent_to = await browse(page)
        assert refusal(await login(served, base, "h", redirect_url=sent_to)) == (409, "no_login_pending")
        assert (await login(served, base, redirect_url=sent_to)).json()["phase"] == "ready"


async def test_a_login_that_fails_says_why_and_can_be_begun_anew(tmp_path: Path, guarded: str) -> None:
    async with served_with(tmp_path, {"g": {"url": guarded}}) as (served, base):
        page = (await login(served, base)).json()["authorization_url"]
        address = f"http://127.0.0.1/callback?code=sEcReT&state={in_query(page, 'state')}"
        failed = (await login(served, base, redirect_url=address)).json()
        assert failed["phase"] == "failed"
        assert failed["reason"].startswith("the login failed: Token exchange failed (400)")
        assert "sEcReT" not in failed["reason"]
        again = (await login(served, base)).json()["authorization_url"]
        assert again != page
        assert (await login(served, base, redirect_url=await browse(again))).json()["phase"] == "ready"


async def test_the_workspace_stays_open_while_a_person_logs_in(tmp_path: Path, guarded: str) -> None:
    """B3: nobody is attached, and closing it would end the login."""
    mcp = {"g": {"url": guarded}}
    async with served_with(tmp_path, mcp, create_hold_s=0.05, detach_grace_s=0) as (served, base):
        page = (await login(served, base)).json()["authorization_url"]
        workspace = await served.serving.app.workspace(base.rpartition("/")[2])
        workspace.presence.claims.hold()
        await wait_until(lambda: not workspace.presence.claims.held)
        assert not workspace.closing
        assert (await login(served, base, redirect_url=await browse(page))).json()["phase"] == "ready"
        await wait_until(lambda: workspace.closing)
