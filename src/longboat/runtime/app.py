"""The whole server except for its sockets: open it with `async with open_app(settings) as app`.

Owns the store, the open workspaces, the recovery at the start (B6) and the shutdown at the end (B5).
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from longboat.config.settings import Settings
from longboat.errors import (
    BadInput,
    DataDirError,
    OwnedElsewhere,
    ServerLeaving,
    StoreDamaged,
    StoreUnavailable,
    WorkspaceNotFound,
)
from longboat.runtime.clock import now
from longboat.runtime.inbox import SERVER, Inbox
from longboat.runtime.ownership import Ownership, SoleOwner
from longboat.runtime.push import Push
from longboat.runtime.store_retry import RESTORE_S, retry_store
from longboat.runtime.turn.traces import Traces, load_traces
from longboat.runtime.workspace.ledger import page_start
from longboat.runtime.workspace.location import scratches
from longboat.runtime.workspace.models import ModelPool, ModelSource
from longboat.store.changes import add_workspace, delete_client, prune_events, prune_requests
from longboat.store.datadir import STORE_NAME, hold_data_dir
from longboat.store.protocol import Entry, Store, UniqueViolated, Unit
from longboat.store.records import AttachedClient, WorkspaceActivity, WorkspaceRecord
from longboat.store.sqlite.store import open_sqlite
from longboat.tasks import Tasks
from longboat.tools.process import process_tree
from longboat.tools.process.output_files import MEGABYTE, OutputFiles
from longboat.wire import models as wire
from longboat.wire.events import Change
from longboat.wire.figures import Stats
from longboat.wire.ids import new_id
from longboat.wire.models import Health, WorkspacePage
from longboat.wire.providers import Provider
from longboat.wire.requests import ConnectProvider
from longboat.wire.search import SearchPage

if TYPE_CHECKING:
    from longboat.runtime.providers import Providers
    from longboat.runtime.workspace.workspace import Workspace
    from longboat.tools.mcp.logins import Logins
    from longboat.tools.protocol import Tool

logger = logging.getLogger(__name__)
T = TypeVar("T")

FINAL_S = 2.0
"""How long interrupted turns have for their final writes (T4). With the time for closing, the server exits within drain
+ 5 s (B5)."""
PRUNE_EVERY_S = 3600.0
POLL_INBOX_S = 2.0
"""How often streams of the inbox look for what other nodes have written."""
CHECK_S = 10.0
"""How long a start looks for damage in the store, alongside all other work."""


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    models: ModelSource | None = None,
    tools: "Iterable[Tool]" = (),
    traces: Traces | None = None,
    stop: asyncio.Event | None = None,
    hurry: asyncio.Event | None = None,
    url: str | None = None,
) -> AsyncIterator["App"]:
    """Lock the data directory, open the store, continue unfinished work; shut down in order at the end.

    Set `stop` to make the server leave; before it is open, that raises ServerLeaving. Set `hurry` to skip the drain.
    `traces` replaces the configured ones. `url`: where it listens.
    """
    stop, hurry = stop or asyncio.Event(), hurry or asyncio.Event()
    with hold_data_dir(settings.data_dir):
        async with (
            _unless(stop, _open_store(settings)) as store,
            _open_ownership(settings, store, url) as ownership,
            ModelPool(settings.data_dir, source=models) as pool,
            _open_traces(traces, settings) as open_traces,
            Tasks() as tasks,
        ):
            app = App(
                settings,
                store,
                pool,
                tasks,
                tuple(tools),
                ownership=ownership,
                traces=open_traces,
                stop_requested=stop,
            )
            try:
                await app.recover(hurry)
                tasks.spawn(app.prune(), name="prune")
                tasks.spawn(app.check_store(), name="check store")
                tasks.spawn(app.push.run(), name="push")
                yield app
            finally:
                await app.leave(drain_s=0, hurry=asyncio.Event())
                app.close()


def _open_store(settings: Settings) -> AbstractAsyncContextManager[Store]:
    if settings.store is None:
        return open_sqlite(settings.data_dir / STORE_NAME)
    try:
        from longboat.store.postgres.store import open_postgres  # here: only who needs it pays for it
    except ModuleNotFoundError as error:
        raise DataDirError(
            "A store in PostgreSQL needs another package: pip install 'longboat[postgres]'.", code="postgres_missing"
        ) from error
    return open_postgres(settings.store, node=settings.node if settings.cluster_secret else "")


@asynccontextmanager
async def _open_ownership(settings: Settings, store: Store, url: str | None) -> AsyncIterator[Ownership]:
    if settings.store is None or not settings.cluster_secret:
        yield SoleOwner(settings.node)
        return
    from longboat.fleet.node import open_node  # here: only who needs it pays for it

    async with open_node(settings, store, url=url) as node:
        yield node


@asynccontextmanager
async def _open_traces(given: Traces | None, settings: Settings) -> AsyncIterator[Traces]:
    otel = settings.server.otel
    traces = given
    if traces is None:
        traces = await asyncio.to_thread(load_traces, otel) if otel.enabled else Traces()
    try:
        yield traces
    finally:
        traces.close()


@asynccontextmanager
async def _unless(stop: asyncio.Event, opening: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Open this, unless someone stops the server first."""
    async with AsyncExitStack() as stack:
        async with Tasks() as tasks:
            entering = tasks.spawn(stack.enter_async_context(opening), name="open", awaited=True)
            stopped = tasks.spawn(stop.wait(), name="stop")
            await asyncio.wait([entering, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not entering.done():
                entering.cancel()
                await asyncio.wait([entering])
                raise ServerLeaving
        yield entering.result()


class App:
    def __init__(
        self,
        settings: Settings,
        store: Store,
        models: ModelPool,
        tasks: Tasks,
        tools: "Sequence[Tool]",
        *,
        ownership: Ownership,
        traces: Traces,
        stop_requested: asyncio.Event,
    ) -> None:
        self.settings = settings
        self.ownership = ownership
        self.stop_requested = stop_requested
        self.leaving = False
        self._store = store
        self._models = models
        self._tasks = tasks
        self._tools = tools
        self._traces = traces
        self._logins: Logins | None = None
        self._providers: Providers | None = None
        self._output_files = OutputFiles(
            scratches(settings.data_dir),
            limit=settings.server.max_output_mb * MEGABYTE,
            workspace_limit=settings.server.max_workspace_output_mb * MEGABYTE,
        )
        self.inbox = Inbox(
            store,
            heartbeat_s=settings.heartbeat_s,
            on_listeners=self._watch_idleness,
            poll_s=None if ownership.alone else POLL_INBOX_S,
        )
        self.push = Push(store, self.inbox, settings.server.push, settings.data_dir)
        self._open: dict[str, Workspace] = {}
        self._closings: dict[str, asyncio.Task[None]] = {}
        """Workspaces whose processes are being ended. They are gone before the directory is opened again, or we are."""
        self._opening = asyncio.Lock()
        self._opens_no_more = False
        self._idle_exit: asyncio.TimerHandle | None = None
        self._damage: str | None = None
        self._watch_idleness()
        store.when_gone(self._stop_unrecorded_work)
        ownership.when_lost(self._drop)
        ownership.when_renewed(self._allow_commands)

    @property
    def busy(self) -> bool:
        return any(workspace.engaged for workspace in self._open.values())

    def request_stop(self) -> None:
        self.stop_requested.set()

    def health(self) -> Health:
        if self.leaving:
            return Health(status="leaving")
        if self._store.problem is not None:
            return Health(status="degraded", detail=self._store.problem)
        if self._damage is not None:
            return Health(status="degraded", detail=self._damage)
        return Health(status="ok")

    def _stop_unrecorded_work(self) -> None:
        """The data directory is gone (D8): stop active runs, which would act and cost money without a record. Their end
        is not recorded either, so the log names them."""
        for workspace in self._open.values():
            if runs := workspace.sessions.run_ids:
                logger.error("unfinished runs of %s are lost: %s", workspace.directory, ", ".join(runs))
            workspace.sessions.interrupt()

    def gauges(self) -> dict[str, float]:
        workspaces = self._open.values()
        return {
            "workspaces_open": len(self._open),
            "runs_unfinished": sum(workspace.sessions.runs_unfinished for workspace in workspaces),
            "runs_active": sum(workspace.sessions.runs_active for workspace in workspaces),
            "streams_open": sum(workspace.presence.claims.streams for workspace in workspaces),
            "store_failing": float(self._store.problem is not None),
            "leaving": float(self.leaving),
        }

    # Workspaces

    async def join(
        self, path: str, client_id: str | None, environ: Mapping[str, str] | None = None
    ) -> "tuple[Workspace, bool]":
        """Return the workspace of a directory; True if it was never opened here before. `environ` is the client's own,
        for the commands of its runs."""
        directory = await asyncio.to_thread(_resolve, path)
        known, created = await self._issue(directory)
        workspace = await self.workspace(known.workspace_id)
        workspace.presence.claims.hold()
        if environ is not None:
            workspace.tools.environments.put(client_id, environ)
        return workspace, created

    async def _issue(self, directory: Path) -> tuple[WorkspaceRecord, bool]:
        path, home = str(directory), self.ownership.home_of(directory)
        only = None if self.ownership.alone else home
        known = await self._store.reads.workspace_at(path, only)
        if known is not None:
            return known, False
        new = WorkspaceRecord(workspace_id=new_id(), home=home, path=path, created_at=now())
        try:
            await self._store.submit(Unit(workspace_id=SERVER, writes=[add_workspace(new)]))
        except UniqueViolated:  # two came at once: one id is issued
            known = await self._store.reads.workspace_at(path, only)
            if known is None:
                raise
            return known, False
        return new, True

    def is_open(self, workspace_id: str) -> bool:
        return workspace_id in self._open

    async def known_at(self, path: str) -> str | None:
        """The id of the workspace of a directory, if it has one."""
        with suppress(BadInput):
            directory = await asyncio.to_thread(_resolve, path)
            known = await self._store.reads.workspace_at(str(directory), self.ownership.home_of(directory))
            return known.workspace_id if known is not None else None
        return None

    async def workspace(self, workspace_id: str) -> "Workspace":
        """Return the open workspace, or open it again."""
        workspace = self._open.get(workspace_id)
        if workspace is not None:
            return workspace
        while (closing := self._closings.get(workspace_id)) is not None:
            await asyncio.wait([closing])
        async with self._opening:
            workspace = self._open.get(workspace_id)
            if workspace is None and self._opens_no_more:
                # A new one would not know the runs queued on disk: a cancel would succeed and do nothing.
                raise ServerLeaving
            return workspace or await self._reopen(workspace_id)

    async def _reopen(self, workspace_id: str) -> "Workspace":
        known = await self._store.reads.workspace(workspace_id)
        if known is None:
            raise WorkspaceNotFound(workspace_id)
        create = await asyncio.to_thread(self._load_workspace_class)
        claimed = await self.ownership.claim(workspace_id)
        workspace = create(
            known,
            settings=self.settings,
            store=self._store,
            models=self._models,
            tools=self._tools,
            claimed=claimed,
            on_free=self._close,
            is_someone_reachable=lambda: self.inbox.answering > 0 or self.push.reaches_someone,
        )
        try:
            if claimed.allowed is not None:
                workspace.tools.allow_for(claimed.allowed[0], since=claimed.allowed[1])
            await workspace.open()
            workspace.presence.claims.hold()
            if self.leaving:
                workspace.sessions.refuse()
            if not self.ownership.alone:
                await self._succeed(workspace)
        except BaseException:
            self._end(workspace)
            raise
        self._open[workspace_id] = workspace
        self._watch_idleness()
        return workspace

    async def _succeed(self, workspace: "Workspace") -> None:
        """The former owner's clients are gone; its unfinished runs continue or end (B6)."""
        for client in await self._store.reads.clients(workspace.id):
            await self._store.submit(_client_gone(AttachedClient(workspace_id=workspace.id, client=client)))
        await workspace.restore()
        await self.ownership.note_policy(workspace.id, resume=workspace.resumes())
        if not self.ownership.owns(workspace.id):
            raise OwnedElsewhere(workspace.id)

    def _load_workspace_class(self) -> "Callable[..., Workspace]":
        """Import the workspace class. This takes long, so the server answers requests before it is done."""
        from longboat.runtime.workspace.workspace import Workspace
        from longboat.tools.mcp.logins import Logins

        if self._logins is None:
            self._logins = Logins(self.settings.data_dir / "logins")
        return partial(Workspace, logins=self._logins, output_files=self._output_files, traces=self._traces)

    async def workspaces(self) -> WorkspacePage:
        known = await self._store.reads.workspaces()
        activity = await self._store.reads.workspace_activity()
        clients: dict[str, list[wire.ClientInfo]] = {}
        for attached in () if self.ownership.alone else await self._store.reads.all_clients():
            clients.setdefault(attached.workspace_id, []).append(attached.client)
        items = [
            msgspec.structs.replace(
                await self._describe(each, busy=found.busy, clients=clients.get(each.workspace_id, ())),
                used_at=found.used_at,
                waiting=found.waiting,
            )
            for each in known
            if (found := activity.get(each.workspace_id, WorkspaceActivity()))
        ]
        return WorkspacePage(items=tuple(items))

    async def _describe(
        self, known: WorkspaceRecord, *, busy: bool, clients: Sequence[wire.ClientInfo]
    ) -> wire.Workspace:
        """`busy` and `clients`: as the store has them, for a workspace that another node works on."""
        workspace = self._open.get(known.workspace_id)
        if workspace is not None:
            return await workspace.describe()
        return wire.Workspace(
            id=known.workspace_id,
            path=known.path,
            created_at=known.created_at,
            ready=True,
            busy=busy,
            clients=tuple(clients),
        )

    async def stats(self, workspace_id: str | None, *, days: int) -> Stats:
        """Return the usage and activity of a workspace, or of all. Opens none."""
        if workspace_id is not None:
            await self._check_known(workspace_id)
        first = datetime.now(UTC) - timedelta(days=days - 1)  # today is one of them
        return await self._store.reads.stats(workspace_id, first.strftime("%Y-%m-%d"))

    async def _check_known(self, workspace_id: str) -> None:
        if await self._store.reads.workspace(workspace_id) is None:
            raise WorkspaceNotFound(workspace_id)

    async def search(self, typed: str, *, workspace_id: str | None, before: str | None, limit: int) -> SearchPage:
        """Search the messages of a workspace, or of all. Opens none."""
        if workspace_id is not None:
            await self._check_known(workspace_id)
        return await self._store.reads.search(typed, workspace_id=workspace_id, before=page_start(before), limit=limit)

    # Providers

    async def providers(self) -> "Providers":
        """The setup of providers. Takes long to import, like the models."""
        if self._providers is None:
            self._providers = await asyncio.to_thread(self._load_providers)
        return self._providers

    def _load_providers(self) -> "Providers":
        from longboat.runtime.providers import Providers

        return Providers(self.settings.data_dir)

    async def connect_provider(self, provider: str, request: ConnectProvider) -> Provider:
        """Store the settings; every open workspace uses them from the next prompt on and tells its clients."""
        connected = await (await self.providers()).connect(provider, request)
        await self._reread_configuration()
        return connected

    async def forget_provider(self, provider: str) -> Provider:
        forgotten = await (await self.providers()).forget(provider)
        await self._reread_configuration()
        return forgotten

    async def _reread_configuration(self) -> None:
        for workspace in list(self._open.values()):
            await self._models.look(workspace.directory)

    async def drop_client(self, client_id: str) -> None:
        for workspace in list(self._open.values()):
            await workspace.presence.release(client_id)

    def _close(self, workspace: "Workspace") -> None:
        """Close a workspace: no client is attached and nothing is left to do. Does not wait: the next request gets a
        new one."""
        if self.leaving:
            return
        self._end(workspace)

    def _drop(self, workspace_id: str) -> None:
        """The workspace has another owner, or may have one soon: nothing of it goes on here."""
        workspace = self._open.get(workspace_id)
        if workspace is not None:
            self._end(workspace)

    def _allow_commands(self, seconds: float, since: float) -> None:
        for workspace in self._open.values():
            workspace.tools.allow_for(seconds, since=since)

    def _end(self, workspace: "Workspace") -> None:
        workspace.close()
        self._open.pop(workspace.id, None)
        closing = self._tasks.spawn(self._close_tools(workspace), name=f"close {workspace.id}")
        self._closings[workspace.id] = closing
        closing.add_done_callback(lambda _: self._closings.pop(workspace.id, None))
        self._watch_idleness()

    async def _close_tools(self, workspace: "Workspace") -> None:
        await workspace.aclose()
        await self.ownership.release(workspace.id)

    def _watch_idleness(self) -> None:
        """Stop a server that a command started in the background when no one needs it (B3)."""
        if self._idle_exit is not None:
            self._idle_exit.cancel()
            self._idle_exit = None
        if self.settings.idle_exit_s is not None and not self._open and not self.inbox.streams and not self.leaving:
            loop = asyncio.get_running_loop()
            self._idle_exit = loop.call_later(self.settings.idle_exit_s, self.request_stop)

    # The way in and out

    async def recover(self, hurry: asyncio.Event) -> None:
        """Continue unfinished work, unless someone stops the server first: then nothing more starts."""
        recovery = self._tasks.spawn(self._recover(), name="recovery")
        stopped = self._tasks.spawn(self.stop_requested.wait(), name="stop")
        await asyncio.wait([recovery, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not recovery.done():
            recovery.cancel()
            await self.leave(drain_s=self.settings.server.drain_s, hurry=hurry)
            raise ServerLeaving
        recovery.result()

    async def _recover(self) -> None:
        """Recover after a crash or a restart: clients and commands are gone; unfinished work continues or ends (B6)."""
        await process_tree.sweep(scratches(self.settings.data_dir))
        if not self.ownership.alone:
            self.ownership.when_orphaned(self.workspace)  # only now: the sweep is over
            return
        gone = await self._store.reads.all_clients()
        unfinished = await self._store.reads.unfinished_workspaces()
        for client in gone:
            await retry_store(partial(self._store.submit, _client_gone(client)), for_s=RESTORE_S)
        for workspace_id in unfinished:
            try:
                await (await self.workspace(workspace_id)).restore()
            except StoreUnavailable as error:
                if not isinstance(error, StoreDamaged):
                    raise
                logger.error("the unfinished runs of workspace %s stay as they are: %s", workspace_id, error)
            except Exception:
                # A damaged row or a bug of ours must not affect the other workspaces.
                logger.exception("the unfinished runs of workspace %s could not be restored", workspace_id)

    async def leave(self, *, drain_s: float, hurry: asyncio.Event) -> None:
        """B5: let active runs end within the drain time, interrupt the rest, then end the streams."""
        if self.leaving:
            return
        self.leaving = True
        if self._idle_exit is not None:
            self._idle_exit.cancel()
        workspaces = list(self._open.values())
        for workspace in workspaces:
            workspace.sessions.refuse()
        await self.ownership.leave()
        if not await self._unwound(workspaces, drain_s, hurry):
            for workspace in workspaces:
                workspace.sessions.interrupt()
            if not await self._unwound(workspaces, FINAL_S, asyncio.Event()):
                logger.error("some runs did not end in time; the next start ends them")
        async with self._opening:  # one that is just being opened is closed, too
            self._opens_no_more = True
        last, self._open = list(self._open.values()), {}  # including workspaces opened during the drain
        for workspace in last:
            workspace.close()
        self.inbox.close()
        await asyncio.gather(*(self._close_tools(workspace) for workspace in last))
        if self._closings:
            await asyncio.wait(list(self._closings.values()))

    def close(self) -> None:
        """Release the port to which browsers return after a login."""
        if self._logins is not None:
            self._logins.close()

    async def _unwound(self, workspaces: "list[Workspace]", timeout_s: float, hurry: asyncio.Event) -> bool:
        """Wait until no turn runs; False if the time is over or someone is in a hurry first."""
        async with Tasks() as waits:
            turns = [waits.spawn(workspace.sessions.wind_down(), name="unwound") for workspace in workspaces]
            all_done = waits.spawn(_all(turns), name="all unwound")
            rush = waits.spawn(_all([waits.spawn(hurry.wait(), name="hurry")]), name="rush")
            await asyncio.wait([all_done, rush], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return all_done.done()

    async def check_store(self) -> None:
        """Look for damage once, after the start, and report it in health and the log (D12)."""
        try:
            report = await self._store.check(limit_s=CHECK_S)
        except (StoreUnavailable, DataDirError) as error:
            logger.warning("%s", error.message)
            return
        if report.problems:
            more = f" and {len(report.problems) - 1} more" if len(report.problems) > 1 else ""
            self._damage = StoreDamaged(report.problems[0].detail + more).message
            logger.error("%s", self._damage)
        elif not report.complete and not self.leaving:
            logger.info("the store is too large to check at start; `longboat store check` checks all of it")

    async def prune(self) -> None:
        """Forget old events from time to time. If the store fails, try again the next time."""
        while True:
            with suppress(StoreUnavailable):
                await self.prune_once()
            await asyncio.sleep(PRUNE_EVERY_S)

    async def prune_once(self) -> None:
        """Forget events and model requests that are older than the limit."""
        before_s = int(time.time() - self.settings.server.keep_events_days * 86_400)
        for known in await self._store.reads.workspaces():
            name = known.workspace_id
            writes = [prune_events(name, before_s), *prune_requests(name, before_s)]
            await self._store.submit(Unit(workspace_id=SERVER, writes=writes, durable=False))
        await self.inbox.prune()


async def _all(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    await asyncio.gather(*tasks)


def _client_gone(gone: AttachedClient) -> Unit:
    write = delete_client(gone.workspace_id, gone.client.client_id)
    entry = Entry.of(Change.DELETED, gone.client)
    return Unit(workspace_id=gone.workspace_id, writes=[write], entries=[entry], durable=False)


def _resolve(path: str) -> Path:
    """Return the directory that `path` names, or raise an error that says why it cannot be one."""
    if not path.startswith("/"):
        raise BadInput(f"path must be absolute (got {path!r}).", code="bad_path")
    try:
        directory = Path(path).resolve(strict=True)
        if not directory.is_dir():
            raise BadInput(f"{path} is not a directory.", code="path_not_directory")
        readable = os.access(directory, os.R_OK | os.X_OK)
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"{path} does not exist.", code="path_not_found") from None
    except PermissionError:
        readable = False
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"{path!r} is not a usable path: {error}.", code="bad_path") from None
    if not readable:
        raise BadInput(f"{path} cannot be read. Check its permissions.", code="path_unreadable")
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        raise BadInput(f"{path!r} leads to a name that is not UTF-8. Rename it.", code="bad_path") from None
    return directory
