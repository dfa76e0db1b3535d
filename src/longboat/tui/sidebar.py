"""The sidebar: model and usage, the plan, changed files, jobs, servers, and who is connected.

Reads in workers what the events do not carry, so that drawing never waits for it.
"""

import asyncio
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from longboat.errors import LongboatError
from longboat.tui.panels.details import ChangesPanel, Figures, ModelPanel, ServersPanel
from longboat.tui.panels.jobs import JobsPanel
from longboat.tui.panels.todos import ClientsPanel, TodosPanel
from longboat.tui.status import State

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

PAUSE_S = 0.5
"""The shortest time between two readings of the changes: an agent may write many files at once."""
READ = "sidebar"


class Sidebar(VerticalScroll, can_focus=False):
    def __init__(self, app: "LongboatApp") -> None:
        super().__init__(id="side")
        self._app = app
        self._stale = False
        """Whether the changes have to be read again after the current reading."""
        self._reading = False

    def compose(self) -> ComposeResult:
        yield ModelPanel(id="model")
        yield TodosPanel(id="todos")
        yield ChangesPanel(id="changes")
        yield JobsPanel(self._app.interrupting.kill, id="jobs")
        yield ServersPanel(id="servers")
        yield ClientsPanel(id="clients")

    @property
    def is_shown(self) -> bool:
        return self.styles.display != "none"

    # -- showing

    def show(self) -> None:
        """Show what the mirror knows."""
        mirror, session_id = self._app.connection.mirror, self._app.current.session_id
        self.query_one(TodosPanel).show(mirror.todos.get(session_id or "", ()))
        self.query_one(JobsPanel).show(list(mirror.jobs.values()))
        self.query_one(ServersPanel).show(list(mirror.lsp.values()), list(mirror.mcp.values()))

    def show_clients(self) -> None:
        connection = self._app.connection
        self.query_one(ClientsPanel).show(list(connection.mirror.clients.values()), connection.client.client_id)

    def show_model(self, state: State) -> None:
        self.query_one(ModelPanel).show(
            Figures(
                model=state.model,
                effort=state.effort,
                context=state.context,
                window=state.window,
                usage=state.usage,
            )
        )

    # -- reading

    def read_all(self) -> None:
        """Read everything again: another session, a new connection, or the sidebar was opened."""
        self.read_changes()
        self._app.run_worker(self._read_servers(), name="servers", group=READ)

    def read_changes(self) -> None:
        """Read the changed files soon, once for all changes until then."""
        self._stale = True
        if not self._reading and self.is_shown:
            self._reading = True
            self._app.run_worker(self._read_changes(), name="changes", group=READ)

    async def _read_changes(self) -> None:
        connection, current = self._app.connection, self._app.current
        try:
            while self._stale:
                self._stale = False
                session_id = current.session_id
                if session_id is None:
                    self.query_one(ChangesPanel).show([])
                    break
                page = await connection.client.changes(connection.workspace_id, session_id=session_id, stat=True)
                if session_id == current.session_id:
                    self.query_one(ChangesPanel).show(page.items, complete=page.complete)
                await asyncio.sleep(PAUSE_S)
        except LongboatError:
            pass  # read again with the next change
        finally:
            self._reading = False

    async def _read_servers(self) -> None:
        """Read the servers. Events that arrived meanwhile are newer and win."""
        connection = self._app.connection
        if not connection.workspace_id:
            return
        try:
            lsp = await connection.client.lsp(connection.workspace_id)
            mcp = await connection.client.mcp(connection.workspace_id)
        except LongboatError:
            return  # read again when the connection is back
        for language in lsp.items:
            connection.mirror.lsp.setdefault((language.server, language.root), language)
        for server in mcp.items:
            connection.mirror.mcp.setdefault(server.server, server)
        self.show()
