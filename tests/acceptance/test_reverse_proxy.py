"""Longboat behind a real reverse proxy with TLS: see reverse_proxy.py."""

import asyncio
import json
import os
import pty
import termios
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from types import MappingProxyType
from typing import Any

import httpx2
import pytest
from cli_home import LONGBOAT
from processes import Site, ended, open_site
from reverse_proxy import NAME, Proxy, far_session, needs_nginx, nginx, trusting
from sessions import SessionClient

from longboat.client import Client
from longboat.errors import LongboatError, ServerUnreachable
from longboat.testing import CallTool, Pause, Say, words
from longboat.wire.asks import PermissionAnswer
from longboat.wire.events import Event
from longboat.wire.models import Outcome, RunComplete
from longboat.wire.requests import Submit
from longboat.wire.sse import HEARTBEAT
from secrecy import SECRETS

pytestmark = [pytest.mark.acceptance, *needs_nginx]


@asynccontextmanager
async def behind_nginx(
    changes: Mapping[str, str] = MappingProxyType({}), **server: Any
) -> AsyncIterator[tuple[Site, Proxy]]:
    """A server that knows the proxy's name, and the proxy. `server`: of its configuration."""
    async with open_site("tcp") as site:
        config = {"server": {"drain_s": 1, "allowed_hosts": [NAME], **server}}
        (site.path / "config" / "longboat" / "longboat.json").write_text(json.dumps(config))
        await site.serve()
        async with nginx(site, {"127.0.0.1:8911": f"127.0.0.1:{site.port}", **changes}) as proxy:
            yield site, proxy


# The stream


async def test_a_delta_arrives_through_the_proxy_while_the_model_still_speaks() -> None:
    async with behind_nginx() as (site, proxy):
        site.model.add([Say("so far"), Pause(site.model.gate("hold")), Say(" so good")], name="slow")
        far = await far_session(site, proxy, site.project())
        async with far.watch("far") as watch:
            await far.submit("[[slow]]", "r1")
            await watch.text("so far")
            assert (await far.run("r1"))["state"] == "active", "the gate is closed, so the run cannot be over"
            site.model.gate("hold").open()
            assert (await watch.complete("r1")).text == "so far so good"


async def test_the_log_read_through_the_proxy_is_the_log_byte_for_byte_from_any_cursor() -> None:
    async with behind_nginx() as (site, proxy):
        far = await far_session(site, proxy, site.project())
        near = SessionClient(await site.client(), far.workspace, far.session_id, start=far.start)
        await far.submit("[[burst:400]]", "r1")
        await far.submit("and this", "r2")
        assert [await far.outcome(run_id) for run_id in ("r1", "r2")] == ["end_turn", "end_turn"]
        whole = (await near.replay()).frames
        assert (await far.replay()).frames == whole
        middle = len(whole) // 2
        after = whole[middle].partition(b"\n")[0].removeprefix(b"id: ").decode()
        assert (await far.replay(after)).frames == whole[middle + 1 :]


@pytest.mark.parametrize("heartbeat_s", [1, 15])
async def test_a_silent_stream_outlives_the_timeout_of_the_proxy_by_its_heartbeat_alone(heartbeat_s: int) -> None:
    short = {"proxy_read_timeout 90s;": "proxy_read_timeout 3s;"}
    async with behind_nginx(short, heartbeat_s=heartbeat_s) as (site, proxy):
        far = await far_session(site, proxy, site.project())
        beats, heard = 0, b""
        async with far.http.stream("GET", f"{far.workspace}/events?client_id=far") as answer:
            if heartbeat_s == 15:
                with pytest.raises(httpx2.RemoteProtocolError):
                    await answer.aread()
                return
            async for chunk in answer.aiter_raw():
                beats += chunk.count(HEARTBEAT)
                heard += chunk
                if beats == 5:  # longer than the timeout
                    await far.submit("still there?", "r1")
                if b"run_complete" in heard:
                    break
        assert beats >= 5
        assert b"echo: still there?" in heard


# What clients do


async def test_prompts_steering_cancels_and_permissions_work_through_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with behind_nginx() as (site, proxy):
        directory = site.project()
        write = CallTool("write", json.dumps({"path": "a.txt", "content": "ahoy\n"}))
        site.model.add([write], [Say("Written.")], name="work")
        site.model.add([*words("on and on"), Pause(site.model.gate("hold"))], name="long")
        for name, value in trusting(proxy).items():
            monkeypatch.setenv(name, value)
        async with Client(client_id="anna") as anna, Client(client_id="ben") as ben:
            workspace = await anna.join(directory)
            session = await anna.create_session(workspace.id)
            async with aclosing(ben.events(workspace.id)) as stream:
                await anna.submit(workspace.id, Submit(session_id=session.id, prompt="[[work]]", run_id="r1"))
                async for event in stream:
                    if event.type == "permission_request":
                        await ben.answer_permission(workspace.id, event.payload.id, PermissionAnswer.ONCE)
                    if event.type == "run_complete":
                        break
                assert (directory / "a.txt").read_text() == "ahoy\n"
                await anna.submit(workspace.id, Submit(session_id=session.id, prompt="[[long]]", run_id="r2"))
                await site.model.gate("hold").reached()
                await anna.submit(workspace.id, Submit(session_id=session.id, prompt="later", run_id="r3"))
                assert set((await ben.cancel_session(workspace.id, session.id)).canceled) == {"r2", "r3"}
                outcomes: dict[str, Outcome] = {}
                async for event in stream:
                    if event.type == "run_complete":
                        outcomes[event.payload.run_id] = event.payload.outcome
                    if len(outcomes) == 2:
                        break
                assert outcomes == {"r2": Outcome.CANCELED, "r3": Outcome.CANCELED}


async def test_a_large_body_passes_and_one_above_the_limit_is_refused_as_such() -> None:
    async with behind_nginx() as (site, proxy):
        far = await far_session(site, proxy, site.project())
        text = {"name": "a.txt", "media_type": "text/plain", "text": "x" * (3 * 1024 * 1024)}
        answer = await far.ask("look", "r1", attachments=[text])
        assert answer.status_code == 202, "nginx by itself refuses more than 1 MB"
        more = await far.http.post(f"{far.workspace}/agent", content=b"x" * (17 * 1024 * 1024))
        assert more.status_code == 413


async def test_longboat_run_and_status_work_through_the_proxy_as_the_docs_tell() -> None:
    async with behind_nginx() as (site, proxy):
        directory = site.project()
        site.environ |= trusting(proxy)
        done = await ended(await site.longboat("run", "ahoy", cwd=directory))
        assert (done.code, done.out) == (0, "echo: ahoy\n"), done
        shown = await ended(await site.longboat("status", cwd=directory))
        assert proxy.url in shown.out
        site.environ["LONGBOAT_TOKEN"] = "wrong"
        refused = await ended(await site.longboat("run", "ahoy", cwd=directory))
        assert refused.code == 1
        assert "token" in refused.err
        del site.environ["SSL_CERT_FILE"]
        doubtful = await ended(await site.longboat("run", "ahoy", cwd=directory))
        assert doubtful.code == 1
        assert "SSL_CERT_FILE" in doubtful.err


async def test_longboat_attach_shows_a_session_live_through_the_proxy_and_takes_prompts_for_it() -> None:
    async with behind_nginx() as (site, proxy):
        site.model.add([Say("whale-ahead"), Pause(site.model.gate("hold"))], name="slow")
        directory = site.project()
        far = await far_session(site, proxy, directory)
        outer, inner = pty.openpty()
        termios.tcsetwinsize(inner, (40, 120))
        command = ["attach", proxy.url, "--cwd", str(directory), "-s", far.session_id]
        attached = await asyncio.create_subprocess_exec(
            *(*LONGBOAT, *command),
            env=site.environ | trusting(proxy) | {"TERM": "xterm-256color"},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        site.processes.append(attached)
        os.close(inner)
        screen = asyncio.StreamReader(limit=1 << 24)
        terminal, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(screen), os.fdopen(outer, "r+b", buffering=0)
        )
        await far.submit("[[slow]]", "r1")
        await screen.readuntil(b"whale-ahead")
        assert (await far.run("r1"))["state"] == "active", "it is shown while it streams"
        async with far.watch("far") as watch:
            os.write(outer, b"and then?\r")
            event = await watch.until(lambda event: event.type == "run" and event.payload.prompt == "and then?")
        assert event.payload.client_id.partition(":")[2].startswith("tui-")
        attached.kill()
        await attached.wait()
        terminal.close()


# Who may come in


async def test_foreign_hosts_foreign_pages_and_strangers_are_refused_behind_the_proxy_too() -> None:
    async with behind_nginx() as (site, proxy), proxy.open() as http:

        async def status(**headers: str) -> int:
            return (await http.get("/v1/workspaces", headers=headers)).status_code

        token = site.headers["authorization"]
        assert await status(authorization=token) == 200
        assert await status() == 401
        assert await status(authorization="Bearer wrong") == 401
        assert await status(authorization=token, host="evil.example.com") == 421
        assert await status(authorization=token, origin="https://evil.example.com") == 403
        assert await status(authorization=token, origin="null") == 403
        assert await status(authorization=token, origin=proxy.url) == 200
        assert await status(authorization=token, origin=proxy.plain_url) == 403, "another port of the same name"
        assert await status(authorization=token, origin=proxy.url.replace("https:", "http:")) == 403
        assert await status(authorization=token, origin=f"https://{NAME}") == 403
        assert (await http.get("/v1/health")).status_code == 200


async def test_without_allowed_hosts_the_proxys_name_is_foreign() -> None:
    async with behind_nginx(allowed_hosts=[]) as (site, proxy), proxy.open(headers=site.headers) as http:
        answer = await http.get("/v1/workspaces")
        assert (answer.status_code, answer.json()["code"]) == (421, "foreign_host")


async def test_a_browser_logs_in_over_tls_with_a_cookie_that_goes_over_tls_alone() -> None:
    async with behind_nginx() as (site, proxy):
        token = SECRETS["server token"]
        async with proxy.open() as browser, httpx2.AsyncClient(base_url=site.discovery().url or "") as direct:
            stranger = await browser.get("/")
            assert (stranger.status_code, "Log in" in stranger.text) == (401, True)
            form = {"origin": proxy.url, "content-type": "application/x-www-form-urlencoded"}
            welcome = await browser.post("/login", content=f"token={token}", headers=form)
            assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
            assert welcome.headers["set-cookie"].endswith("; HttpOnly; SameSite=Lax; Path=/; Secure")
            assert (await browser.get("/")).status_code == 200
            assert (await browser.get("/v1/workspaces", headers={"origin": proxy.url})).status_code == 200
            by_link = await browser.get("/login", params={"token": token})
            assert by_link.headers["set-cookie"].endswith("; Secure")
            claimed = await direct.get("/login", params={"token": token}, headers={"x-forwarded-proto": "https"})
            assert claimed.headers["set-cookie"].endswith("; Path=/"), "a proxy that nobody spoke of is not believed"


async def test_whoever_comes_without_tls_is_sent_to_tls() -> None:
    async with behind_nginx() as (_, proxy), httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.get(f"{proxy.plain_url}/stats?days=7")
        assert (answer.status_code, answer.headers["location"]) == (301, f"https://{NAME}/stats?days=7")


# A server that goes and comes


async def test_f6_a_client_behind_the_proxy_gets_over_a_server_that_is_killed_and_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with behind_nginx() as (site, proxy):
        site.model.add([Say("so far"), Pause(site.model.gate("hold"))], name="slow")
        for name, value in trusting(proxy).items():
            monkeypatch.setenv(name, value)
        directory = site.project()
        outages: asyncio.Queue[LongboatError | None] = asyncio.Queue()
        async with Client(on_outage=outages.put_nowait) as client:
            run = client.run("[[slow]]", path=directory, run_id="r1")
            async with aclosing(run):
                async for event in run:
                    if event.type == "message_delta":
                        break
                await site.kill()
                async with asyncio.TaskGroup() as tasks:
                    first = tasks.create_task(last(run))
                    assert isinstance(await outages.get(), ServerUnreachable)
                    second = tasks.create_task(last(client.run("ahoy", path=directory, run_id="r2")))
                    told = await outages.get()
                    assert isinstance(told, ServerUnreachable)
                    assert "502" in told.message
                    await site.serve()
        assert (first.result().outcome, first.result().text) == (Outcome.INTERRUPTED, "so far")
        assert (second.result().outcome, second.result().text) == (Outcome.END_TURN, "echo: ahoy")


async def last(run: AsyncGenerator[Event, None]) -> RunComplete:
    (complete,) = [event.payload async for event in run if isinstance(event.payload, RunComplete)]
    return complete
