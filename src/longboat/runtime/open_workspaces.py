"""The workspaces that are open here. Each is opened once, however many ask for it, and only after it was closed.

Owns how they are opened, how they end, and what happens to their turns when the server leaves (B4, B5). Must not know
what clients ask of a workspace.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from longboat.errors import OwnedElsewhere, OwnerLost, ServerLeaving, WorkspaceNotFound
from longboat.runtime.ownership import Ownership, OwnershipTerms
from longboat.store.changes import delete_client
from longboat.store.protocol import Entry, Store, Unit
from longboat.store.records import AttachedClient, WorkspaceRecord
from longboat.tasks import Tasks
from longboat.wire.events import Change

if TYPE_CHECKING:
    from longboat.runtime.session.command_loop import UnsavedCancel
    from longboat.runtime.workspace.workspace import Workspace

logger = logging.getLogger(__name__)

FINAL_S = 2.0
"""How long interrupted turns have for their final writes (T4). With the time for closing, the server exits within drain
+ 5 s (B5)."""
OPENINGS = 8
"""How many workspaces may be opened at the same time."""


class OpenWorkspaces:
    def __init__(
        self,
        store: Store,
        ownership: Ownership,
        tasks: Tasks,
        *,
        create: "Callable[[WorkspaceRecord, OwnershipTerms], Awaitable[Workspace]]",
        next_owner: Callable[[str], str | None],
        on_change: Callable[[], None],
    ) -> None:
        """`create` makes the object of a workspace that this server owns. `next_owner`: which node is to have a
        workspace once it is closed; None: any."""
        self._store = store
        self._ownership = ownership
        self._tasks = tasks
        self._create = create
        self._next_owner = next_owner
        self._on_change = on_change
        self._open: dict[str, Workspace] = {}
        self._openings: dict[str, asyncio.Task[Workspace]] = {}
        """Workspaces that are being opened, each by a task of its own: a client that goes away stops no opening."""
        self._arriving: set[Workspace] = set()
        """The workspaces that are being opened now, once their sessions exist."""
        self._closings: dict[str, asyncio.Task[None]] = {}
        """Workspaces whose processes are being ended. They are gone before the directory is opened again, or we are."""
        self._unsaved: dict[str, dict[str, tuple[UnsavedCancel, ...]]] = {}
        """Of workspaces that were closed because their leases were lost: the cancels that the store could not take."""
        self._opening = asyncio.Semaphore(OPENINGS)
        self._leaving = False
        self._opens_no_more = False
        ownership.when_lost(self._drop)
        ownership.when_renewed(self._allow_commands)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def all(self) -> "list[Workspace]":
        return list(self._open.values())

    def find(self, workspace_id: str) -> "Workspace | None":
        return self._open.get(workspace_id)

    # Open

    async def open(self, workspace_id: str) -> "Workspace":
        """Return the open workspace, or open it again."""
        workspace = self._open.get(workspace_id)
        if workspace is not None:
            return workspace
        opening = self._openings.get(workspace_id)
        if opening is None:
            opening = self._tasks.spawn(self._open_once(workspace_id), name=f"open {workspace_id}", awaited=True)
            self._openings[workspace_id] = opening
            opening.add_done_callback(lambda _: self._openings.pop(workspace_id))
        return await asyncio.shield(opening)

    async def _open_once(self, workspace_id: str) -> "Workspace":
        # Once it has ended, nothing of it can give back the lease that the new one takes.
        await self._wait_closed(workspace_id)
        async with self._opening:
            if self._opens_no_more:
                # A new one would not know the runs queued on disk: a cancel would succeed and do nothing.
                raise ServerLeaving
            return await self._open_again(workspace_id)

    async def _open_again(self, workspace_id: str) -> "Workspace":
        known = await read_workspace(self._store, workspace_id)
        terms = await self._ownership.acquire(workspace_id)
        try:
            workspace = await self._create(known, terms)
        except BaseException:
            await self._ownership.release(workspace_id)
            raise
        try:
            if terms.allowed is not None:
                workspace.tools.allow_for(terms.allowed[0], since=terms.allowed[1])
            await workspace.open()
            self._arriving.add(workspace)
            if self._leaving:
                workspace.sessions.refuse()
            if not self._ownership.alone:
                await self._succeed(workspace)
        except OwnerLost as error:
            self._end(workspace)
            raise OwnedElsewhere(workspace_id) from error  # nothing was asked of it yet
        except BaseException:
            self._end(workspace)
            raise
        finally:
            self._arriving.discard(workspace)
        workspace.presence.claims.hold()
        self._open[workspace_id] = workspace
        self._on_change()
        return workspace

    async def _succeed(self, workspace: "Workspace") -> None:
        """The former owner's clients are gone; its unfinished runs continue or end (B6)."""
        for client in await self._store.reads.clients(workspace.id):
            await self._store.submit(forget_client(AttachedClient(workspace_id=workspace.id, client=client)))
        await workspace.services.follow_trust()
        await workspace.note_policy()
        await workspace.announce()
        # Last: what fails before has started no run.
        await workspace.restore(self._unsaved.get(workspace.id, {}))
        if not self._ownership.owns(workspace.id):
            raise OwnedElsewhere(workspace.id)
        self._unsaved.pop(workspace.id, None)

    # End

    def close_unused(self, workspace: "Workspace") -> None:
        """Close a workspace: no client is attached and nothing is left to do. Does not wait: the next request gets a
        new one."""
        if not self._leaving and self._open.get(workspace.id) is workspace:
            self._end(workspace)

    async def hand_over(self, workspace: "Workspace", drain_s: float) -> None:
        """As if the server were leaving, for one workspace."""
        await self._end_turns([workspace], drain_s, asyncio.Event())
        if self._open.get(workspace.id) is workspace:
            self._end(workspace)
        await self._wait_closed(workspace.id)

    def _drop(self, workspace_id: str) -> None:
        """The workspace has another owner, or may have one soon: stop everything of it here."""
        workspace = self._open.get(workspace_id)
        if workspace is not None:
            self._end(workspace)
        for arriving in self._arriving:  # its opening fails, and closes it; its turns must not go on until then
            if arriving.id == workspace_id:
                arriving.stop_writing()
                arriving.sessions.interrupt()

    def _allow_commands(self, renewed: Collection[str], seconds: float, since: float) -> None:
        for workspace in (*self._open.values(), *self._arriving):
            if not self._ownership.owns(workspace.id):
                self._drop(workspace.id)
            elif workspace.id in renewed:
                workspace.tools.allow_for(seconds, since=since)

    def _end(self, workspace: "Workspace") -> None:
        workspace.close()
        self._open.pop(workspace.id, None)
        closing = self._tasks.spawn(self._close_tools(workspace), name=f"close {workspace.id}")
        self._closings[workspace.id] = closing
        closing.add_done_callback(partial(self._note_closed, workspace.id))
        self._on_change()

    def _note_closed(self, workspace_id: str, closing: asyncio.Task[None]) -> None:
        self._closings.pop(workspace_id)
        if closing.cancelled():  # perhaps before its first step: then nothing has ended the tools
            self._ownership.abandon(workspace_id)

    async def _close_tools(self, workspace: "Workspace") -> None:
        ended = False
        try:
            ended = await workspace.aclose()
        finally:
            self._keep_cancels(workspace)
            if ended:
                await self._ownership.release(workspace.id, to=self._next_owner(workspace.id))
            else:
                self._ownership.abandon(workspace.id)

    def _keep_cancels(self, workspace: "Workspace") -> None:
        """Those of a restore that failed are here already."""
        if cancels := workspace.sessions.unsaved_cancels:
            self._unsaved[workspace.id] = self._unsaved.get(workspace.id, {}) | cancels

    async def _wait_closed(self, workspace_id: str) -> None:
        if (closing := self._closings.get(workspace_id)) is not None:
            await asyncio.wait([closing])

    # Leave

    def refuse(self) -> None:
        """The server is leaving: no session accepts or starts anything."""
        self._leaving = True
        for workspace in (*self._open.values(), *self._arriving):
            workspace.sessions.refuse()

    async def drain(self, drain_s: float, hurry: asyncio.Event) -> None:
        """After `refuse`: let active runs end within the drain time, stop the rest, then close everything. Does not
        wait until the tools have ended: see `wait_all_closed`."""
        clock = asyncio.get_running_loop().time
        end = clock() + drain_s
        workspaces = self.all
        await self._end_turns(workspaces, drain_s, hurry)
        self._opens_no_more = True
        if self._openings:
            await asyncio.wait(list(self._openings.values()))
        late = [workspace for workspace in self.all if workspace not in workspaces]
        if any(workspace.engaged for workspace in late):  # one that was just being opened
            await self._end_turns(late, max(end - clock(), 0.0), hurry)
        for workspace in self.all:
            self._end(workspace)

    async def wait_all_closed(self) -> None:
        if self._closings:
            await asyncio.wait(list(self._closings.values()))

    async def _end_turns(self, workspaces: "list[Workspace]", drain_s: float, hurry: asyncio.Event) -> None:
        if await self._unwound(workspaces, drain_s, hurry):
            return
        interrupted = [workspace for workspace in workspaces if not self._leave_to_next_owner(workspace)]
        for workspace in interrupted:
            workspace.sessions.interrupt()
        if not await self._unwound(interrupted, FINAL_S, asyncio.Event()):
            logger.error("some runs did not end in time; the next start ends them")

    def _leave_to_next_owner(self, workspace: "Workspace") -> bool:
        """Close a workspace without ending its active runs, if it resumes them: that is up to the next owner (G9)."""
        if self._ownership.alone or not workspace.resumes():
            return False
        if self._open.get(workspace.id) is workspace:
            workspace.stop_writing()
            self._end(workspace)
        return True

    async def _unwound(self, workspaces: "list[Workspace]", timeout_s: float, hurry: asyncio.Event) -> bool:
        """Wait until no turn runs; False if the time is over or someone is in a hurry first."""
        async with Tasks() as waits:
            turns = [waits.spawn(self._wind_down(workspace), name="unwound") for workspace in workspaces]
            all_done = waits.spawn(_all(turns), name="all unwound")
            rush = waits.spawn(_all([waits.spawn(hurry.wait(), name="hurry")]), name="rush")
            await asyncio.wait([all_done, rush], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return all_done.done()

    async def _wind_down(self, workspace: "Workspace") -> None:
        await workspace.sessions.wind_down()
        if not self._ownership.alone and workspace.id in self._open:
            self._end(workspace)  # another node can have it, while other workspaces here are still busy (G9)


async def read_workspace(store: Store, workspace_id: str) -> WorkspaceRecord:
    known = await store.reads.workspace(workspace_id)
    if known is None:
        raise WorkspaceNotFound(workspace_id)
    return known


def forget_client(gone: AttachedClient) -> Unit:
    """What the store and the log get when a client is no longer attached."""
    write = delete_client(gone.workspace_id, gone.client.client_id)
    entry = Entry.of(Change.DELETED, gone.client)
    return Unit(workspace_id=gone.workspace_id, writes=[write], entries=[entry], durable=False)


async def _all(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    await asyncio.gather(*tasks)
