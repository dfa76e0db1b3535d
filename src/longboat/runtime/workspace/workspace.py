"""A workspace: one directory with its sessions, its log and the clients that keep it open.

Owns the session actors and the presence. Runs belong to it, not to connections (B2). Must not know HTTP; it returns
wire types.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from longboat.config.settings import OnRestart, Settings
from longboat.context.hooks import read_hooks
from longboat.context.library import Command
from longboat.errors import (
    ConfigInvalid,
    LongboatError,
    RunIdTaken,
    RunNotEditable,
    RunNotFound,
    ServerLeaving,
    SessionDamaged,
    SessionIdTaken,
    SessionNotFound,
    StoreDamaged,
    StoreUnavailable,
    TreeAway,
    WorkspaceClosing,
)
from longboat.runtime.clock import now
from longboat.runtime.ownership import OwnershipTerms, Place, WorkspaceStore
from longboat.runtime.session import damaged_sessions
from longboat.runtime.session.command_loop import UnsavedCancel
from longboat.runtime.session.review import Review
from longboat.runtime.session.submit import (
    command_name_in,
    queued_alone,
    run_from_prompt,
    run_from_shell,
    run_from_summarize,
    with_command,
    with_command_text,
)
from longboat.runtime.store_retry import RESTORE_S, retry_store
from longboat.runtime.turn.setup import tell_finished
from longboat.runtime.turn.traces import Traces
from longboat.runtime.workspace.browse import FileBrowser
from longboat.runtime.workspace.models import ModelPool
from longboat.runtime.workspace.observed import state_of_session
from longboat.runtime.workspace.presence import Presence
from longboat.runtime.workspace.services import Services
from longboat.runtime.workspace.sessions import RunWaiters, Sessions
from longboat.runtime.workspace.welcome import welcome
from longboat.store.changes import insert_session
from longboat.store.protocol import Entry, Store, UniqueViolated, Unit
from longboat.store.records import RunRecord, WorkspaceRecord
from longboat.tools.mcp.logins import Logins
from longboat.tools.process.output_files import OutputFiles
from longboat.tools.protocol import Tool
from longboat.wire import models as wire
from longboat.wire.asks import Permission, PermissionAnswer
from longboat.wire.events import Change
from longboat.wire.ids import check_session_id, new_id
from longboat.wire.listings import ModelPage, Welcome
from longboat.wire.models import (
    Accepted,
    AgentInfo,
    Canceled,
    MessagePage,
    Run,
    RunPage,
    RunState,
    Session,
    SessionStatus,
)
from longboat.wire.requests import (
    AnswerPermission,
    CreateSession,
    EditRun,
    McpLogin,
    Revert,
    RunShell,
    Submit,
    Summarize,
    UpdateSession,
)
from longboat.wire.review import Reverted
from longboat.wire.workspace_state import McpEvent, Todos, Undone

logger = logging.getLogger(__name__)


class Workspace:
    def __init__(
        self,
        record: WorkspaceRecord,
        *,
        settings: Settings,
        store: Store,
        models: ModelPool,
        tools: Iterable[Tool],
        logins: Logins,
        output_files: OutputFiles,
        traces: Traces,
        terms: OwnershipTerms,
        on_free: Callable[["Workspace"], None],
        is_someone_reachable: Callable[[], Awaitable[bool]],
        note_policy: Callable[..., Awaitable[None]],
        find_places: Callable[[], Awaitable[Mapping[str, Place]]],
    ) -> None:
        """`is_someone_reachable`: whether someone who is not attached to this workspace would answer its questions.
        `note_policy` is called with the id, whether active runs continue after a crash, and whether it is ready."""
        self._terms = terms
        self._store_policy = note_policy
        self._find_places = find_places
        self._noting_policy = asyncio.Lock()
        self._noted_ready: bool | None = None
        self.id = record.workspace_id
        self.directory = Path(record.path)
        self._sessions_store = WorkspaceStore(store)
        self.services = services = Services(
            self.id,
            self.directory,
            away=terms.place.away,
            shared_trust=terms.shared_trust,
            settings=settings,
            store=self._sessions_store,
            models=models,
            tools=tools,
            logins=logins,
            output_files=output_files,
            traces=traces,
            host=self,
        )
        self.store = store
        self.tools = services.tools
        self.asks = services.asks
        self.ledger = services.ledger
        self.archive = services.archive
        self.closing = False
        self._created_at = record.created_at
        self._on_free = on_free
        self._is_someone_reachable = is_someone_reachable
        self.presence = Presence(store, self.id, settings, services.config_watcher, on_free=self.settled)
        self.sessions = Sessions(services, held=terms.place.away)
        self._waits = RunWaiters()
        self._entering = 0
        services.config_watcher.when_changed(partial(retry_store, self.note_policy))

    # For the sessions (longboat.runtime.protocols.SessionHost)

    def run_accepted(self, run_id: str, session_id: str) -> None:
        self._waits.accepted(run_id, session_id)

    def run_finished(self, run: Run) -> None:
        self._waits.finished(run.run_id)
        with suppress(ConfigInvalid):
            if self.services.config().hooks:
                self.services.tasks.spawn(self._tell_hooks(run), name=f"run_finished hooks of {run.run_id}")
                return
        self.tools.environments.release(run.run_id)

    async def _tell_hooks(self, run: Run) -> None:
        """Notify the hooks; the workspace stays open for them (A5)."""
        try:
            with suppress(ConfigInvalid, WorkspaceClosing), self._staying():
                await tell_finished(self.services, read_hooks(self.services.config().hooks), run)
        finally:
            self.tools.environments.release(run.run_id)

    def session_deleted(self, session_id: str) -> None:
        self.sessions.deleted(session_id)

    async def can_answer(self) -> bool:
        return self.presence.claims.can_answer or await self._is_someone_reachable()

    def settled(self) -> None:
        if not self.presence.claims.held and not self.engaged and not self.closing:
            self._on_free(self)

    # What needs the directory

    @property
    def browse(self) -> FileBrowser:
        self.services.check_tree()
        return self.services.browse

    @property
    def review(self) -> Review:
        self.services.check_tree()
        return self.services.review

    # What the app looks at

    @property
    def engaged(self) -> bool:
        return self._entering > 0 or self.sessions.engaged

    @property
    def home(self) -> str | None:
        """The node whose disk has the directory; None: every node has it."""
        return self._terms.place.home

    async def describe(self, clients: Sequence[wire.ClientInfo] | None = None) -> wire.Workspace:
        """`clients`: who holds it, if that was read already."""
        if clients is None:
            clients = await self.store.reads.clients(self.id)
        place, ready = await self._place(), self.services.is_ready()
        if ready is not self._noted_ready:
            with suppress(StoreUnavailable):  # noted with the next request
                await self.note_policy()
        return wire.Workspace(
            id=self.id,
            path=str(self.directory),
            created_at=self._created_at,
            ready=ready,
            busy=self.sessions.runs_active > 0,
            clients=tuple(clients),
            home=place.home,
            owner=place.owner,
            away=place.away,
            away_since=place.away_since,
            home_stopping=place.home_stopping,
        )

    async def _place(self) -> Place:
        """While the directory is away, its node may go from stopping to down."""
        place = self._terms.place
        if place.away:
            with suppress(StoreUnavailable):
                found = (await self._find_places()).get(self.id, place)
                return replace(
                    place, away_since=found.away_since or place.away_since, home_stopping=found.home_stopping
                )
        return place

    async def agent(self, name: str | None = None) -> AgentInfo:
        """Say which model would answer a prompt that names this model, or none."""
        busy = self.sessions.runs_active > 0
        try:
            model = await self.services.model(name, "large")
        except LongboatError as error:
            return AgentInfo(
                model=None, provider=None, ready=False, busy=busy, problem=error.message, problem_code=error.code
            )
        advice = self.services.models.advice(self.services.project, model) if name is None else None
        return AgentInfo(model=model.name, provider=model.provider, ready=True, busy=busy, advice=advice)

    async def models(self) -> ModelPage:
        return await self.services.models.list_models(self.services.project)

    async def welcome(self) -> Welcome:
        self.services.check_tree()
        return await welcome(self.directory, self.tools.environ)

    # Sessions

    async def create_session(self, request: CreateSession, *, sent_by: tuple[str, str] | None = None) -> Session:
        """`sent_by`: for a sub-agent, the session and the call that start it. Raises UniqueViolated if the session
        exists."""
        self._check_open()
        at = now()
        parent, call = sent_by or (None, None)
        session = Session(
            id=request.session_id or new_id(),
            workspace_id=self.id,
            parent_id=parent,
            parent_call_id=call,
            title=request.title,
            created_at=at,
            updated_at=at,
        )
        entry = Entry.of(Change.CREATED, session, session_id=session.id, parent=parent)
        await self.store.submit(Unit(workspace_id=self.id, writes=[insert_session(session)], entries=[entry]))
        self.sessions.created(session)
        return session

    async def open_session(self, request: CreateSession) -> tuple[Session, bool]:
        """Return the requested session, and whether it is new. The same id gives the same session; its title is not
        compared, because it may have been renamed since."""
        if request.session_id is None:
            return await self.create_session(request), True
        session_id = check_session_id(request.session_id)
        try:
            return await self.create_session(request), True
        except UniqueViolated:
            known = await self._known_session(session_id)
        if known.parent_id is not None:
            raise SessionIdTaken(session_id)
        return known, False

    async def _known_session(self, session_id: str) -> Session:
        try:
            return await self.session(session_id)
        except SessionNotFound:
            raise SessionIdTaken(session_id) from None  # of another workspace

    async def session(self, session_id: str) -> Session:
        return (await self.sessions.get(session_id)).session

    async def update_session(self, session_id: str, request: UpdateSession) -> Session:
        with self._staying():
            return await (await self.sessions.get(session_id)).update(request)

    async def delete_session(self, session_id: str) -> None:
        """Delete a session. The sessions of its sub-agents go first, so that none is left behind."""
        with self._staying():
            try:
                actor = await self.sessions.get(session_id)
            except SessionDamaged:
                await self._delete_children(session_id)
                await damaged_sessions.delete(self.store, self.id, session_id)
                self.sessions.deleted(session_id)
            else:
                await actor.delete(partial(self._delete_children, session_id))

    async def _delete_children(self, session_id: str) -> None:
        for child_id in await self.store.reads.child_sessions(self.id, session_id):
            with suppress(SessionNotFound):  # someone else was faster
                await self.delete_session(child_id)

    async def summarize_session(self, session_id: str, request: Summarize, *, key: str | None = None) -> Accepted:
        """A7: start a separate run whose turn is a summary."""
        return await self.accept(run_from_summarize(session_id, request, key=key))

    async def run_shell(self, session_id: str, request: RunShell, *, key: str | None = None) -> Accepted:
        """Start a separate run for a person's command: queued, canceled and recorded like any other."""
        record = run_from_shell(session_id, request, key=key)
        try:
            self.services.check_tree()
        except TreeAway as refused:
            return await self._accepted_before(record, refused)
        return await self.accept(record)

    async def undo_turn(self, session_id: str) -> Undone:
        self.services.check_tree()
        with self._staying():
            return await (await self.sessions.get(session_id)).undo()

    async def redo_turn(self, session_id: str) -> Undone:
        self.services.check_tree()
        with self._staying():
            return await (await self.sessions.get(session_id)).redo()

    async def revert(self, session_id: str, wanted: Revert) -> Reverted:
        self.services.check_tree()
        with self._staying():
            return await (await self.sessions.get(session_id)).revert(wanted)

    async def redo_revert(self, session_id: str, revert_id: str, client_id: str | None) -> Reverted:
        self.services.check_tree()
        with self._staying():
            return await (await self.sessions.get(session_id)).redo_revert(revert_id, client_id)

    async def messages(
        self, session_id: str, *, limit: int, after: str | None = None, before: str | None = None
    ) -> MessagePage:
        await self.sessions.get(session_id)
        return await self.ledger.messages(session_id, limit=limit, after=after, before=before)

    async def todos(self, session_id: str) -> Todos:
        await self.sessions.get(session_id)
        return await self.ledger.todos(session_id)

    async def session_status(self, session_id: str) -> SessionStatus:
        state = (await self.sessions.get(session_id)).state
        return state_of_session(session_id, state, undone=await self.services.undo.undone(session_id))

    # Runs

    async def submit(self, request: Submit, *, traceparent: str | None = None, key: str | None = None) -> Accepted:
        """`traceparent`: the caller's span, as W3C Trace Context writes it. `key`: the same one is the same run."""
        record = run_from_prompt(request, traceparent=traceparent, key=key)
        try:
            command = await self._find_command(request.prompt)
            if command is not None:
                record = with_command(record, command, model=await self.services.model_of(command))
        except LongboatError as refused:
            return await self._accepted_before(record, refused)
        return await self.accept(queued_alone(record) if self.services.uses_mcp_prompt(record.run.prompt) else record)

    async def _accepted_before(self, record: RunRecord, refused: LongboatError) -> Accepted:
        """A client that got no answer asks again. A new prompt would be refused by now; this one gets its run."""
        try:
            return await self._repeated(record)
        except RunNotFound:
            raise refused from None

    async def _find_command(self, prompt: str) -> Command | None:
        """The command that a prompt calls. Its text may be a file of the directory: without that, nobody knows it."""
        name = command_name_in(prompt)
        if name is None:
            return None
        self.services.check_tree()
        return await self.tools.command(name)

    async def accept(self, record: RunRecord) -> Accepted:
        if self.sessions.leaving:
            raise ServerLeaving
        run_id = record.run.run_id
        bound = self.tools.environments.bind(run_id, record.run.client_id)
        with self._staying():
            try:
                return await (await self.sessions.get(record.run.session_id)).accept(record)
            except BaseException as refused:
                if bound:
                    self.tools.environments.release(run_id)
                if isinstance(refused, UniqueViolated):
                    return await self._repeated(record)
                raise

    async def _repeated(self, record: RunRecord) -> Accepted:
        """Handle a known run_id: the same prompt gets the same run, another one is refused."""
        known = await self.ledger.record(record.run.run_id)
        if known.run.session_id != record.run.session_id or known.fingerprint != record.fingerprint:
            raise RunIdTaken(record.run.run_id)
        run = self.sessions.with_position(known.run)
        return Accepted(run_id=run.run_id, seq=run.seq, state=run.state, position=run.position)

    async def runs(self, *, state: RunState | None, session_id: str | None, limit: int, after: str | None) -> RunPage:
        page = await self.ledger.runs(state=state, session_id=session_id, limit=limit, after=after)
        return RunPage(items=tuple(self.sessions.with_position(run) for run in page.items), next=page.next)

    async def run(self, run_id: str, *, wait_s: float = 0) -> Run:
        await self._waits.wait(run_id, wait_s)
        return self.sessions.with_position((await self.ledger.record(run_id)).run)

    async def cancel_run(self, run_id: str, by: str | None = None) -> Run:
        with self._staying():
            session_id = self._waits.session_of(run_id)
            if session_id is not None:
                run = await (await self.sessions.get(session_id)).cancel_run(run_id, by)
                if run is not None:
                    return run
            return self.sessions.with_position((await self.ledger.record(run_id)).run)

    async def edit_run(self, run_id: str, request: EditRun) -> Run:
        command = await self._find_command(request.prompt or "")
        if command is not None:
            request = with_command_text(request, command)
        with self._staying():
            session_id = self._waits.session_of(run_id)
            if session_id is not None:
                run = await (await self.sessions.get(session_id)).edit_run(run_id, request)
                if run is not None:
                    return run
            raise RunNotEditable(run_id, (await self.ledger.record(run_id)).run.state)

    async def cancel_session(self, session_id: str, by: str | None = None, *, key: str | None = None) -> Canceled:
        """`key`: with the same one, a repeated cancel gets the first answer and covers nothing newer."""
        with self._staying():
            return await (await self.sessions.get(session_id)).cancel(by, key=key)

    async def clear_queue(self, session_id: str, by: str | None = None, *, key: str | None = None) -> Canceled:
        with self._staying():
            return await (await self.sessions.get(session_id)).clear_queue(by, key=key)

    async def queued(self, session_id: str) -> RunPage:
        return RunPage(items=tuple((await self.sessions.get(session_id)).live.queued()))

    # Asks

    async def answer_permission(self, permission_id: str, request: AnswerPermission) -> Permission:
        if request.answer is PermissionAnswer.ALWAYS:
            self.services.check_tree()  # the rule is for a file of the directory
        return await self.asks.answer_permission(permission_id, request)

    # MCP servers

    async def mcp_login(self, server: str, request: McpLogin) -> McpEvent:
        with self._staying():
            told = await self.tools.mcp_login(server, request.redirect_url)
            if told.authorization_url is not None:
                self._entering += 1
                self.services.tasks.spawn(self._wait_logged_in(server), name=f"login to {server}")
            return told

    async def _wait_logged_in(self, server: str) -> None:
        """Keep the workspace open while a person is at the login page, because closing it would end the login."""
        try:
            await self.tools.wait_logged_in(server)
        finally:
            self._left()

    # Streams

    @asynccontextmanager
    async def stream(
        self, *, client_id: str, after: str | None, session_id: str | None, answers: bool = False
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        if session_id is not None:
            await self.sessions.get(session_id)
        self._check_open()
        stream = self.presence.stream(client_id=client_id, after=after, session_id=session_id, answers=answers)
        async with stream as chunks:
            yield chunks

    # Life and end

    async def open(self) -> None:
        """Find the end of the log. The hub receives everything committed from now on."""
        await self.presence.hub.open()

    async def restore(self, cancels: Mapping[str, Sequence[UnsavedCancel]] | None = None) -> None:
        """Restore the unfinished runs from the store (B6). `cancels`, by session: those that this server could not save
        before it closed the workspace."""
        cancels = cancels or {}
        left = await self.ledger.unfinished()
        resume = self.resumes()
        for session_id in dict.fromkeys((*left.runs, *left.damaged, *cancels)):
            try:
                if session_id in left.damaged:
                    raise left.damaged[session_id]
                actor = await self.sessions.get(session_id)
                runs, unsaved = left.runs.get(session_id, ()), cancels.get(session_id, ())
                await retry_store(partial(actor.restore, runs, resume=resume, cancels=unsaved), for_s=RESTORE_S)
            except (SessionDamaged, StoreDamaged) as error:  # it costs this session, and no other (D12)
                await damaged_sessions.end_runs(self.store, self.id, session_id, error, asks=self.asks)
            except SessionNotFound:
                pass  # another owner has deleted it, with what the cancels are for

    async def announce(self) -> None:
        """Tell clients which node works on the workspace now, and whether its directory is there."""
        entry = Entry.of(Change.UPDATED, await self.describe())
        await self.store.submit(Unit(workspace_id=self.id, entries=[entry], durable=False))

    def resumes(self) -> bool:
        """Whether an active run continues after a crash."""
        if self._terms.place.away:
            return self._terms.resume
        try:
            return self.services.config().on_restart is OnRestart.RESUME
        except ConfigInvalid:
            return False

    async def note_policy(self) -> None:
        """Store what a node without the directory must know of its configuration. One after the other, so that the
        newest is stored last."""
        async with self._noting_policy:
            ready = self.services.is_ready()
            await self._store_policy(self.id, resume=self.resumes(), ready=ready)
            self._noted_ready = ready

    def close(self) -> None:
        """End the streams and the timers. From here on this object refuses requests; the app opens a new one when
        needed."""
        self.closing = True
        self.presence.claims.close()
        self._waits.close()
        self.presence.hub.close()
        self.services.config_watcher.close()

    def stop_writing(self) -> None:
        """From here on, nothing that happens here is on record, as after a crash."""
        self._sessions_store.close()

    async def aclose(self) -> bool:
        """End the tasks and the tools. Return whether all of them ended in time."""
        await self.services.tasks.aclose()
        ended = not self.services.tasks.pending
        try:
            await self.tools.aclose()
        except TimeoutError:
            logger.error("some tools of %s did not end in time: the next start ends what they left", self.directory)
            ended = False
        finally:
            self.stop_writing()
        return ended

    @contextmanager
    def _staying(self) -> Iterator[None]:
        """Keep the workspace open during an operation: two objects for one directory must never act at once."""
        self._check_open()
        self._entering += 1
        try:
            yield
        finally:
            self._left()

    def _left(self) -> None:
        self._entering -= 1
        self.settled()

    def _check_open(self) -> None:
        if self.closing:
            raise WorkspaceClosing
