"""The HTTP client of the native adapter, against sockets that say exactly what the test wants."""

import asyncio
import math
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from longboat.models.http_client import (
    MAX_BUFFERED,
    Answer,
    DirectHttp,
    HttpClient,
    ServerSilent,
    Timeouts,
    UnsendableRequest,
    needs_proxy,
    tls_context,
)
from longboat.models.proxied_http import ProxiedHttp

LONG = Timeouts(connect_s=10, first_s=30, idle_s=30)
OK = b"HTTP/1.1 200 OK\r\n"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers each request of a connection with what `handler` writes; keeps count."""

    def __init__(self) -> None:
        self.url = ""
        self.connections = 0
        self.requests: list[bytes] = []
        self.closed = asyncio.Event()
        """A client has left."""


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return head + await reader.readexactly(int(length.split(b":")[1]))


@asynccontextmanager
async def serving(*answers: bytes | Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Each request gets the next of `answers`; the last again and again."""
    server = Server()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            while True:
                server.requests.append(await read_request(reader))
                answer = answers[min(len(server.requests), len(answers)) - 1]
                if isinstance(answer, bytes):
                    writer.write(answer)
                    if b"Transfer-Encoding" not in answer and b"Content-Length" not in answer:
                        return  # the end of the connection is the end of the body
                else:
                    await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            server.closed.set()
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1?a=b"
        yield server


async def ask(client: HttpClient, body: bytes = b"{}") -> tuple[int, bytes]:
    answer = await client.post({"X-Test": "yes"}, body)
    try:
        return answer.status, await read_all(answer)
    finally:
        await answer.aclose()


async def read_all(answer: Answer) -> bytes:
    body = b""
    while pieces := await answer.read():
        body += pieces
    return body


@asynccontextmanager
async def asking(url: str, timeouts: Timeouts = LONG) -> AsyncIterator[DirectHttp]:
    client = DirectHttp(url, timeouts)
    try:
        yield client
    finally:
        await client.aclose()


@pytest.mark.parametrize(
    ("answer", "body", "kept"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", b"hello", True),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", b"hello", True),
        (OK + b"\r\nhello", b"hello", False),
        (OK + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello", b"hello", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello", b"hello", True),
        (OK + b"Content-Length: 0\r\n\r\n", b"", True),
    ],
    ids=["length", "chunks", "until the end", "close", "after 100", "nothing"],
)
async def test_bodies_of_every_kind_are_read(answer: bytes, body: bytes, kept: bool) -> None:
    async with serving(answer) as server, asking(server.url) as client:
        assert [await ask(client) for _ in range(2)] == [(200, body)] * 2
        assert server.connections == (1 if kept else 2)


async def test_the_request_is_what_a_server_expects() -> None:
    async with serving(OK + b"Content-Length: 0\r\n\r\n") as server:
        secret = server.url.replace("127.0.0.1", "ann:p%40ss@127.0.0.1")
        async with asking(secret) as client:
            await ask(client, b'{"a":1}')
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        assert lines[0] == "POST /v1?a=b HTTP/1.1"
        assert lines[1] == "Host: " + server.url.split("/")[2]
        assert "Authorization: Basic YW5uOnBAc3M=" in lines
        assert "X-Test: yes" in lines
        assert body == b'{"a":1}'


async def test_a_kept_connection_that_was_closed_meanwhile_is_replaced() -> None:
    async def answer_and_leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"Content-Length: 2\r\n\r\nhi")
        await writer.drain()
        raise ConnectionError

    async with serving(answer_and_leave) as server, asking(server.url) as client:
        assert [await ask(client) for _ in range(3)] == [(200, b"hi")] * 3
        assert server.connections == 3


async def test_a_kept_connection_that_closes_on_the_next_request_is_replaced() -> None:
    """The server hangs up just as the request arrives: nothing was answered, so another try is safe."""

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise ConnectionError

    whole = OK + b"Content-Length: 2\r\n\r\nhi"
    async with serving(whole, hang_up, whole) as server, asking(server.url) as client:
        assert [await ask(client) for _ in range(2)] == [(200, b"hi")] * 2
        assert (server.connections, len(server.requests)) == (2, 3)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        OK + b"X: " + b"x" * 100_000 + b"\r\n\r\n",
        OK + b"Content-Length: 9\r\nConnection: close\r\n\r\nhalf",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["another protocol", "an endless header", "cut off", "no chunk"],
)
async def test_what_is_no_answer_is_an_error(answer: bytes) -> None:
    async def write_and_leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        raise ConnectionError

    async with serving(write_and_leave) as server, asking(server.url) as client:
        with pytest.raises(ConnectionError):
            await ask(client)


@pytest.mark.parametrize(
    "piece", [b"x" * 25, b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["a header without an end", "only 100 Continue"]
)
async def test_a_head_without_an_end_is_given_up(piece: bytes) -> None:
    async def begin_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((OK + b"X: " if piece.startswith(b"x") else b"") + piece * 10_000)
        await reader.readexactly(1)

    async with serving(begin_only) as server, asking(server.url) as client:
        with pytest.raises(ConnectionError, match="headers are too long"):
            await ask(client)
        await server.closed.wait()


async def test_a_head_that_trickles_in_has_no_more_time_than_one_that_does_not_come() -> None:
    async def trickle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"X: ")
        for _ in range(200):
            writer.write(b"x")
            await asyncio.sleep(0.01)  # the pace of this server; nobody waits for its end
        writer.write(b"\r\nContent-Length: 2\r\n\r\nhi")

    async with serving(trickle) as server, asking(server.url, Timeouts(connect_s=10, first_s=0.1, idle_s=30)) as client:
        with pytest.raises(ServerSilent):
            await ask(client)


@pytest.mark.parametrize("began", [False, True])
async def test_silence_has_an_end(began: bool) -> None:
    async def fall_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"Content-Length: 9\r\n\r\n" + (b"half" if began else b""))
        await reader.read()

    short = Timeouts(connect_s=10, first_s=30 if began else 0.05, idle_s=0.05 if began else 30)
    async with serving(fall_silent) as server, asking(server.url, short) as client:
        with pytest.raises(ServerSilent) as silent:
            await ask(client)
        assert (silent.value.seconds, silent.value.began) == (0.05, began)


async def test_who_waits_for_the_head_without_a_limit_does_not_wait_so_for_the_body() -> None:
    async def fall_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"Content-Length: 9\r\n\r\n")
        await reader.read()

    patient = Timeouts(connect_s=10, first_s=math.inf, idle_s=0.05)
    async with serving(fall_silent) as server, asking(server.url, patient) as client:
        with pytest.raises(ServerSilent) as silent:
            await ask(client)
        assert (silent.value.seconds, silent.value.began) == (0.05, False)


async def test_who_leaves_in_the_middle_closes_the_connection_at_once() -> None:
    async def go_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n")
        await reader.readexactly(1)

    async with serving(go_on) as server, asking(server.url) as client:
        answer = await client.post({}, b"")
        assert await answer.read() == b"he"
        await answer.aclose()
        await server.closed.wait()


async def test_who_is_canceled_while_waiting_closes_the_connection_at_once() -> None:
    asked = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.readexactly(1)

    async with serving(say_nothing) as server, asking(server.url) as client:
        waiting = asyncio.ensure_future(ask(client))
        await asked.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        await server.closed.wait()


async def test_a_slow_reader_slows_the_server_down() -> None:
    piece = b"x" * 65536
    total = 0
    stopped = asyncio.Event()

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal total
        writer.write(OK + b"Content-Length: %d\r\n\r\n" % (1000 * len(piece)))
        for _ in range(1000):
            writer.write(piece)
            try:
                async with asyncio.timeout(0.2):
                    await writer.drain()
            except TimeoutError:
                stopped.set()
                await writer.drain()
            total += len(piece)

    async with serving(flood) as server, asking(server.url) as client:
        answer = await client.post({}, b"")
        first = len(await answer.read())
        await stopped.wait()
        assert total < 1000 * len(piece)
        second = len(await answer.read())
        assert second < MAX_BUFFERED + 2 * 1024 * 1024
        assert first + second + len(await read_all(answer)) == 1000 * len(piece)
        await answer.aclose()


@pytest.mark.parametrize("url", ["ftp://h/", "http://", "http://[::1/", "http://h:port/", "http://hé/", "http://h/\n"])
async def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(UnsendableRequest):
        await DirectHttp(url, LONG).post({}, b"")


@pytest.mark.parametrize("headers", [{"A": "b\r\nC: d"}, {"A b": "c"}, {"": "c"}, {"A": "☃"}])
async def test_what_is_no_header_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(UnsendableRequest):
        await DirectHttp("http://127.0.0.1:9/", LONG).post(headers, b"")


def certificate(directory: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = directory / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


async def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    async with serving(OK + b"Content-Length: 2\r\n\r\nhi", tls=context) as server, asking(server.url) as client:
        with pytest.raises(ssl.SSLCertVerificationError):
            await ask(client)
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        tls_context.cache_clear()
        try:
            assert await ask(client) == (200, b"hi")
        finally:
            tls_context.cache_clear()


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "inside.example")
    assert not needs_proxy("http://models.example/v1")
    async with serving(OK + b"Content-Length: 2\r\n\r\nhi") as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.split("/v1")[0])
        assert needs_proxy("http://models.example/v1")
        assert not needs_proxy("http://inside.example/v1")
        assert not needs_proxy("https://models.example/v1")
        client = ProxiedHttp("http://models.example/v1", LONG)
        assert await ask(client) == (200, b"hi")
        await client.aclose()
        assert proxy.requests[0].startswith(b"POST http://models.example/v1 HTTP/1.1\r\n")


def test_it_works_on_the_loop_of_the_server() -> None:
    async def exchange() -> None:
        async def fall_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(OK + b"Content-Length: 9\r\n\r\nhalf")
            await reader.read()

        whole = OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
        short = Timeouts(connect_s=10, first_s=30, idle_s=0.05)
        async with serving(whole, whole, fall_silent) as server, asking(server.url, short) as client:
            assert [await ask(client) for _ in range(2)] == [(200, b"hi")] * 2
            assert server.connections == 1
            with pytest.raises(ServerSilent):
                await ask(client)

    uvloop.run(exchange())
