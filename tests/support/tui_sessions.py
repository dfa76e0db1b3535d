"""Sessions for the dialog that lists them, as the server would know them."""

from datetime import UTC, datetime

from tui_stage import a_session

from longboat.errors import BadInput
from longboat.tui.dialogs.sessions import SessionList
from longboat.wire.models import Session

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Sessions:
    """What the server would know."""

    def __init__(self, number: int) -> None:
        self.kept = {session.id: session for session in (a_session(n, busy=n == 2, cost=n / 4) for n in range(number))}
        self.asked: list[str] = []
        self.refuses = False

    async def search(self, text: str) -> list[Session]:
        self.asked.append(text)
        return [session for session in reversed(self.kept.values()) if text.casefold() in session.title.casefold()]

    async def rename(self, session_id: str, title: str) -> None:
        if self.refuses:
            raise BadInput("A title may not be that.")
        self.kept[session_id] = a_session(int(session_id[4:]), title=title)

    async def delete(self, session_id: str) -> None:
        del self.kept[session_id]

    def dialog(self, current: str | None = None) -> SessionList:
        return SessionList(self.search, rename=self.rename, delete=self.delete, current=current, clock=lambda: NOON)
