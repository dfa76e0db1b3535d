"""The terminal app against a real server in the test: real sockets and store, a scripted model, Textual's pilot."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from running_app import TITLES_OFF, OneModel
from server_harness import settings_in
from textual.geometry import Size
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Static
from tui_stage import picture, until
from tui_terminal import Terminal, in_terminal

from longboat.client import Client
from longboat.config.settings import ServerSection
from longboat.models.protocol import Model
from longboat.runtime.app import App, open_app
from longboat.server.asgi import build_asgi
from longboat.server.embedded import open_http
from longboat.server.listen import open_listeners
from longboat.tui.app import LongboatApp
from longboat.tui.messages import Note, PromptView
from longboat.tui.prose import Prose
from longboat.tui.toolcard import ToolCard
from longboat.wire.archive import FORMAT, FORMAT_VERSION, SessionExport
from longboat.wire.models import FinishPart, FinishReason, Message, Part, Role, Session, TextPart


@dataclass
class LocalServer:
    """A server that can be stopped and started again on the same directory."""

    path: Path
    model: Model | None
    """None: as the configuration says."""
    app: App | None = None

    @property
    def socket(self) -> str:
        return str(self.path / "run" / "longboat.sock")

    @property
    def project(self) -> str:
        return str(self.path / "project")

    @asynccontextmanager
    async def serving(self, **options: Any) -> AsyncIterator["LocalServer"]:
        settings = settings_in(self.path, host=None, server=ServerSection(max_body_mb=64))
        with open_listeners(settings) as listeners:
            models = OneModel(self.model) if self.model is not None else None
            async with open_app(settings, models=models, **options) as app:
                asgi, _ = build_asgi(app)
                async with open_http(asgi, listeners.sockets):
                    self.app = app
                    try:
                        yield self
                    finally:
                        await app.leave(drain_s=0, hurry=asyncio.Event())


def local_server(path: Path, model: Model | None, config: str = TITLES_OFF) -> LocalServer:
    (path / "project").mkdir(exist_ok=True)
    (path / "project" / "longboat.json").write_text(config)
    return LocalServer(path, model)


@dataclass
class TuiDriver:
    """An app under test, and the ways to look at it."""

    app: LongboatApp
    pilot: Pilot[None]
    terminal: Terminal

    async def until(self, true: Callable[[], object]) -> None:
        await until(self.pilot, true)

    @property
    def screen(self) -> str:
        """What a person would see."""
        return "\n".join(line.text for line in self.lines)

    @property
    def lines(self) -> list[Strip]:
        width, height = self.app.size
        return self.app.screen._compositor.render_strips(Size(width, height))

    async def type(self, text: str) -> None:
        self.app.composer.input.put(text)
        await self.pilot.pause()

    async def say(self, text: str, *, key: str = "enter") -> None:
        await self.type(text)
        await self.pilot.press(key)

    @property
    def prompts(self) -> list[str]:
        return [str(view.render()) for view in self.app.query(PromptView)]

    @property
    def answers(self) -> list[str]:
        return [view.source for view in self.app.query(Prose)]

    @property
    def notes(self) -> list[str]:
        return [str(note.render()) for note in self.app.query(Note)]

    @property
    def notifications(self) -> list[str]:
        """Those that are shown now."""
        return [each.message for each in self.app._notifications]

    @property
    def cards(self) -> list[ToolCard]:
        return list(self.app.query(ToolCard))

    def text_of(self, widget: Static) -> str:
        return str(widget.render())

    @property
    def idle(self) -> bool:
        return (
            self.app.current.session_id is not None and not self.app.current.unfinished and not self.app.sender.waiting
        )


@asynccontextmanager
async def open_tui(
    server: LocalServer, *, size: tuple[int, int] = (100, 30), name: str = "me", **options: Any
) -> AsyncIterator[TuiDriver]:
    """The app of one person, ready for prompts."""
    async with Client(socket=server.socket, client_id=name) as client:
        app = LongboatApp(client, server.project, **options)
        app.asking.grace_s = 0.0  # nobody is typing when a dialog opens
        async with app.run_test(size=size, notifications=True) as pilot:
            tui = TuiDriver(app, pilot, in_terminal(app))
            await tui.until(lambda: app.connection.workspace_id and app.models is not None)
            yield tui
            # All that was laid out was drawn, unless they have left.
            await tui.until(lambda: app._exit or tui.terminal.picture == picture(app))
            app.workers.cancel_all()  # as when somebody leaves: Textual's harness takes the widgets away first


def long_session(count: int) -> SessionExport:
    """A session of so many messages, prompts and answers in turn."""
    when = "2026-11-15T12:00:00.000000Z"
    messages = tuple(
        Message(
            id=f"m{number}",
            session_id="s",
            run_id=f"r{number // 2}",
            seq=number + 1,
            role=Role.ASSISTANT if number % 2 else Role.USER,
            parts=_parts(number),
            created_at=when,
            finished_at=when,
        )
        for number in range(count)
    )
    session = Session(id="s", workspace_id="w", title=f"{count} messages", created_at=when, updated_at=when)
    return SessionExport(
        format=FORMAT,
        version=FORMAT_VERSION,
        exported_at=when,
        session=session,
        summary_seq=0,
        messages=messages,
        runs=(),
    )


def _parts(number: int) -> tuple[Part, ...]:
    if number % 2 == 0:
        return (TextPart(text=f"prompt {number}"),)
    text = f"# Answer {number}\n\nSome **words** and `code`.\n\n- one\n- two\n"
    return (TextPart(text=text), FinishPart(reason=FinishReason.END_TURN))
