"""Mistakes and intruders at a real server's doors: each is told by a status and a stable code, and harms nothing.

What one request can get wrong is tested field by field in tests/server/test_server_errors.py; here is one of each
kind over both doors, and what only processes can show.
"""

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Any

import httpx2
import pytest
from processes import BOTH_DOORS, Site, open_site

pytestmark = pytest.mark.acceptance

HUGE = b'{"title": "' + b"x" * (17 << 20) + b'"}'

# What is wrong, the request, and what it is answered. W is the workspace, S the id of a session.
WRONG: list[tuple[str, str, str, Any, int, str]] = [
    ("malformed JSON", "POST", "W/agent", b"{", 400, "bad_json"),
    ("no JSON at all", "POST", "W/sessions", b"\xff\xfe", 400, "bad_json"),
    ("a wrong type", "POST", "W/agent", {"session_id": "S", "prompt": 5}, 400, "bad_input"),
    ("an unknown field", "POST", "W/agent", {"session_id": "S", "prompt": "x", "colour": "red"}, 400, "bad_input"),
    ("an invalid run_id", "POST", "W/agent", {"session_id": "S", "prompt": "x", "run_id": "a b"}, 400, "bad_run_id"),
    ("no client_id", "GET", "W/events", None, 400, "bad_client_id"),
    ("an invalid client_id", "GET", "W/events?client_id=a%20b", None, 400, "bad_client_id"),
    ("an empty prompt", "POST", "W/agent", {"session_id": "S", "prompt": " "}, 400, "empty_prompt"),
    ("no session", "POST", "W/agent", {"prompt": "x"}, 400, "session_missing"),
    ("an unknown session", "POST", "W/agent", {"session_id": "nope", "prompt": "x"}, 404, "session_not_found"),
    ("an unknown run", "GET", "W/runs/nope", None, 404, "run_not_found"),
    ("an unknown workspace", "GET", "/v1/workspaces/nope", None, 404, "workspace_not_found"),
    ("an unknown route", "GET", "/v1/nope", None, 404, "not_found"),
    ("a path that is not there", "POST", "/v1/workspaces", {"path": "/no/such/place"}, 400, "path_not_found"),
    ("a path that is a file", "POST", "/v1/workspaces", {"path": "/etc/passwd"}, 400, "path_not_directory"),
    ("a relative path", "POST", "/v1/workspaces", {"path": "here"}, 400, "bad_path"),
    ("a huge body", "POST", "W/sessions", HUGE, 413, "body_too_large"),
]


@pytest.mark.parametrize("door", BOTH_DOORS)
async def test_every_kind_of_mistake_has_its_status_and_its_stable_code_and_leaves_no_trace(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await site.session(site.project())
        answers: dict[str, tuple[int, str]] = {}
        for what, method, target, body, _, _ in WRONG:
            url = target.replace("W/", f"{session.workspace}/")
            content = _content(body, session.session_id)
            answers[what] = _refusal(await session.http.request(method, url, **content))
        assert answers == {what: (status, code) for what, *_, status, code in WRONG}
        assert await session.check_books() == {}
        assert (await session.http.get("/v1/health")).json()["status"] == "ok"
        assert "Traceback" not in site.log.read_text()


def _content(body: Any, session_id: str) -> dict[str, Any]:
    if body is None:
        return {}
    if isinstance(body, bytes):
        return {"content": body}
    return {"json": {name: session_id if value == "S" else value for name, value in body.items()}}


def _refusal(answer: httpx2.Response) -> tuple[int, str]:
    body = answer.json()
    assert sorted(body) == ["code", "message"], body
    assert body["message"]
    return answer.status_code, body["code"]


async def test_over_tcp_no_token_a_wrong_one_a_foreign_host_and_a_foreign_origin_are_refused() -> None:
    async with open_site("tcp") as site:
        await site.serve()
        url = f"{site.discovery().url}/v1/workspaces"
        wrong: dict[str, tuple[dict[str, str], tuple[int, str]]] = {
            "no token": ({}, (401, "unauthorized")),
            "a wrong token": ({"authorization": "Bearer wrong"}, (401, "unauthorized")),
            "a foreign host": (site.headers | {"host": "evil.example"}, (421, "foreign_host")),
            "a foreign origin": (site.headers | {"origin": "http://evil.example"}, (403, "foreign_origin")),
        }
        async with httpx2.AsyncClient() as http:
            answers = {what: _refusal(await http.get(url, headers=headers)) for what, (headers, _) in wrong.items()}
            assert answers == {what: expected for what, (_, expected) in wrong.items()}
            assert (await http.get(url, headers=site.headers)).status_code == 200


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"A" * 100_000, b"\0" * 1000])
@pytest.mark.parametrize("door", BOTH_DOORS)
async def test_what_is_no_http_is_answered_or_cut_and_the_server_stays_up(door: str, garbage: bytes) -> None:
    async with open_site(door) as site:
        await site.serve()
        reader, writer = await site.raw()
        writer.write(garbage)
        try:
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 30)
        except OSError:  # it was cut before we had finished
            answer = b""
        writer.transport.abort()
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
        assert (await (await site.client()).get("/v1/health")).json()["status"] == "ok"
        assert "Traceback" not in site.log.read_text()


def _without_privilege() -> list[str]:
    """Root may read everything: as root the server is started without that right."""
    if os.getuid() != 0:
        return []
    rights = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]


async def test_a_directory_that_cannot_be_read_is_refused_and_taken_once_it_can() -> None:
    async with open_site() as site:
        await site.serve(under=_without_privilege())
        closed = site.project("closed")
        below = closed / "below"
        below.mkdir()
        closed.chmod(0)
        http = await site.client()
        for path in (closed, below):
            assert _refusal(await http.post("/v1/workspaces", json={"path": str(path)})) == (400, "path_unreadable")
        closed.chmod(0o700)
        assert (await http.post("/v1/workspaces", json={"path": str(closed)})).status_code == 201


# Servers that must not start


async def _fails(site: Site, **environ: str) -> str:
    """What a server says that does not start."""
    said = len(site.log.read_bytes()) if site.log.exists() else 0
    process = await site.launch(environ=environ)
    assert await process.wait() == 1
    return site.log.read_bytes()[said:].decode()


async def test_a_second_server_on_the_same_data_or_the_same_socket_is_refused_and_told_how_to_attach() -> None:
    async with open_site() as site:
        await site.serve()
        session = await site.session(site.project())
        same_socket = await _fails(site)
        assert same_socket.startswith("longboat: A server is already listening on ")
        same_data = await _fails(site, LONGBOAT_RUNTIME_DIR=str(site.path / "elsewhere"))
        assert same_data.startswith(f"longboat: Another server (pid {site.server.pid}) is using {site.data}. ")
        for said in (same_socket, same_data):
            assert "longboat run" in said
            assert "Traceback" not in said
        assert not (site.path / "elsewhere" / "longboat.sock").exists()
        await session.submit("still there?", "r1")
        assert await session.outcome("r1") == "end_turn"


async def test_a_data_directory_of_a_newer_version_is_refused_and_left_as_it_is() -> None:
    async with open_site() as site:
        await site.serve()
        session = await site.session(site.project())
        await session.submit("hello", "r1")
        await session.outcome("r1")
        site.server.terminate()
        await site.server.wait()
        store = site.data / "longboat.db"
        known = _set_version(store, 999)
        before = store.read_bytes()
        said = await _fails(site)
        assert "newer Longboat" in said
        assert "--data-dir" in said
        assert "Traceback" not in said
        assert store.read_bytes() == before
        _set_version(store, known)
        await site.serve()
        assert await (await site.back_at(session)).check_books() == {"r1": "end_turn"}


def _set_version(store: Path, version: int) -> int:
    """Returns the version it had."""
    connection = sqlite3.connect(store)
    ((known,),) = connection.execute("PRAGMA user_version").fetchall()
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    return int(known)


async def test_a_store_that_is_no_store_is_told_without_a_traceback() -> None:
    async with open_site() as site:
        site.data.mkdir()
        (site.data / "longboat.db").write_bytes(b"no database" * 100)
        said = await _fails(site)
        assert said.startswith(f"longboat: The database {site.data / 'longboat.db'} is damaged: ")
        assert "longboat store restore FILE" in said
        for word in ("longboat.db", "--data-dir"):
            assert word in said
        assert not site.socket.exists()
