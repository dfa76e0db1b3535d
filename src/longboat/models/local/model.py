"""The local model: a small language model on this machine; it needs no key, and no network after the download.

Owns the process that runs it: started on first use, shared by all turns, restarted if it dies. Must not know its wire
format (`openai_chat.py`), nor how such a small model uses tools (`local_steps.py`).
"""

import asyncio
import contextlib
import importlib.util
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longboat.errors import ModelError
from longboat.installation import install_command
from longboat.models.catalogue import FREE, configured_tariff
from longboat.models.local import weights
from longboat.models.local.demo_steps import Call, as_form, as_talk, offered, read_form
from longboat.models.local.server import MAX_OUTPUT_TOKENS, Job, Ready
from longboat.models.protocol import (
    Abilities,
    Finished,
    ModelEvent,
    ModelRequest,
    Progress,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.tasks import Tasks
from longboat.wire.ids import new_id

if TYPE_CHECKING:
    import httpx2

    from longboat.models.openai_chat import OpenAIChatModel

PROVIDER = "local"
NAME = "smollm2-135m"
CONTEXT_WINDOW = 8192
"""What the model was trained on."""

_SLOTS = 2
_LOAD_TIMEOUT_S = 120.0
_PROMPT_TIMEOUT_S = 600.0
"""A full context window takes minutes to read on a slow machine, and it says nothing meanwhile."""
_STOP_TIMEOUT_S = 2.0
_DEATH_TIMEOUT_S = 0.5


def runtime_installed() -> bool:
    """Whether the local model could be run here; its weights may still have to be fetched."""
    return importlib.util.find_spec("xllamacpp") is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    process: asyncio.subprocess.Process
    client: "httpx2.AsyncClient"
    chat: "OpenAIChatModel"

    @property
    def alive(self) -> bool:
        return self.process.returncode is None


class LocalModel:
    """The model of a data directory. One object, hence one process, serves the whole server: close it at the end."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._server: _Server | None = None
        self._starting = asyncio.Lock()

    @property
    def provider(self) -> str:
        return PROVIDER

    @property
    def name(self) -> str:
        return NAME

    @property
    def context_window(self) -> int:
        return CONTEXT_WINDOW

    @property
    def abilities(self) -> Abilities:
        return Abilities(images=False, tools=True, effort=False)

    @property
    def pid(self) -> int | None:
        """The process that runs the model, if one does."""
        return self._server.process.pid if self._server is not None and self._server.alive else None

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        async with aclosing(self._events(request)) as events:
            yield events

    async def aclose(self) -> None:
        async with self._starting:
            server, self._server = self._server, None
            if server is not None:
                await _stop(server)

    async def _events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self._starting.locked():
            yield Progress("Waiting for the local model.")
        async with self._starting:
            if self._server is None or not self._server.alive:
                try:
                    async with aclosing(self._start()) as steps:
                        async for step in steps:
                            yield step
                except OSError as error:
                    raise _not_started(error) from None
            server = self._server
        assert server is not None
        try:
            async with aclosing(_answer(server.chat, _bounded(request))) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            if error.retryable:
                # A lost connection is seen before the death that caused it: the next try must find it dead.
                await _ended(server.process, _DEATH_TIMEOUT_S)
            raise

    async def _start(self) -> AsyncGenerator[Progress, None]:
        if not runtime_installed():
            raise ModelError(
                f"The local model's runtime is not installed. Run `{install_command('local')}` or `longboat connect`.",
                title="The local model is not installed",
                code="model_not_configured",
            )
        if self._server is not None:
            await _stop(self._server)
            self._server = None
        async with aclosing(_pulled(self._data_dir)) as reports:
            async for report in reports:
                yield Progress(str(report))
        yield Progress("Loading the local model.")
        self._server = await _launch(self._data_dir)


def _not_started(error: OSError) -> ModelError:
    return ModelError(
        f"The local model's process could not be started: {error.strerror or error}.",
        title="The local model did not start",
        code="local_model_failed",
        retryable=True,
    )


async def _pulled(data_dir: Path) -> AsyncGenerator[weights.FetchProgress, None]:
    """Fetch the weights if they are missing and tell every stage and tenth of it."""
    reports: asyncio.Queue[weights.FetchProgress | None] = asyncio.Queue()
    told: weights.FetchProgress | None = None
    async with Tasks() as tasks:
        pull = tasks.spawn(weights.pull(data_dir, reports.put_nowait), name="pull the weights", awaited=True)
        pull.add_done_callback(lambda _: reports.put_nowait(None))
        while (report := await reports.get()) is not None:
            if told is None or told.stage != report.stage or report.done - told.done >= report.total / 10:
                told = report
                yield report
        await pull


async def _launch(data_dir: Path) -> _Server:
    import httpx2

    from longboat.models.openai_chat import OpenAIChatModel
    from longboat.models.openai_request import Dialect

    job = Job(
        weights=str(weights.path_of(data_dir)),
        alias=NAME,
        api_key=secrets.token_urlsafe(24),
        context_window=CONTEXT_WINDOW,
        slots=_SLOTS,
    )
    log = data_dir / "models" / "local_server.log"
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            # -P: a directory the server happens to be in must not supply modules.
            *(sys.executable, "-P", "-m", "longboat.models.local.server"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=sink,
            # Ctrl-C in the terminal is for the server, which still needs the model while it drains.
            start_new_session=True,
        )
    ready = await _ready(process, job, log)
    # Its server drops idle connections without a word: a request on a kept one would now and then find it closed.
    client = httpx2.AsyncClient(limits=httpx2.Limits(max_keepalive_connections=0), trust_env=False)
    chat = OpenAIChatModel(
        client=client,
        provider=PROVIDER,
        name=NAME,
        base_url=f"{ready.url}/v1",
        api_key=job.api_key,
        context_window=CONTEXT_WINDOW,
        dialect=Dialect(max_output_tokens=MAX_OUTPUT_TOKENS),
        tariff=configured_tariff(FREE),
        idle_timeout_s=_PROMPT_TIMEOUT_S,
    )
    return _Server(process=process, client=client, chat=chat)


async def _ready(process: asyncio.subprocess.Process, job: Job, log: Path) -> Ready:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(job) + b"\n")
        async with asyncio.timeout(_LOAD_TIMEOUT_S):
            line = await process.stdout.readline()
        return msgspec.json.decode(line, type=Ready)
    except (TimeoutError, msgspec.DecodeError):
        raise ModelError(
            f"The local model did not start; see {log}. If its weights are damaged, delete {job.weights} and run "
            "`longboat models pull`.",
            title="The local model did not start",
            code="local_model_failed",
        ) from None
    finally:
        if sys.exc_info()[0] is not None:
            await _kill(process)


async def _stop(server: _Server) -> None:
    await server.client.aclose()
    assert server.process.stdin is not None
    server.process.stdin.close()
    if not await _ended(server.process, _STOP_TIMEOUT_S):
        await _kill(server.process)


async def _ended(process: asyncio.subprocess.Process, timeout_s: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await process.wait()
    return process.returncode is not None


async def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def _bounded(request: ModelRequest) -> ModelRequest:
    limit = min(request.max_output_tokens or MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS)
    return replace(request, max_output_tokens=limit, effort=None)


async def _answer(chat: "OpenAIChatModel", request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
    if tools := offered(request):
        async with aclosing(_fill_in_form(chat, as_form(request, tools))) as events:
            async for event in events:
                yield event
        return
    async with chat.stream(as_talk(request)) as stream:
        async for event in stream:
            yield event


async def _fill_in_form(chat: "OpenAIChatModel", request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
    """A step of the form. Its kind is known only at its end, so it is sent as a whole."""
    written = ""
    async with chat.stream(request) as stream:
        async for event in stream:
            match event:
                case TextDelta():
                    written += event.text
                case Finished():
                    for said in _events_of_step(read_form(written), event):
                        yield said


def _events_of_step(step: str | Call | None, end: Finished) -> tuple[ModelEvent, ...]:
    match step:
        case Call():
            call_id = f"call_{new_id()}"
            return (
                ToolCallStart(0, call_id, step.name),
                ToolCallDelta(0, step.arguments),
                Finished(StopReason.TOOL_USE, end.usage),
            )
        case None:
            return TextDelta("(I could not finish this step.)"), Finished(StopReason.MAX_TOKENS, end.usage)
        case _:
            return TextDelta(step), Finished(StopReason.END_TURN, end.usage)
