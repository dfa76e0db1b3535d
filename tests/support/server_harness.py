"""A real server inside the test: real sockets, real runtime, real store, all under the test's own directory."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from longboat.config.load import user_config_file
from longboat.config.settings import ServerSection, Settings
from longboat.server.main import Serving, open_server
from secrecy import SECRETS, CheckedTransport, add_secrets, check_for_secrets

TOKEN = SECRETS["server token"]


def settings_in(path: Path, **changes: Any) -> Settings:
    """Settings that keep everything below `path`."""
    runtime = path / "run"
    defaults: dict[str, Any] = {
        "data_dir": path / "data",
        "runtime_dir": runtime,
        "socket": runtime / "longboat.sock",
        "host": "127.0.0.1",
        "token": TOKEN,
        "server": ServerSection(drain_s=1, max_body_mb=1, allowed_hosts=("box.example.com",)),
    }
    return Settings(**{**defaults, **changes})


NO_MODEL = {"models": {"large": "nobody/none", "small": "nobody/none"}, "titles": False}
"""A configuration that names a model which nobody has."""


def make_project(path: Path, config: dict[str, Any] = NO_MODEL) -> None:
    """A directory with this configuration, unless it has one."""
    path.mkdir(exist_ok=True)
    if not (path / "longboat.json").exists():
        (path / "longboat.json").write_text(json.dumps(config))


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server and a client on each of its doors."""

    settings: Settings
    serving: Serving
    unix: httpx2.AsyncClient
    tcp: httpx2.AsyncClient

    @property
    def socket(self) -> str:
        return str(self.settings.socket)

    async def workspace(self, path: Path) -> str:
        """The base path of a workspace of `path`, where no model can answer: a run there ends at once with an error."""
        make_project(path)
        answer = await self.unix.post("/v1/workspaces", json={"path": str(path)})
        assert answer.status_code in (200, 201), answer.text
        return f"/v1/workspaces/{answer.json()['id']}"

    async def session(self, workspace: str) -> str:
        answer = await self.unix.post(f"{workspace}/sessions", json={})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def raw(self, request: bytes) -> bytes:
        """Send bytes as they are over the unix socket and read until the server closes."""
        reader, writer = await asyncio.open_unix_connection(self.socket)
        writer.write(request)
        answer = await reader.read()
        check_for_secrets(answer, "the answer to raw bytes")
        writer.close()
        await writer.wait_closed()
        return answer


@asynccontextmanager
async def serve_in(path: Path, **changes: Any) -> AsyncIterator[Served]:
    settings = settings_in(path, **changes)
    add_secrets(user_config_file(os.environ, Path.home()))
    async with open_server(settings) as serving:
        url = serving.discovery.url or "http://nowhere"
        async with (
            httpx2.AsyncClient(
                transport=CheckedTransport(httpx2.AsyncHTTPTransport(uds=str(settings.socket))),
                base_url="http://longboat",
            ) as unix,
            httpx2.AsyncClient(
                transport=CheckedTransport(httpx2.AsyncHTTPTransport()),
                base_url=url,
                headers={"authorization": f"Bearer {TOKEN}"},
            ) as tcp,
        ):
            yield Served(settings=settings, serving=serving, unix=unix, tcp=tcp)


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of a refusal, whose body must be exactly a code and a message."""
    body = answer.json()
    assert sorted(body) == ["code", "message"], body
    assert body["message"]
    return answer.status_code, body["code"]


def checked_client(served: Served) -> httpx2.AsyncClient:
    """A client at the TCP door that shows no token."""
    transport = CheckedTransport(httpx2.AsyncHTTPTransport())
    return httpx2.AsyncClient(transport=transport, base_url=str(served.tcp.base_url))
