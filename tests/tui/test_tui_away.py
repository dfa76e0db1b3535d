"""The terminal app while the node with the directory is down (G7)."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
from tui_driver import local_server, open_tui

from longboat.testing import ScriptedModel
from longboat.wire.events import Change, Event


async def test_g7_the_status_says_which_node_is_down_until_it_is_back(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel()).serving() as server, open_tui(server, size=(100, 24)) as tui:
        await tui.until(lambda: tui.app.workspace is not None)
        here = tui.app.workspace
        assert here is not None
        now = datetime.now(UTC)
        away = msgspec.structs.replace(here, home="boat-1", owner="boat-2", away=True, away_since=now.isoformat())
        tui.app.heard(Event(type="workspace", change=Change.UPDATED, payload=away))
        words = f"boat-1 has been down since {now.astimezone():%H:%M}; prompts are queued"
        await tui.until(lambda: words in tui.lines[-1].text)
        unknown = msgspec.structs.replace(away, away_since=None)
        tui.app.heard(Event(type="workspace", change=Change.UPDATED, payload=unknown))
        await tui.until(lambda: "boat-1 is down; prompts are queued" in tui.lines[-1].text)
        stopping = msgspec.structs.replace(away, home_stopping=True)
        tui.app.heard(Event(type="workspace", change=Change.UPDATED, payload=stopping))
        await tui.until(lambda: "boat-1 is stopping; prompts are queued" in tui.lines[-1].text)
        tui.app.heard(Event(type="workspace", change=Change.UPDATED, payload=here))
        await tui.until(lambda: "Idle" in tui.lines[-1].text)
