"""The server process: listen, open the runtime, answer requests, and shut down in order when asked (B5)."""

import asyncio
import ctypes
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longboat.config.settings import Settings
from longboat.errors import LongboatError, ServerLeaving
from longboat.server.listen import Announcement, announce, open_listeners
from longboat.server.logs import log_to_stderr
from longboat.server.token import keep_token
from longboat.server.waiting import Waiting
from longboat.tasks import Tasks
from longboat.wire.discovery import Discovery

if TYPE_CHECKING:
    from longboat.runtime.app import App
    from longboat.runtime.ownership import OpenOwnership

log = logging.getLogger(__name__)

_PR_SET_DUMPABLE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Requests to stop: the first shuts down in order, the second skips the drain."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self) -> None:
        if self.asked.is_set():
            self.hurry.set()
        self.asked.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A running server."""

    app: "App"
    announcement: Announcement
    http: asyncio.Task[None]

    @property
    def discovery(self) -> Discovery:
        return self.announcement.found


def serve(
    settings: Settings,
    *,
    ready: Callable[[Discovery], None] | None = None,
    leaving: Callable[[int], None] | None = None,
) -> int:
    """Run a server until it is asked to stop. Returns the exit code. Calls `ready` when it answers, and `leaving` with
    the number of active runs when it begins to stop."""
    log_to_stderr()
    _close_to_children()
    try:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(settings, ready, leaving))
    except ServerLeaving:
        log.info("asked to stop before it was ready")
    except LongboatError as error:
        print(f"longboat: {error.message}", file=sys.stderr)
        return 1
    return 0


def _close_to_children() -> None:
    """Keep what the agent runs from reading our keys in /proc/PID/environ: it runs as the same user."""
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        log.warning("commands of the agent can read this process: %s", os.strerror(ctypes.get_errno()))


async def _run(
    settings: Settings, ready: Callable[[Discovery], None] | None, leaving: Callable[[int], None] | None
) -> None:
    stop = Stop()
    with _signals_to(stop):
        async with open_server(settings, stop=stop) as serving:
            if ready is not None:
                ready(serving.discovery)
            log.info("listening on %s", " and ".join(filter(None, (serving.discovery.socket, serving.discovery.url))))
            await _first(stop.asked.wait(), serving.http)
            stop.asked.set()  # also where HTTP failed: the next signal is then the second
            log.info("leaving")
            if leaving is not None:
                leaving(int(serving.app.gauges()["runs_active"]))
    if deaf := asyncio.all_tasks() - {asyncio.current_task()}:
        # All is written and closed; the loop would wait for these without end.
        log.error("leaving without %s", ", ".join(sorted(task.get_name() for task in deaf)))
        logging.shutdown()
        os._exit(0)


async def _first(told: Coroutine[Any, Any, Any], http: asyncio.Task[None]) -> None:
    """Until a signal, a request or the idle clock says to stop, or HTTP fails."""
    async with Tasks() as tasks:
        waiting = tasks.spawn(told, name="wait for the stop")
        await asyncio.wait((waiting, http), return_when=asyncio.FIRST_COMPLETED)


def _find_ownership(settings: Settings) -> "OpenOwnership":
    """How the server shares its store. Alone, it imports nothing of a cluster (G14)."""
    if settings.store is None or not settings.cluster_secret:
        from longboat.runtime.ownership import open_sole_owner

        return open_sole_owner
    from longboat.fleet.node import open_node

    return open_node


@asynccontextmanager
async def open_server(settings: Settings, *, stop: Stop | None = None) -> AsyncIterator[Serving]:
    """A server that answers. On exit it drains, ends all streams and closes (B5)."""
    stop = stop or Stop()
    with open_listeners(settings) as listeners:
        # From here on clients can connect; what takes long to import comes after.
        from longboat.runtime.app import open_app

        waiting = Waiting(listeners.sockets)
        # The command that started a background server wants to know what is wrong.
        on_wait = None if settings.idle_exit_s is not None else waiting.tell
        async with (
            waiting,
            open_app(
                settings,
                stop=stop.asked,
                hurry=stop.hurry,
                url=listeners.url,
                on_wait=on_wait,
                open_ownership=_find_ownership(settings),
            ) as app,
        ):
            await waiting.aclose()
            if not settings.token:
                keep_token(settings.data_dir, app.settings.token)
            from longboat.server.asgi import build_asgi
            from longboat.server.browser_port import BrowserPort
            from longboat.server.embedded import open_http
            from longboat.server.render_process import open_renderer

            asgi, state = build_asgi(app)
            # What is imported stays as long as the server: looking for garbage there would only hold everyone up.
            gc.freeze()
            async with open_renderer() as renderer, open_http(asgi, listeners.sockets) as http:
                state["renderer"] = renderer
                with announce(app.settings, listeners.url) as told:
                    loopback = BrowserPort(app.settings, listeners.url, listen=http.listen, tell=told.tell)
                    state["loopback"] = loopback
                    if settings.idle_exit_s is not None:
                        await loopback.reopen()
                    try:
                        yield Serving(app=app, announcement=told, http=http.task)
                    finally:
                        # Before HTTP stops: the drain still takes cancels and answers, and ends every stream.
                        await app.leave(drain_s=settings.server.drain_s, hurry=stop.hurry)


@contextmanager
def _signals_to(stop: Stop) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.ask)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)  # the process is on its way out: no signal makes that a failure
