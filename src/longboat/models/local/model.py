"""A model on this machine; it needs no key, and no network once its file is here.

Owns when its process runs: started on first use, shared by all turns, restarted if it dies, ended if another model
needs the memory. Must not know how a process is started (`process.py`), nor how the demo uses tools (`demo_steps.py`).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from longboat.errors import ModelError
from longboat.installation import install_command
from longboat.models.local import demo_steps
from longboat.models.local.download import FetchProgress, pull
from longboat.models.local.files import LocalModelSpec, missing
from longboat.models.local.fit import Fit, this_machine
from longboat.models.local.known import DEMO
from longboat.models.local.process import ModelProcess, abilities_of, launch, runtime_installed
from longboat.models.protocol import Abilities, Model, ModelEvent, ModelRequest, Progress
from longboat.models.providers import LOCAL_TYPE
from longboat.models.tool_modes.memory import ToolMemory
from longboat.models.tool_modes.model import ToolModel
from longboat.tasks import Tasks

_DEATH_TIMEOUT_S = 0.5


class LocalModel:
    """One model with at most one process. Calls `make_room` before it starts the process."""

    def __init__(
        self, spec: LocalModelSpec, *, logs: Path, make_room: "Callable[[LocalModel], Awaitable[None]]"
    ) -> None:
        self.spec = spec
        self.fit: Fit = spec.fit(this_machine())
        self.used_at = 0.0
        """When it answered last, by the event loop's clock."""
        self._log = logs / f"{spec.path.stem}.log"
        self._make_room = make_room
        self._process: ModelProcess | None = None
        self._starting = asyncio.Lock()
        self._streams = 0

    @property
    def provider(self) -> str:
        return self.spec.provider

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def context_window(self) -> int:
        return self.fit.context_window

    @property
    def abilities(self) -> Abilities:
        return abilities_of(self.spec)

    @property
    def pid(self) -> int | None:
        """The process that runs the model, if one does."""
        return self._process.pid if self._process is not None and self._process.alive else None

    @property
    def is_idle(self) -> bool:
        """Whether it is loaded and no request is waiting for it."""
        return self.pid is not None and not self._streams and not self._starting.locked()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        self._streams += 1
        try:
            async with aclosing(self._events(request)) as events:
                yield events
        finally:
            self._streams -= 1
            self.used_at = asyncio.get_running_loop().time()

    async def aclose(self) -> None:
        async with self._starting:
            process, self._process = self._process, None
            if process is not None:
                await process.stop()

    async def _events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self._starting.locked():
            yield Progress(f"Waiting for {self.name}.")
        async with self._starting:
            if self._process is None or not self._process.alive:
                try:
                    async with aclosing(self._start()) as steps:
                        async for step in steps:
                            yield step
                except OSError as error:
                    raise self._not_started(error) from None
            process = self._process
        assert process is not None
        try:
            async with aclosing(self._answer(process, replace(request, effort=None))) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            if error.retryable:
                # A lost connection is seen before the death that caused it: the next try must find it dead.
                await process.wait_ended(_DEATH_TIMEOUT_S)
            raise

    async def _answer(self, process: ModelProcess, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self.spec.known is DEMO:
            async with aclosing(demo_steps.answer(process.chat, request)) as events:
                async for event in events:
                    yield event
            return
        async with process.chat.stream(request) as stream:
            async for event in stream:
                yield event

    async def _start(self) -> AsyncGenerator[Progress, None]:
        if not runtime_installed():
            raise ModelError(
                f"The runtime of local models is missing. Run `{install_command('local')}` or `longboat connect`.",
                title="The local model is not installed",
                code="model_not_configured",
            )
        if self._process is not None:
            await self._process.stop()
            self._process = None
        if self.spec.known is DEMO:
            async with aclosing(_pulled(self.spec)) as reports:
                async for report in reports:
                    yield Progress(str(report))
        elif not self.spec.is_here:
            raise ModelError(
                missing(self.spec) or f"{self.spec.path} no longer exists.",
                title="The local model is missing",
                code="weights_unavailable",
            )
        await self._make_room(self)
        yield Progress(f"Loading {self.name}.")
        self._process = await launch(self.spec, self.fit, self._log)

    def _not_started(self, error: OSError) -> ModelError:
        return ModelError(
            f"The process for {self.name} could not be started: {error.strerror or error}.",
            title="The local model did not start",
            code="local_model_failed",
            retryable=True,
        )


async def _pulled(spec: LocalModelSpec) -> AsyncGenerator[FetchProgress, None]:
    """Download the demo if it is missing, and report every stage and tenth of it. Other models are large, so their
    users decide."""
    assert spec.known is not None
    if spec.is_here:
        return
    reports: asyncio.Queue[FetchProgress | None] = asyncio.Queue()
    told: FetchProgress | None = None
    async with Tasks() as tasks:
        task = tasks.spawn(pull(spec.known, spec.path, reports.put_nowait), name="pull the demo", awaited=True)
        task.add_done_callback(lambda _: reports.put_nowait(None))
        while (report := await reports.get()) is not None:
            if told is None or told.stage != report.stage or report.done - told.done >= report.total / 10:
                told = report
                yield report
        await task


class LocalModels:
    """All local models of a server; equal specs share a process. Close it at the end."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._models: dict[LocalModelSpec, LocalModel] = {}
        self._with_tools: dict[LocalModelSpec, Model] = {}
        self._making_room = asyncio.Lock()

    def get(self, spec: LocalModelSpec) -> LocalModel:
        """Get the model for a spec. Raises ModelError if its file cannot be used."""
        if spec not in self._models:
            self._models[spec] = LocalModel(spec, logs=self._data_dir / "models", make_room=self._make_room)
        return self._models[spec]

    def with_tools(self, spec: LocalModelSpec) -> Model:
        """The model as turns use it: with tools, in the way that works for it."""
        if spec not in self._with_tools:
            model = self.get(spec)
            self._with_tools[spec] = model if spec.known is DEMO else self._tool_model(model)
        return self._with_tools[spec]

    def _tool_model(self, model: LocalModel) -> Model:
        if model.spec.tools == "none":
            return model
        memory = ToolMemory(self._data_dir, address=LOCAL_TYPE, model=str(model.spec.path))
        return ToolModel(model, memory, wanted=model.spec.tools)

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()

    async def _make_room(self, model: LocalModel) -> None:
        """End idle models, least recently used first, until this one fits into the memory."""
        async with self._making_room:
            while (available := this_machine().available) is not None and available < model.fit.memory:
                idle = [each for each in self._models.values() if each is not model and each.is_idle]
                if not idle:
                    raise _too_large(model, available)
                await min(idle, key=lambda each: each.used_at).aclose()


def _too_large(model: LocalModel, available: int) -> ModelError:
    return ModelError(
        f"{model.name} needs about {model.fit.memory / 1e9:.1f} GB of memory with a window of "
        f"{model.fit.context_window:,} tokens, and {available / 1e9:.1f} GB is free. Close other programs, set a "
        "smaller context_window for it in longboat.json, or use a smaller model.",
        title="The local model does not fit",
        code="local_model_failed",
    )
