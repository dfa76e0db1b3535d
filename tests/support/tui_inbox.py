"""Items of an inbox, for the dialogs of the terminal app."""

from typing import Any

from tui_stage import a_permission, a_question

from longboat.wire.inbox import InboxItem, InboxKind
from longboat.wire.models import Outcome


def an_item(number: int, kind: InboxKind, **changes: Any) -> InboxItem:
    fields: dict[str, Any] = {
        "id": str(number),
        "kind": kind,
        "workspace_id": "wsp_2",
        "workspace_path": "/home/ada/boats",
        "session_id": f"ses_{number:04}",
        "session_title": "Paint the boat",
        "run_id": f"run_{number}",
        "at": "2026-11-15T11:30:00.000000Z",
        "seen": False,
        "text": "Paint the boat in blue",
    }
    return InboxItem(**{**fields, **changes})


def some_items(text: str | None = None) -> list[InboxItem]:
    """One of each kind, newest first; with `text` in every place that others write."""
    theirs = {} if text is None else {"session_title": text, "workspace_path": f"/{text}", "text": text}
    permission = a_permission() if text is None else a_permission(title=text)
    question = a_question() if text is None else a_question(text=text)
    return [
        an_item(4, InboxKind.PERMISSION, permission=permission, **theirs),
        an_item(3, InboxKind.QUESTION, question=question, **theirs),
        an_item(2, InboxKind.FAILED, outcome=Outcome.ERROR, error=text or "No credit left.", seen=True, **theirs),
        an_item(1, InboxKind.FINISHED, outcome=Outcome.END_TURN, **theirs),
    ]
