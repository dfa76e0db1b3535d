"""Collects the content of the status bar. Must not know how it looks."""

from dataclasses import replace
from typing import TYPE_CHECKING

from longboat.tui.status import State
from longboat.wire.asks import Question
from longboat.wire.models import RunState
from longboat.wire.requests import Approve

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp


def state_of(app: "LongboatApp") -> State:
    active, away, session = app.desk.active, app.connection.away, app.desk.session
    model = app.model or (app.models.large if app.models is not None else None) or ""
    windows = {info.name: info.context_window or 0 for info in app.models.items} if app.models else {}
    state = State(
        away=away.message if away is not None else "",
        since=app.hearing.since(active),
        doing="interrupting" if active is not None and active.cancel_requested else "working",
        queued=sum(run.state in (RunState.ACCEPTED, RunState.QUEUED) for run in app.desk.unfinished),
        asks=len(app.asking.pending),
        questions=sum(isinstance(ask, Question) for ask in app.asking.pending),
        elsewhere=len(app.asking.sessions - {app.desk.session_id}),
        model=model,
        effort=app.effort or "",
        all_approved=app.approve is Approve.ALL,
        window=windows.get(model, 0),
    )
    return state if session is None else replace(state, usage=session.usage, context=session.context_tokens)
