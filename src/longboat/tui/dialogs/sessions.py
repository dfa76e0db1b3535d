"""The session list: search titles and what was said as you type; open, pin, archive, rename, fork and delete."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import ClassVar

from textual import events, on, work
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from longboat.errors import LongboatError
from longboat.tui.dialogs.confirm import ConfirmDialog, Confirmed
from longboat.tui.dialogs.fields import Field
from longboat.tui.dialogs.formatting import ago, now
from longboat.tui.dialogs.frame import ListDialog, keys_line
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.amounts import cost_of
from longboat.wire.models import Message, Outcome, Role, Session, TextPart, Usage
from longboat.wire.plain import plain, plain_line
from longboat.wire.search import SearchHit

Search = Callable[[str], Awaitable[Sequence[Session]]]
SearchText = Callable[[str], Awaitable[Sequence[SearchHit]]]
Preview = Callable[[str], Awaitable[str]]
"""The end of a session, by its id: what was said last."""
Mark = Callable[[Session], Awaitable[object]]

MAX_PREVIEW = 300
"""Characters."""
Rename = Callable[[str, str], Awaitable[object]]
Delete = Callable[[str], Awaitable[object]]


FAILED: dict[Outcome | None, str] = {Outcome.ERROR: " failed", Outcome.INTERRUPTED: " interrupted"}
"""The mark of a session whose last turn ended so."""


def _cost(usage: Usage) -> str:
    return cost_of(usage) if usage != Usage() else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSession:
    session_id: str
    message_id: str | None = None
    """The message that was found in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowElsewhere:
    """Something was found in a session of another directory."""

    session_id: str
    workspace_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSession:
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    pass


async def _find_nothing(text: str) -> Sequence[SearchHit]:
    return ()


async def _no_preview(session_id: str) -> str:
    return ""


async def _do_nothing(session: Session) -> None:
    pass


class SessionList(ListDialog[OpenSession | ShowElsewhere | ForkSession | NewSession]):
    """Opening, forking or starting a session closes it; renaming and deleting do not. `reload()` shows changes."""

    HEADING = "Sessions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "rename", "Rename", priority=True),
        Binding("ctrl+f", "fork", "Fork", priority=True),
        Binding("ctrl+t", "pin", "Pin", priority=True),
        Binding("ctrl+o", "archive", "Archive", priority=True),
        Binding("delete", "delete", "Delete", priority=True),
        Binding("ctrl+n", "new", "New", priority=True),
        Binding("n", "new", "New", show=False),
    ]
    DEFAULT_CSS = """
    SessionList {
        #title { display: none; }
        #preview { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        &.-short #preview { display: none; }
    }
    """

    def __init__(
        self,
        search: Search,
        *,
        rename: Rename,
        delete: Delete,
        search_text: SearchText = _find_nothing,
        preview: Preview = _no_preview,
        pin: Mark = _do_nothing,
        archive: Mark = _do_nothing,
        current: str | None = None,
        asking: Collection[str] = (),
        workspace_id: str = "",
        clock: Callable[[], datetime] = now,
    ) -> None:
        """`workspace_id`: of this directory; what is found in others is listed below, with its directory."""
        super().__init__()
        self._search = search
        self._workspace_id = workspace_id
        self._rename = rename
        self._delete = delete
        self._current = current
        self._asking = asking
        self._now = clock
        self._search_text = search_text
        self._preview = preview
        self._pin = pin
        self._archive = archive
        self._sessions: dict[str, Session] = {}
        self._hits: dict[str, SearchHit] = {}
        """What was said, by the id of its row."""
        self._wanted = current
        """The session to highlight at the next redraw."""
        self._renamed: str | None = None

    def body(self) -> list[Widget]:
        return [
            Field(placeholder="Search", id="search"),
            Listing(id="sessions", markup=False),
            Static("", id="preview", markup=False),
            Field(placeholder="New title", id="title"),
            keys_line(
                *(("enter", "open"), ("ctrl+n", "new"), ("ctrl+r", "rename"), ("ctrl+f", "fork")),
                *(("ctrl+t", "pin"), ("ctrl+o", "archive"), ("del", "delete"), ("esc", "close")),
            ),
        ]

    def on_mount(self) -> None:
        self.query_one("#search").focus()
        self.reload()

    @property
    def _chosen(self) -> Session | None:
        option = self.listing.highlighted_option
        return self._sessions.get(option.id or "") if option is not None else None

    @on(Input.Changed, "#search")
    def reload(self) -> None:
        """Search again: the search text changed, or sessions were added, deleted or renamed."""
        self._find(self.query_one("#search", Input).value)

    @work(exclusive=True, group="search")
    async def _find(self, text: str) -> None:
        try:
            found = await self._search(text)
            said = await self._search_text(text) if text.strip() else ()
        except LongboatError as error:
            self.complain(plain_line(str(error)))
            return
        if self.is_open and not get_current_worker().is_cancelled:
            self.complain("")
            self._show(found, said)

    def _show(self, sessions: Sequence[Session], said: Sequence[SearchHit]) -> None:
        chosen = self._wanted or (self._chosen.id if self._chosen else None)
        ordered = sorted(sessions, key=lambda session: (session.pinned, session.updated_at), reverse=True)
        self._sessions = {session.id: session for session in ordered}
        # A title that matches in this directory is among the sessions.
        shown = [hit for hit in said if hit.message_id is not None or self._is_elsewhere(hit)]
        self._hits = {f"said {place}": hit for place, hit in enumerate(shown)}
        self._draw(chosen)
        self._wanted = None

    def _draw(self, chosen: str | None) -> None:
        shown, at = self.listing, self._now()
        narrow = self.app.size.width < 80
        options = [Option(self._row(session, at, narrow), id=session.id) for session in self._sessions.values()]
        for heading, elsewhere in (("In messages", False), ("In other directories", True)):
            hits = {name: hit for name, hit in self._hits.items() if self._is_elsewhere(hit) is elsewhere}
            if hits:
                title = Content.styled(f"\n{heading}" if options else heading, "bold $text-primary")
                options.append(Option(title, disabled=True))
                options += (Option(_hit_row(hit, at, elsewhere=elsewhere), id=name) for name, hit in hits.items())
        shown.set_options(options or [Option("No matching sessions.", disabled=True)])
        if options:
            known = chosen is not None and chosen in self._sessions
            shown.highlighted = shown.get_option_index(chosen) if known and chosen else int(not self._sessions)

    def _is_elsewhere(self, hit: SearchHit) -> bool:
        return bool(self._workspace_id) and hit.workspace_id != self._workspace_id

    def _row(self, session: Session, at: datetime, narrow: bool) -> Content:
        here = session.id == self._current
        return Content.assemble(
            self._mark(session),
            (f"{ago(session.updated_at, at):>7}  ", FAINT),
            ("" if narrow else f"{_cost(session.usage):>8}  ", FAINT),
            (plain_line(session.title) or "(untitled)", "bold" if here else ""),
            (" (current)" if here else "", FAINT),
            (" needs an answer" if session.id in self._asking else "", "$text-warning"),
            (" working" if session.busy and session.id not in self._asking else "", "$text-success"),
            ("" if session.busy else FAILED.get(session.last_outcome, ""), "$text-error"),
        )

    def _mark(self, session: Session) -> tuple[str, str]:
        """Waiting for an answer, working, or neither: told apart without color, too."""
        if session.id in self._asking:
            return "? ", "bold $text-warning"
        if session.busy:
            return "● ", "$text-success"
        return ("★ ", "$text-accent") if session.pinned else ("  ", "")

    def on_resize(self, event: events.Resize) -> None:
        if self._sessions and self.is_open:
            self._draw(self._chosen.id if self._chosen else None)

    @on(Input.Submitted, "#search")
    @on(OptionList.OptionSelected, "#sessions")
    def _open(self) -> None:
        option = self.listing.highlighted_option
        hit = self._hits.get(option.id or "") if option is not None else None
        if hit is not None and self._is_elsewhere(hit):
            self.end(ShowElsewhere(session_id=hit.session_id, workspace_path=hit.workspace_path))
        elif hit is not None:
            self.end(OpenSession(session_id=hit.session_id, message_id=hit.message_id))
        elif self._chosen is not None:
            self.end(OpenSession(session_id=self._chosen.id))

    @on(OptionList.OptionHighlighted, "#sessions")
    def _look(self) -> None:
        self._show_preview(self._chosen.id if self._chosen is not None else None)

    @work(exclusive=True, group="preview")
    async def _show_preview(self, session_id: str | None) -> None:
        try:
            said = await self._preview(session_id) if session_id is not None else ""
        except LongboatError:
            said = ""  # a list without a preview is still a list
        if self.is_open and not get_current_worker().is_cancelled:
            self.query_one("#preview", Static).update(Content(plain_line(said)))

    def action_new(self) -> None:
        self.end(NewSession())

    def action_fork(self) -> None:
        if self._chosen is not None:
            self.end(ForkSession(session_id=self._chosen.id))

    def action_pin(self) -> None:
        if (session := self._chosen) is not None:
            self._do(partial(self._pin, session))

    def action_archive(self) -> None:
        if (session := self._chosen) is not None:
            self._do(partial(self._archive, session))

    def action_rename(self) -> None:
        if self._chosen is None:
            return
        self._renamed = self._chosen.id
        field = self.query_one("#title", Input)
        field.value = plain_line(self._chosen.title)
        field.display = True
        field.focus()

    @on(Input.Submitted, "#title")
    def _titled(self, event: Input.Submitted) -> None:
        title, session_id = event.value.strip(), self._renamed
        self._hide_title()
        if title and session_id is not None:
            self._do(partial(self._rename, session_id, title))

    def _hide_title(self) -> None:
        self._renamed = None
        self.query_one("#title").display = False
        self.query_one("#search").focus()

    def action_later(self) -> None:
        if self._renamed is not None:
            self._hide_title()
        else:
            super().action_later()

    def action_delete(self) -> None:
        field = self.focused
        if isinstance(field, Input) and (field.id == "title" or field.cursor_position < len(field.value)):
            field.action_delete_right()
        elif (session := self._chosen) is not None:
            self.app.push_screen(
                ConfirmDialog(f"Delete the session “{plain_line(session.title)}” and all its messages?", yes="Delete"),
                lambda answer: self._deleted(session.id, answer),
            )

    def _deleted(self, session_id: str, answer: Confirmed | None) -> None:
        if answer is not None:
            self._do(partial(self._delete, session_id))

    def _do(self, change: Callable[[], Awaitable[object]]) -> None:
        """Run a change in the app's worker, so that it also happens if the list is closed at once."""
        self.app.run_worker(self._done(change), group="sessions")

    async def _done(self, change: Callable[[], Awaitable[object]]) -> None:
        """Make a change; show an error in the box, and keep the list open."""
        try:
            await change()
        except LongboatError as error:
            if self.is_open:
                self.complain(plain_line(str(error)))
            else:
                self.app.notify(plain_line(str(error)), severity="error", markup=False)
        else:
            if self.is_open:
                self.reload()


def _hit_row(hit: SearchHit, at: datetime, *, elsewhere: bool) -> Content:
    """Its pieces are made plain one by one: that may change their length."""
    text, place = hit.snippet.text, 0
    pieces: list[tuple[str, str]] = []
    for start, end in hit.snippet.matches:
        pieces += [(plain(text[place:start]), ""), (plain(text[start:end]), "bold $text-warning")]
        place = end
    who = "title" if hit.role is None else "prompt" if hit.role is Role.USER else "answer"
    directory = plain_line(hit.workspace_path).rstrip("/").rpartition("/")[2]
    return Content.assemble(
        (f"  {ago(hit.at, at):>7}  ", FAINT),
        (f"{directory}: " if elsewhere else "", FAINT),
        (f"{plain_line(hit.session_title) or '(untitled)'}  ", "bold"),
        (f"{who}: ", FAINT),
        *pieces,
        plain(text[place:]),
    )


def last_words(messages: Sequence[Message]) -> str:
    """What was said last, and by whom."""
    for message in reversed(messages):
        said = " ".join(part.text for part in message.parts if isinstance(part, TextPart)).strip()
        if said and message.role is not Role.TOOL:
            return f"{'Prompt' if message.role is Role.USER else 'Answer'}: {said[:MAX_PREVIEW]}"
    return ""
