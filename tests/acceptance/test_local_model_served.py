"""The real local model behind a real server: it streams, it is canceled, its client disconnects."""

from pathlib import Path

import pytest
from local_files import demo_file, put
from processes import Site, open_site
from sessions import SessionClient

from longboat.models.local.known import DEMO
from longboat.models.local.process import runtime_installed

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.local_model,
    pytest.mark.skipif(not runtime_installed(), reason="run: pip install 'longboat[local]'"),
]


@pytest.fixture(scope="module")
def fetched() -> Path:
    return demo_file()


def _site_with(site: Site, fetched: Path) -> Path:
    put(fetched, site.data)
    return site.project(providers={}, models={"large": f"local/{DEMO.id}"})


async def test_the_local_model_streams_is_canceled_and_outlives_its_client(fetched: Path) -> None:
    async with open_site() as site:
        directory = _site_with(site, fetched)
        await site.serve()
        session = await site.session(directory)
        await _streams(session)
        await _is_canceled(session)
        await _outlives_its_client(site, session)
        outcomes = {"streamed": "end_turn", "canceled": "canceled", "next": "end_turn", "orphan": "end_turn"}
        assert await session.check_books() == outcomes


async def _streams(session: SessionClient) -> None:
    async with session.watch() as watch:
        await session.submit("Name three colors.", "streamed")
        complete = await watch.complete("streamed")
    deltas = [event.payload.text for event in watch.events if event.type == "message_delta"]
    assert len(deltas) > 1
    assert "".join(deltas) == complete.text
    assert complete.text.strip()
    loading = [e for e in watch.events if e.type == "agent_event" and e.payload.type == "loading"]
    assert loading, "nothing said that the model was being loaded"


async def _is_canceled(session: SessionClient) -> None:
    async with session.watch() as watch:
        await session.submit("Tell me a very long story about the sea, with many chapters.", "canceled")
        await watch.until(lambda e: e.type == "message_delta" and e.payload.run_id == "canceled")
        assert await session.cancel() == ["canceled"]
        complete = await watch.complete("canceled")
        assert (complete.cancelled, bool(complete.text), complete.error) == (True, True, "")
        await session.submit("Say hello.", "next")
        assert (await watch.complete("next")).outcome == "end_turn"


async def _outlives_its_client(site: Site, session: SessionClient) -> None:
    other = await site.back_at(session)
    async with other.watch("short-lived") as watch:
        await other.submit("Count to three.", "orphan")
        await watch.until(lambda e: e.type == "message_delta" and e.payload.run_id == "orphan")
        await other.http.aclose()
    assert await session.outcome("orphan") == "end_turn"
