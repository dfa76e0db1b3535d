"""A web site on loopback for tests: answers what it is told to, byte for byte, and remembers who asked."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Reply = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    target: str
    headers: dict[str, str]


@dataclass(slots=True, kw_only=True)
class Site:
    host: str
    port: int = 0
    replies: dict[str, Reply] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            target = first.split()[1]
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            self.hits.append(Hit(target=target, headers=headers))
            reply = self.replies.get(target.partition("?")[0], page("not here", status="404 Not Found"))
            if isinstance(reply, bytes):
                writer.write(reply)
                await writer.drain()
            else:
                await reply(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def page(body: str | bytes, *, status: str = "200 OK", kind: str = "text/plain", **headers: str) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    head = {"content-type": kind, "content-length": str(len(content)), "connection": "close", **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in head.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + content


def redirect(location: str) -> bytes:
    return page("", status="302 Found", location=location)


@asynccontextmanager
async def open_site(host: str = "127.0.0.2", *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    site = Site(host=host)
    server = await asyncio.start_server(site.answer, host, 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        yield site
