"""The terminal app. Knows the server only through the public client and the wire.

Textual is imported only when the app is opened, so that short commands start fast.
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
    """Show a session of the directory until the person quits. Returns the exit code and what to print afterwards: what
    is still running and how to come back, what was not sent, or why the app ended.

    `resume`: open the newest session. Without it and without `session_id`, the first prompt creates a session. The
    client stays open.
    """
    from longboat.tui.app import LongboatApp
    from longboat.tui.saved_state import SavedState, state_dir
    from longboat.tui.terminal import ended_by_signals, ignoring_slow_terminal

    for name in ("COLUMNS", "LINES"):  # they would override the terminal's real size and its changes
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
        keeping=SavedState(state_dir(os.environ, Path.home())),
    )
    with ended_by_signals(app), ignoring_slow_terminal():
        await app.run_async()
    return app.return_code or 0, app.farewell(come_back)
