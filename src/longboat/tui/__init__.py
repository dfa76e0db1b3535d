"""The terminal app: one face of a shared session. Knows the server only through the public client and the wire.

Textual is imported when the app is opened: short commands do without it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from longboat.wire.requests import Approve, Effort

if TYPE_CHECKING:
    from longboat.client import Client

__all__ = ["open_app"]


async def open_app(
    client: "Client",
    path: str,
    *,
    session_id: str | None = None,
    resume: bool = False,
    model: str | None = None,
    effort: Effort | None = None,
    approve: Approve = Approve.ASK,
    env: Mapping[str, str] | None = None,
    come_back: str = "longboat -s {session_id}",
) -> tuple[int, str]:
    """Show a session of the directory until somebody leaves. Answers the exit code, and what to print afterwards: what
    goes on without them and how to come back, what was not sent, or why it ended.

    `resume`: the newest session; without it and without `session_id` a new one, made by the first prompt. The client
    stays open.
    """
    from longboat.tui.app import LongboatApp
    from longboat.tui.keeping import Keeping, state_dir
    from longboat.tui.terminal import ended_by_signals, ignoring_slow_terminal

    for name in ("COLUMNS", "LINES"):  # the terminal knows its size, and tells when it changes
        os.environ.pop(name, None)
    app = LongboatApp(
        client,
        path,
        session_id=session_id,
        resume=resume,
        model=model,
        effort=effort,
        approve=approve,
        env=env,
        keeping=Keeping(state_dir(os.environ, Path.home())),
    )
    with ended_by_signals(app), ignoring_slow_terminal():
        await app.run_async()
    return app.return_code or 0, app.farewell(come_back)
