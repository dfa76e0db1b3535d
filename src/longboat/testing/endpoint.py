"""A real OpenAI-compatible HTTP server that answers from a script: for tests that drive whole processes.

    async with ScriptedEndpoint() as endpoint:
        endpoint.add([Say("Hello")], [Refuse(500)])
        … a provider with base_url=endpoint.base_url …

or `python -m longboat.testing.endpoint [--port P] [--script FILE]`, which prints `listening on URL` and obeys:

    POST /control/script           add a script (`encode_script` makes the body)
    POST /control/gate/{name}      open a gate;  GET ?wait=S: wait until it is reached
    GET  /control/requests         what was asked so far; ?count=N&wait=S: wait for N of them
    GET  /control/requests/{i}     one of them; ?wait=S: wait until it has ended
    POST /control/reset            forget scripts, gates and requests

Which step answers: a marker `[[name]]` in the last prompt takes the next step of script `name`; `[[burst:N]]` sends N
chunks as fast as it can (`[[burst:N:K]]`: K of them in one write); otherwise the next step of the common queue; and
when that is empty, `echo: <the last prompt>` word by word. A request without `"stream": true` gets the same answer in
one document.
"""

import argparse
import asyncio
import re
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec

from longboat.tasks import Tasks
from longboat.testing.answer import Answer, Dropped, burst
from longboat.testing.script import (
    Gate,
    HttpStep,
    Recorded,
    Refuse,
    Script,
    ScriptBody,
    ScriptExhausted,
    decode_script,
    decode_scripts,
    words,
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_MARKER = re.compile(r"\[\[([\w.-]+)(?::(\d+))?(?::(\d+))?\]\]")
_BURST_BATCH = 32


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One model request that came, and what became of it."""

    path: str
    peer: str
    """The client's address: the same for requests that share a connection."""
    headers: dict[str, str]
    body: dict[str, Any]
    state: str = "open"
    """`open`, `answered` (to the script's end, also where that is a fault) or `abandoned` (the client left first)."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def prompt(self) -> str:
        """The text of the last user message."""
        for message in reversed(self.body.get("messages", [])):
            if message["role"] == "user":
                content = message["content"]
                if isinstance(content, str):
                    return content
                return "\n\n".join(piece["text"] for piece in content if piece["type"] == "text")
        return ""

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "peer": self.peer, "headers": self.headers, "body": self.body, "state": self.state}


class ScriptedEndpoint:
    """The server, and the ASGI application that it serves."""

    def __init__(
        self, *, port: int = 0, api_key: str | None = None, models: tuple[str, ...] | None = ("scripted",)
    ) -> None:
        """With `api_key`, requests without it are refused with 401. `models`: the names that it lists; None: it has no
        list."""
        self.port = port
        self.api_key = api_key
        self.models = models
        self.lists: Recorded[dict[str, str]] = Recorded()
        """The headers of the requests for the list of models."""
        self.requests: Recorded[Exchange] = Recorded()
        self._queue: Script[HttpStep] = Script()
        self._named: dict[str, Script[HttpStep]] = {}
        self._gates: dict[str, Gate] = {}
        self._answers = Tasks()
        self._stack = AsyncExitStack()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What a provider's `base_url` is set to."""
        return f"{self.url}/v1"

    def add(self, *steps: HttpStep, name: str | None = None, repeat: bool = False) -> None:
        """Append steps to the common queue, or define the script `name` that a marker in a prompt selects."""
        if name is not None:
            self._named[name] = Script(steps, repeat=repeat)
        elif repeat:
            self._queue = Script(steps, repeat=True)
        else:
            self._queue.add(*steps)

    def add_body(self, script: ScriptBody) -> None:
        self.add(*script.steps, name=script.name, repeat=script.repeat)

    def gate(self, name: str) -> Gate:
        """The gate that `{"type": "pause", "gate": name}` waits at."""
        return self._gates.setdefault(name, Gate(name))

    def reset(self) -> None:
        """Forget scripts, gates and requests."""
        self._queue = Script()
        self._named.clear()
        self._gates.clear()
        self.requests.clear()

    async def __aenter__(self) -> "ScriptedEndpoint":
        await self._stack.enter_async_context(_serving(self))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._answers.aclose()
        await self._stack.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        body = await _body(receive)
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        if path == "/v1/models":
            self.lists.note(headers)
        if path.startswith("/v1/") and self.api_key not in (None, headers.get("authorization", "").partition(" ")[2]):
            told = f"Incorrect API key provided: {headers.get('authorization', '')}"
            await _send_json(send, 401, {"error": {"message": told, "code": "invalid_api_key"}})
        elif path.endswith("/chat/completions") and method == "POST":
            await self._complete(scope, body, receive, send)
        elif path.startswith("/control/"):
            status, reply = await self._control(method, path.split("/")[2:], _query(scope), body)
            await _send_json(send, status, reply)
        elif path == "/v1/models" and self.models is not None:
            listed = [{"id": name, "object": "model"} for name in self.models]
            await _send_json(send, 200, {"object": "list", "data": listed})
        else:
            await _send_json(send, 404, {"error": {"message": f"no route {method} {path}", "code": "not_found"}})

    async def _complete(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        peer = "{}:{}".format(*scope["client"])
        exchange = Exchange(path=scope["path"], peer=peer, headers=headers, body=msgspec.json.decode(body))
        self.requests.note(exchange)
        answer = self._answers.spawn(self._answer(exchange, send), name="answer", awaited=True)
        departure = self._answers.spawn(_departure(receive), name="departure", awaited=True)
        try:
            await asyncio.wait({answer, departure}, return_when=asyncio.FIRST_COMPLETED)
            exchange.state = "answered" if answer.done() else "abandoned"
        finally:
            answer.cancel()
            departure.cancel()
            exchange.ended.set()
        with suppress(asyncio.CancelledError, Dropped):
            await answer

    async def _answer(self, exchange: Exchange, send: Send) -> None:
        markers = _MARKER.findall(exchange.prompt)
        streams = exchange.body.get("stream") is True
        answer = Answer(send, model=str(exchange.body.get("model", "")), number=len(self.requests), streams=streams)
        if markers and markers[-1][0] == "burst" and markers[-1][1]:
            _, count, batch = markers[-1]
            await answer.send_all(burst(int(count), int(batch or _BURST_BATCH)))
        else:
            await answer.play(self._step(exchange, markers[-1][0] if markers else None))

    def _step(self, exchange: Exchange, name: str | None) -> HttpStep:
        try:
            if name is not None:
                return self._named[name].take()
            return self._queue.take() if self._queue.left else words(f"echo: {exchange.prompt}")
        except KeyError:
            return [Refuse(400, message=f"no script {name!r} was given to the scripted endpoint")]
        except ScriptExhausted as error:
            return [Refuse(400, message=f"script {name!r}: {error}")]

    async def _control(
        self, method: str, route: list[str], query: dict[str, float], body: bytes
    ) -> tuple[int, dict[str, Any]]:
        wait_s = query.get("wait", 0.0)
        match method, route:
            case "POST", ["script"]:
                try:
                    self.add_body(decode_script(body, self.gate))
                except msgspec.DecodeError as error:
                    return 400, {"error": {"message": f"not a script: {error}"}}
            case "POST", ["reset"]:
                self.reset()
            case "POST", ["gate", name]:
                self.gate(name).open()
            case "GET", ["gate", name]:
                gate = self.gate(name)
                await _wait_at_most(gate.reached(), wait_s)
                return 200, {"name": name, "reached": gate.is_reached, "open": gate.is_open}
            case "GET", ["requests"]:
                await _wait_at_most(self.requests.wait(int(query.get("count", 0))), wait_s)
                return 200, {"items": [exchange.to_dict() for exchange in self.requests]}
            case "GET", ["requests", number] if number.isdigit() and int(number) < len(self.requests):
                exchange = self.requests[int(number)]
                await _wait_at_most(exchange.ended.wait(), wait_s)
                return 200, exchange.to_dict()
            case _:
                return 404, {"error": {"message": f"no control route {method} /control/{'/'.join(route)}"}}
        return 200, {}


async def _wait_at_most(waiting: Awaitable[object], seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(waiting, seconds)


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


async def _departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _query(scope: Scope) -> dict[str, float]:
    return {name: float(values[-1]) for name, values in parse_qs(scope["query_string"].decode()).items()}


async def _send_json(send: Send, status: int, value: dict[str, Any]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": msgspec.json.encode(value)})


@asynccontextmanager
async def _serving(endpoint: ScriptedEndpoint) -> AsyncIterator[None]:
    """Serve on the loopback. uvicorn's own loop is left out: it polls, and it takes the process's signals."""
    import uvicorn

    listener = socket.create_server(("127.0.0.1", endpoint.port))
    # Connections inherit it; asyncio sets it only on sockets of its own. Without it each answer is 40 ms late.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    endpoint.port = listener.getsockname()[1]
    config = uvicorn.Config(endpoint, log_level="critical", access_log=False, lifespan="off")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        yield
    finally:
        await server.shutdown(sockets=[listener])


async def _run(endpoint: ScriptedEndpoint) -> None:
    leave = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leave.set)
    async with endpoint:
        print(f"listening on {endpoint.base_url}", flush=True)
        await leave.wait()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m longboat.testing.endpoint",
        description="An OpenAI-compatible server that answers from a script.",
    )
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one and prints it")
    parser.add_argument("--script", type=Path, help='a JSON list of {"name": …, "steps": [[item, …], …], "repeat": …}')
    arguments = parser.parse_args()
    endpoint = ScriptedEndpoint(port=arguments.port)
    if arguments.script is not None:
        try:
            scripts = decode_scripts(arguments.script.read_bytes(), endpoint.gate)
        except (OSError, msgspec.DecodeError) as error:
            parser.error(f"{arguments.script}: {error}")
        for script in scripts:
            endpoint.add_body(script)
    asyncio.run(_run(endpoint))


if __name__ == "__main__":
    main()
