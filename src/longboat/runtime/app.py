"""The whole server except for its sockets: open it with `async with open_app(settings) as app`.

Owns the store, the open workspaces, the recovery at the start (B6) and the shutdown at the end (B5).
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from longboat import __version__
from longboat.config.settings import Settings
from longboat.errors import (
    BadInput,
    DataDirError,
    ServerLeaving,
    StoreDamaged,
    StoreUnavailable,
)
from longboat.runtime.clock import now
from longboat.runtime.inbox import SERVER, Inbox
from longboat.runtime.moves import Moves
from longboat.runtime.open_workspaces import OpenWorkspaces, forget_client, read_workspace
from longboat.runtime.ownership import NOWHERE, OpenOwnership, Ownership, OwnershipTerms, Place, open_sole_owner
from longboat.runtime.pruning import Pruning
from longboat.runtime.push import Push
from longboat.runtime.store_retry import RESTORE_S, retry_store
from longboat.runtime.turn.traces import Traces, load_traces
from longboat.runtime.workspace.ledger import page_start
from longboat.runtime.workspace.location import output_directory
from longboat.runtime.workspace.models import ModelPool, ModelSource
from longboat.store.address import describe_dsn
from longboat.store.changes import add_workspace
from longboat.store.datadir import STORE_NAME, hold_data_dir, note_store
from longboat.store.protocol import Store, UniqueViolated, Unit
from longboat.store.records import WorkspaceActivity, WorkspaceRecord
from longboat.store.sqlite.store import open_sqlite
from longboat.tasks import Tasks
from longboat.tools.process import process_tree
from longboat.tools.process.output_files import MEGABYTE, OutputFiles
from longboat.wire import models as wire
from longboat.wire.ids import new_id
from longboat.wire.listings import NodeInfo, NodePage, NodeState
from longboat.wire.models import Health, WorkspacePage
from longboat.wire.providers import Provider
from longboat.wire.requests import ConnectProvider, MoveWorkspace
from longboat.wire.search import SearchPage
from longboat.wire.statistics import Stats

if TYPE_CHECKING:
    from longboat.runtime.providers import Providers
    from longboat.runtime.workspace.observed import ObservedWorkspace
    from longboat.runtime.workspace.workspace import Workspace
    from longboat.tools.mcp.logins import Logins
    from longboat.tools.protocol import Tool

logger = logging.getLogger(__name__)
T = TypeVar("T")

PRUNE_EVERY_S = 3600.0
POLL_INBOX_S = 2.0
"""How often streams of the inbox look for what other nodes have written, if no wake-up comes."""
UNCONFIRMED = "This server has been unable to reach its database. It will recover on its own."
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
    on_wait: Callable[[str], None] | None = None,
    open_ownership: OpenOwnership = open_sole_owner,
) -> AsyncIterator["App"]:
    """Lock the data directory, open the store, continue unfinished work; shut down in order at the end.

    Set `stop` to make the server leave; before it is open, that raises ServerLeaving. Set `hurry` to skip the drain.
    `traces` replaces the configured ones. `url`: where it listens. With `on_wait`, waits for a PostgreSQL that is away,
    and tells what the problem is. `open_ownership`: how it shares its store with others, if it does.
    """
    stop, hurry = stop or asyncio.Event(), hurry or asyncio.Event()
    with hold_data_dir(settings.data_dir):
        async with (
            _unless(stop, _open_store(settings, on_wait)) as store,
            open_ownership(settings, store, url=url) as ownership,
            ModelPool(settings.data_dir, source=models) as pool,
            _open_traces(traces, settings) as open_traces,
            Tasks() as tasks,
        ):
            app = App(
                replace(settings, token=ownership.token),
                store,
                pool,
                tasks,
                tuple(tools),
                ownership=ownership,
                traces=open_traces,
                stop_requested=stop,
                url=url,
            )
            note_store(settings.data_dir, describe_dsn(settings.store) if settings.store else "")
            try:
                await app.recover(hurry)
                tasks.spawn(app.prune(), name="prune")
                tasks.spawn(app.check_store(), name="check store")
                tasks.spawn(app.push.run(), name="push")
                yield app
            finally:
                await app.leave(drain_s=0, hurry=asyncio.Event())
                app.close()


def _open_store(settings: Settings, on_wait: Callable[[str], None] | None) -> AbstractAsyncContextManager[Store]:
    if settings.store is None:
        return open_sqlite(settings.data_dir / STORE_NAME)
    try:
        from longboat.store.postgres.store import open_postgres  # here: only who needs it pays for it
    except ModuleNotFoundError as error:
        raise DataDirError(
            "A store in PostgreSQL needs another package: pip install 'longboat[postgres]'.", code="postgres_missing"
        ) from error
    return open_postgres(settings.store, node=settings.node if settings.cluster_secret else "", on_wait=on_wait)


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
        url: str | None = None,
    ) -> None:
        self.settings = settings
        self._url = settings.advertise or url
        self._started_at = now()
        self.ownership = ownership
        self.stop_requested = stop_requested
        self.leaving = False
        self.left = asyncio.Event()
        """All streams have been told to end."""
        self._store = store
        self._models = models
        self._tasks = tasks
        self._tools = tools
        self._traces = traces
        self._logins: Logins | None = None
        self._providers: Providers | None = None
        self._output_files = OutputFiles(
            output_directory(settings.data_dir),
            limit=settings.server.max_output_mb * MEGABYTE,
            workspace_limit=settings.server.max_workspace_output_mb * MEGABYTE,
        )
        self.inbox = Inbox(
            store,
            heartbeat_s=settings.heartbeat_s,
            on_listeners=self._watch_idleness,
            poll_s=None if ownership.alone else POLL_INBOX_S,
            notifications=ownership.notifications,
        )
        self.push = Push(
            store, self.inbox, settings.server.push, settings.data_dir, notifications=ownership.notifications
        )
        self._loading = asyncio.Lock()
        self._moves = Moves(settings.node, ownership, tasks, close=self._leave_workspace)
        self.opened = OpenWorkspaces(
            store,
            ownership,
            tasks,
            create=self._create,
            next_owner=self._moves.next_owner,
            on_change=self._watch_idleness,
        )
        self._idle_exit: asyncio.TimerHandle | None = None
        self._damage: str | None = None
        self._watch_idleness()
        store.when_gone(self._stop_unrecorded_work)
        ownership.when_inbox_changed(self.inbox.look)

    @property
    def busy(self) -> bool:
        return any(workspace.engaged for workspace in self.opened.all)

    def request_stop(self) -> None:
        self.stop_requested.set()

    def health(self) -> Health:
        if self.leaving:
            return Health(status="leaving")
        if self._store.problem is not None:
            return Health(status="degraded", detail=self._store.problem)
        if not self.ownership.is_confirmed:
            return Health(status="degraded", detail=UNCONFIRMED)
        if self._damage is not None:
            return Health(status="degraded", detail=self._damage)
        return Health(status="ok")

    def check_ready(self) -> Health:
        """Raises why clients should go to another server."""
        if self.leaving:
            raise ServerLeaving
        if not self.ownership.is_confirmed:
            raise StoreUnavailable(UNCONFIRMED)
        return self.health()

    def _stop_unrecorded_work(self) -> None:
        """The data directory is gone (D8): stop active runs, which would act and cost money without a record. Their end
        is not recorded either, so the log names them."""
        for workspace in self.opened.all:
            if runs := workspace.sessions.run_ids:
                logger.error("unfinished runs of %s are lost: %s", workspace.directory, ", ".join(runs))
            workspace.sessions.interrupt()

    def gauges(self) -> dict[str, float]:
        workspaces = self.opened.all
        return {
            "workspaces_open": len(self.opened),
            "runs_unfinished": sum(workspace.sessions.runs_unfinished for workspace in workspaces),
            "runs_active": sum(workspace.sessions.runs_active for workspace in workspaces),
            "streams_open": sum(workspace.presence.claims.streams for workspace in workspaces),
            "store_failing": float(self._store.problem is not None),
            "leaving": float(self.leaving),
            **self.ownership.gauges(),
        }

    # Workspaces

    async def join(
        self,
        path: str,
        client_id: str | None,
        environ: Mapping[str, str] | None = None,
        *,
        node: str | None = None,
    ) -> "tuple[Workspace, bool]":
        """Return the workspace of a directory; True if it was never opened here before. `environ` is the client's own,
        for the commands of its runs. `node`: whose directory it is, if not ours."""
        elsewhere = await self.known_elsewhere(path, node)
        if elsewhere is not None:
            known, created = elsewhere, False
        else:
            known, created = await self._issue(await asyncio.to_thread(_resolve, path))
        workspace = await self.workspace(known.workspace_id)
        workspace.presence.claims.hold()
        if environ is not None:
            workspace.tools.environments.put(client_id, environ)
        return workspace, created

    async def _issue(self, directory: Path) -> tuple[WorkspaceRecord, bool]:
        path, home = str(directory), self.ownership.home_of(directory)
        only = None if self.ownership.alone else home
        known = await self._store.reads.workspace_at(path, only)
        if known is None and not self.ownership.alone:
            await self.ownership.restore_workspace_of(directory)
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
        return self.opened.find(workspace_id) is not None

    async def known_elsewhere(self, path: str, node: str | None) -> WorkspaceRecord | None:
        """The workspace of a directory that only another node has; None if it is not known, or if it is our own."""
        if self.ownership.alone or node == self.settings.node:
            return None
        if node is not None:
            return await self._store.reads.workspace_at(path, node)
        with suppress(BadInput):
            await asyncio.to_thread(_resolve, path)
            return None
        found = [each for each in await self._store.reads.workspaces() if each.path == (path.rstrip("/") or "/")]
        if len(found) > 1:
            homes = " or ".join(f"{each.home}:{each.path}" for each in found)
            raise BadInput(f"Several nodes have {path}. Name one: {homes}.", code="path_ambiguous")
        return found[0] if found else None

    async def known_shared(self, path: str) -> WorkspaceRecord | None:
        """The workspace of a directory that every node has, if it is known."""
        with suppress(BadInput):
            directory = await asyncio.to_thread(_resolve, path)
            if not (home := self.ownership.home_of(directory)):
                return await self._store.reads.workspace_at(str(directory), home)
        return None

    async def workspace(self, workspace_id: str) -> "Workspace":
        """Return the open workspace, or open it again."""
        return await self.opened.open(workspace_id)

    async def _create(self, known: WorkspaceRecord, terms: OwnershipTerms) -> "Workspace":
        async with self._loading:
            create = await asyncio.to_thread(self._load_workspace_class)
        return create(
            known,
            settings=self.settings,
            store=self._store,
            models=self._models,
            tools=self._tools,
            terms=terms,
            on_free=self.opened.close_unused,
            note_policy=self.ownership.note_policy,
            find_places=self.ownership.places,
            is_someone_reachable=self._is_someone_reachable,
        )

    async def observe(self, workspace_id: str) -> "ObservedWorkspace":
        """A workspace that another server works on, as the store shows it."""
        from longboat.runtime.workspace.observed import ObservedWorkspace  # here: one server alone never needs it

        known = await read_workspace(self._store, workspace_id)
        return ObservedWorkspace(known, self._store, self.ownership, heartbeat_s=self.settings.heartbeat_s)

    async def _is_someone_reachable(self) -> bool:
        """At an inbox or by a notification, through any server."""
        notifications = self.ownership.notifications
        if self.inbox.answering > 0 or notifications is None:
            return self.inbox.answering > 0 or self.push.reaches_someone
        try:
            return await notifications.is_someone_reachable()
        except StoreUnavailable:
            return True  # as far as we know: nothing is decided alone because the database is away

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
        places = await self.ownership.places()
        clients: dict[str, list[wire.ClientInfo]] = {}
        for attached in await self._store.reads.all_clients():
            clients.setdefault(attached.workspace_id, []).append(attached.client)
        items = [
            msgspec.structs.replace(
                await self._describe(
                    each,
                    busy=found.busy,
                    clients=clients.get(each.workspace_id, ()),
                    place=places.get(each.workspace_id, NOWHERE),
                ),
                used_at=found.used_at,
                waiting=found.waiting,
            )
            for each in known
            if (found := activity.get(each.workspace_id, WorkspaceActivity()))
        ]
        return WorkspacePage(items=tuple(items))

    async def _describe(
        self, known: WorkspaceRecord, *, busy: bool, clients: Sequence[wire.ClientInfo], place: Place
    ) -> wire.Workspace:
        """`clients`, `busy` and `place`: as the store has them. Several servers describe a workspace by these alone,
        also the one that works on it: all say the same."""
        workspace = self.opened.find(known.workspace_id) if self.ownership.alone else None
        if workspace is not None:
            return await workspace.describe(clients)
        return wire.Workspace(
            id=known.workspace_id,
            path=known.path,
            created_at=known.created_at,
            ready=place.ready,
            busy=busy,
            clients=() if self.ownership.alone else tuple(clients),
            home=place.home,
            owner=place.owner,
            away=place.away,
            away_since=place.away_since,
            home_stopping=place.home_stopping,
        )

    async def nodes(self) -> NodePage:
        """The servers that share the store, or this one."""
        if not self.ownership.alone:
            return NodePage(items=await self.ownership.nodes())
        gauges = self.gauges()
        alone = NodeInfo(
            name=self.settings.node,
            url=self._url,
            version=__version__,
            started_at=self._started_at,
            seen_at=now(),
            state=NodeState.LEAVING if self.leaving else NodeState.RUNNING,
            leaving=self.leaving,
            owns=len(self.opened),
            home_of=len(await self._store.reads.workspaces()),
            runs_active=int(gauges["runs_active"]),
            runs_waiting=int(gauges["runs_unfinished"] - gauges["runs_active"]),
            answering=True,
        )
        return NodePage(items=(alone,))

    async def stats(self, workspace_id: str | None, *, days: int) -> Stats:
        """Return the usage and activity of a workspace, or of all. Opens none."""
        if workspace_id is not None:
            await read_workspace(self._store, workspace_id)
        first = datetime.now(UTC) - timedelta(days=days - 1)  # today is one of them
        return await self._store.reads.stats(workspace_id, first.strftime("%Y-%m-%d"))

    async def search(self, typed: str, *, workspace_id: str | None, before: str | None, limit: int) -> SearchPage:
        """Search the messages of a workspace, or of all. Opens none."""
        if workspace_id is not None:
            await read_workspace(self._store, workspace_id)
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
        for workspace in self.opened.all:
            await self._models.look(workspace.services.project)

    async def drop_client(self, client_id: str) -> None:
        for workspace in self.opened.all:
            await workspace.presence.release(client_id)

    def _watch_idleness(self) -> None:
        """Stop a server that a command started in the background when no one needs it (B3)."""
        if self._idle_exit is not None:
            self._idle_exit.cancel()
            self._idle_exit = None
        if self.settings.idle_exit_s is not None and not self.opened and not self.inbox.streams and not self.leaving:
            loop = asyncio.get_running_loop()
            self._idle_exit = loop.call_later(self.settings.idle_exit_s, self.request_stop)

    # To another node

    async def move(self, workspace_id: str, wanted: MoveWorkspace) -> wire.Workspace:
        """Hand a workspace over to another node. Its queue continues there; an active run is in the way."""
        workspace = await self.workspace(workspace_id)
        await self._moves.move(workspace, wanted)
        if wanted.node == self.settings.node:
            return await workspace.describe()
        known = await self._store.reads.workspace(workspace_id)
        place = (await self.ownership.places()).get(workspace_id, NOWHERE)
        if known is None or place.owner != wanted.node:
            raise self._moves.unknown_node(wanted.node)  # it left just now
        clients = await self._store.reads.clients(workspace_id)
        return await self._describe(known, busy=False, clients=clients, place=place)

    async def _leave_workspace(self, workspace: "Workspace") -> None:
        await self.opened.hand_over(workspace, self.settings.server.drain_s)

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
        await process_tree.sweep(output_directory(self.settings.data_dir))
        if not self.ownership.alone:
            self.ownership.when_orphaned(self.workspace)  # only now: the sweep is over
            return
        gone = await self._store.reads.all_clients()
        unfinished = await self._store.reads.unfinished_workspaces()
        for client in gone:
            await retry_store(partial(self._store.submit, forget_client(client)), for_s=RESTORE_S)
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
        self.opened.refuse()
        await self.ownership.leave()
        await self.opened.drain(drain_s, hurry)
        self.inbox.close()
        self.left.set()
        await self.opened.wait_all_closed()

    def close(self) -> None:
        """Release the port to which browsers return after a login."""
        if self._logins is not None:
            self._logins.close()

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
            try:
                await self.prune_once()
            except StoreUnavailable as error:
                logger.debug("old events are left for the next time: %s", error)
            except Exception:  # a defect that one workspace brings out must not let the store grow for ever
                logger.exception("old events could not be forgotten")
            await asyncio.sleep(PRUNE_EVERY_S)

    async def prune_once(self) -> None:
        pruning = Pruning(self._store, self.ownership, keep_days=self.settings.server.keep_events_days)
        if await pruning.is_ours():
            await self.inbox.prune()
            await pruning.prune()


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
