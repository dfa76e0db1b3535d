"""Three nodes behind a real nginx without sticky sessions: the very docs/deploy/nginx-nodes.conf."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from cli_home import LONGBOAT
from cluster import SiteFleet, open_fleet
from processes import ended
from reverse_proxy import NAME, Proxy, far_session, needs_nginx, nginx, trusting
from sessions import terminal_events

from longboat.client import Client
from longboat.testing import Pause, Say
from longboat.wire.models import Outcome, RunComplete

pytestmark = [pytest.mark.acceptance, *needs_nginx]


@asynccontextmanager
async def three_nodes() -> AsyncIterator[tuple[SiteFleet, Proxy]]:
    async with open_fleet("boat-1", "boat-2", "boat-3", allowed_hosts=[NAME]) as fleet:
        places = {f"{name}.internal:8911": f"127.0.0.1:{site.port}" for name, site in fleet.nodes.items()}
        async with nginx(fleet["boat-1"], places, name="nginx-nodes.conf") as proxy:
            yield fleet, proxy


async def answering(proxy: Proxy, token: dict[str, str]) -> str:
    """The node that nginx chose for a request."""
    async with proxy.open(headers=token) as http:
        nodes = (await http.get("/v1/nodes")).json()["items"]
        return next(str(each["name"]) for each in nodes if each["answering"])


async def test_g2_every_request_may_go_to_another_node() -> None:
    async with three_nodes() as (fleet, proxy):
        first = fleet["boat-1"]
        for site in fleet.nodes.values():
            site.model.add([Say("so far"), Pause(first.model.gate("hold")), Say(" so good")], name="slow")
        far = await far_session(first, proxy, fleet.project())
        async with far.watch("anna") as annas, far.watch("ben") as bens:
            await far.submit("[[slow]]", "r1")
            await far.submit("later", "r2", delivery="queue")
            for watch in (annas, bens):
                await watch.text("so far")
            first.model.gate("hold").open()
            for watch in (annas, bens):
                await watch.complete("r2")
        assert await far.check_books() == {"r1": "end_turn", "r2": "end_turn"}
        assert {await answering(proxy, first.headers) for _ in range(9)} == set(fleet.nodes)


async def test_g2_a_browser_that_logged_in_at_one_node_is_logged_in_at_all() -> None:
    """A cookie is the browser's for the name of the proxy, and each node listens on another port."""
    async with three_nodes() as (fleet, proxy), proxy.open() as browser:
        login = await browser.get("/login", params={"token": fleet.token})
        assert (login.status_code, len(browser.cookies)) == (303, 1)
        answers = [await browser.get("/v1/nodes") for _ in range(9)]
        assert {answer.status_code for answer in answers} == {200}
        names = {each["name"] for answer in answers for each in answer.json()["items"] if each["answering"]}
        assert names == set(fleet.nodes)


async def test_g9_a_rolling_restart_loses_no_run_and_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """One node after the other, as the docs tell, while a client prompts and another one watches."""
    async with three_nodes() as (fleet, proxy):
        for name, value in trusting(proxy).items():
            monkeypatch.setenv(name, value)
        directory = fleet.project()
        far = await far_session(fleet["boat-1"], proxy, directory)
        over, answered = asyncio.Event(), asyncio.Event()

        async def prompt() -> list[RunComplete]:
            ends = []
            async with Client() as client:
                while not over.is_set():
                    run = client.run("ahoy", path=directory, session_id=far.session_id)
                    ends += [event.payload async for event in run if isinstance(event.payload, RunComplete)]
                    answered.set()
            return ends

        async with asyncio.TaskGroup() as tasks:
            prompting = tasks.create_task(prompt())
            for site in fleet.nodes.values():
                site.server.terminate()
                assert await site.server.wait() == 0
                await site.serve()
                answered.clear()
                await answered.wait()
            over.set()
        ends = prompting.result()
        assert {end.outcome for end in ends} == {Outcome.END_TURN}
        told = [end.run_id for end in terminal_events((await far.replay(far.start)).events)]
        assert told == [end.run_id for end in ends], "each once, in the order of the log"


async def test_g9_the_command_line_says_at_most_that_it_reconnects_during_a_rolling_restart() -> None:
    async with three_nodes() as (fleet, proxy):
        for site in fleet.nodes.values():
            site.model.add([Say("ahoy")], name="ahoy", repeat=True)
        directory = fleet.project()
        environ = fleet["boat-1"].environ | trusting(proxy)
        over, answered = asyncio.Event(), asyncio.Event()
        told: set[str] = set()

        async def type_prompts() -> None:
            while not over.is_set():
                command = (*LONGBOAT, "run", "[[ahoy]]")
                process = await asyncio.create_subprocess_exec(
                    *command, cwd=directory, env=environ, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
                )
                done = await ended(process)
                assert (done.code, done.out) == (0, "ahoy\n"), done.err
                told.update(done.err.splitlines())
                answered.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(type_prompts())
            for site in fleet.nodes.values():
                site.server.terminate()
                assert await site.server.wait() == 0
                await site.serve()
                answered.clear()
                await answered.wait()
            over.set()
        assert told <= {"Connection lost. Reconnecting…", "Reconnected."}


async def test_g5_a_node_that_is_killed_costs_clients_of_the_proxy_nothing() -> None:
    async with three_nodes() as (fleet, proxy):
        far = await far_session(fleet["boat-2"], proxy, fleet.project())
        await fleet["boat-1"].kill()
        await fleet.expire("boat-1")
        for number in range(6):
            await far.submit("ahoy", f"r{number}", delivery="queue")
        async with far.watch("later", after=far.start) as watch:
            await watch.complete("r5")
        assert set((await far.check_books()).values()) == {"end_turn"}
