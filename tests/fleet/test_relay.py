"""What a node makes of others that answer strangely."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import cast

import pytest

from longboat.fleet.node import Node, _on_this_machine
from longboat.fleet.relay import HandedOn, NoConnection, Relay

REQUEST = HandedOn(method="GET", target="/v1/workspaces/w", headers={})


@pytest.fixture
async def stranger() -> AsyncIterator[str]:
    """Refuses every request, as a node whose clock stood still does, or a server that is none of ours."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
def relay() -> Relay:
    node = SimpleNamespace(
        name="a", secret=b"s", relayed=0, database_time=lambda: 0.0, when_peer_gone=lambda told: None
    )
    return Relay(cast(Node, node), silent_s=60.0)


async def test_g13_a_refused_signature_is_no_answer_for_the_client(relay: Relay, stranger: str) -> None:
    """The client has the right token: it was told 401."""
    with pytest.raises(NoConnection):
        await relay.send(stranger, REQUEST, again=False)
    with pytest.raises(NoConnection):
        await relay.probe(stranger)


@pytest.mark.parametrize(
    ("host", "reached"), [("0.0.0.0", "here:80"), ("::", "here:80"), ("10.0.0.1", "url:80"), (None, "url:80")]
)
def test_g1_a_node_that_listens_everywhere_is_reached_by_its_machines_name(
    host: str | None, reached: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each told the others that it was at 127.0.0.1."""
    monkeypatch.setattr("longboat.fleet.node.gethostname", lambda: "here")
    assert _on_this_machine("http://url:80", host) == f"http://{reached}"
