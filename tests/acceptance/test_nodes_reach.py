"""People are reached the same way through every node (G2): notifications, and who is asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from cluster import open_fleet
from processes import Site
from push_service import Subscriber, open_push_service
from sessions import SessionClient

from longboat.testing import CallTool, Say

pytestmark = pytest.mark.acceptance

QUESTION = CallTool("question", {"text": "Which one?"})


@asynccontextmanager
async def inbox(http: httpx2.AsyncClient) -> AsyncIterator[AsyncIterator[str]]:
    """The lines of an inbox stream where someone can answer; it is open."""
    url = "/v1/inbox/events"
    async with http.stream("GET", url, params={"client_id": "ann", "answers": "true"}) as answer:
        lines = answer.aiter_lines()
        while not (await anext(lines)).startswith("data:"):
            pass
        yield lines


async def unattended(site: Site) -> SessionClient:
    """A session whose owner has no client at which someone can answer."""
    session = await site.session(site.project())
    assert (await session.http.delete("/v1/clients/historian")).is_success  # who created it
    return session


async def answer(http: httpx2.AsyncClient, session: SessionClient) -> None:
    """Answer the only question that waits."""
    items: list[dict[str, Any]] = (await http.get("/v1/inbox", params={"client_id": "ann"})).json()["items"]
    (question,) = [item["question"] for item in items if item["kind"] == "question"]
    url = f"{session.workspace}/questions/{question['id']}"
    done = await http.post(url, json={"answer": ["this"], "client_id": "ann"})
    assert done.status_code == 200, done.text


async def test_g2_a_person_at_the_inbox_of_another_node_is_asked() -> None:
    """The owner used to decide alone."""
    async with open_fleet("owner", "door") as fleet:
        fleet["owner"].model.add([QUESTION], [Say("Thanks.")], name="ask")
        session = await unattended(fleet["owner"])
        http = await fleet["door"].client()
        async with inbox(http) as lines:
            await session.submit("[[ask]]", "r1")
            while '"question"' not in await anext(lines):
                pass
        await answer(http, session)
        assert await session.outcome("r1") == "end_turn"
        assert [text for role, text, _ in await session.transcript() if role == "assistant"][-1] == "Thanks."


async def test_g2_a_browser_subscribed_at_any_node_is_notified_once_and_of_all_nodes() -> None:
    async with (
        open_push_service() as service,
        open_fleet("a", "b", push={"allowed_networks": ["127.0.0.0/8"]}) as fleet,
    ):
        clients = [await fleet[name].client() for name in "ab"]
        keys = [each.json() for each in await asyncio.gather(*(http.get("/v1/push") for http in clients))]
        assert keys[0] == keys[1]
        browser = Subscriber()
        wish = {"client_id": "ann:web", "endpoint": service.url + "/ann", "keys": browser.keys}
        assert (await clients[1].post("/v1/push/subscriptions", json=wish)).status_code == 204
        for name in "ab":
            fleet[name].model.add([QUESTION], [Say("Thanks.")], name="ask")
            session = await unattended(fleet[name])
            await session.submit("[[ask]]", "r1", client_id="ann:cli")
            pushed = await service.pushed.get()
            assert pushed.claims["key"] == keys[0]["public_key"]
            assert browser.decrypt(pushed.body)["title"] == "Longboat has a question"
            await answer(clients[0], session)
            assert browser.decrypt((await service.pushed.get()).body)["title"] == "Run finished"
        assert (await clients[0].delete("/v1/push/subscriptions", params={"endpoint": wish["endpoint"]})).is_success
        await session.submit("go on", "r2", client_id="ann:cli")
        assert await session.outcome("r2") == "end_turn"
        assert service.pushed.empty()
