"""The sidebar: what it tells, that it gives way on narrow terminals, and diffs and colours beside it (issue 12)."""

import asyncio
from pathlib import Path

import pytest
from rich.color import Color
from tui_driver import TuiDriver, local_server, open_tui
from tui_stage import DIFF, drawn

from longboat.client import Client
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, Use
from longboat.tui.panels.details import ChangesPanel, ModelPanel, ServersPanel
from longboat.tui.panels.todos import TodosPanel
from longboat.tui.theming import LIGHT
from longboat.tui.toolcard import diff_lines
from longboat.wire.events import Change, Event
from longboat.wire.requests import Approve
from longboat.wire.workspace_state import LspEvent, McpEvent

SIZES = ((200, 50), (120, 40), (80, 24), (40, 15))
PLAN = {"items": [{"text": "Mend add", "state": "completed"}, {"text": "Test it", "state": "in_progress"}]}
STEPS = [
    [CallTool("write", {"path": "sums.py", "content": "one\ntwo\n"}), CallTool("todos", PLAN)],
    [CallTool("view", {"path": "sums.py"})],
    [CallTool("edit", {"path": "sums.py", "old_text": "two", "new_text": "three\nfour"})],
    [Say("done"), Use(2_000, 70, 0.25)],
]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_sidebar_shows_plan_changes_cost_model_and_servers(tmp_path: Path, size: tuple[int, int]) -> None:
    server = local_server(tmp_path, ScriptedModel(STEPS))
    async with server.serving(), open_tui(server, size=size, approve=Approve.ALL) as tui:
        await tui.say("work")
        await tui.until(lambda: tui.idle and tui.answers == ["done"])
        wide = size[0] >= 100
        assert tui.app.sidebar.is_shown is wide
        if not wide:
            await tui.pilot.press("ctrl+t")
        await tui.until(lambda: tui.app.sidebar.is_shown)
        told = McpEvent(server="time", transport="stdio", phase="failed", reason="exit 1")
        tui.app.connection.mirror.mcp["time"] = told
        tui.app.heard(Event("mcp_event", Change.UPDATED, told))
        changes = tui.app.query_one(ChangesPanel)
        await tui.until(lambda: "sums.py +3" in tui.text_of(changes))
        assert "Changes 1" in tui.text_of(changes)
        assert "Plan 1/2" in tui.text_of(tui.app.query_one(TodosPanel))
        await tui.until(lambda: "$0.25" in tui.text_of(tui.app.query_one(ModelPanel)))
        assert "time MCP failed: exit 1" in tui.text_of(tui.app.query_one(ServersPanel))
        assert "Model" in tui.screen
        assert tui.app.composer.region.bottom < size[1]
        await tui.pilot.press("ctrl+x", "b")
        await tui.until(lambda: not tui.app.sidebar.is_shown)


async def test_the_sidebar_gives_way_when_the_terminal_becomes_narrow(tmp_path: Path) -> None:
    async with (
        local_server(tmp_path, ScriptedModel.echo()).serving() as server,
        open_tui(server, size=(120, 40)) as tui,
    ):
        assert tui.app.sidebar.is_shown
        await tui.pilot.resize_terminal(80, 24)
        await tui.until(lambda: not tui.app.sidebar.is_shown)
        await tui.pilot.resize_terminal(120, 40)
        await tui.until(lambda: tui.app.sidebar.is_shown)


async def test_a_slow_answer_about_changes_holds_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def stuck(client: Client, *args: object, **kwargs: object) -> object:
        asked.set()
        await never.wait()
        raise AssertionError

    server = local_server(tmp_path, ScriptedModel(STEPS))
    async with server.serving(), open_tui(server, size=(120, 40), approve=Approve.ALL) as tui:
        monkeypatch.setattr(Client, "changes", stuck)
        await tui.say("work")
        await tui.until(lambda: tui.idle and tui.answers == ["done"] and asked.is_set())
        await tui.say("half a")
        await tui.until(lambda: "half a" in tui.screen)


async def test_servers_are_read_at_the_start_and_an_event_wins(tmp_path: Path) -> None:
    gate = Gate()
    async with (
        local_server(tmp_path, ScriptedModel([[Pause(gate)]])).serving() as server,
        open_tui(server, size=(120, 40)) as tui,
    ):
        await tui.until(lambda: "me (you)" in tui.screen)  # the snapshot is there, which would replace the mirror
        language = LspEvent(server="pyright", root=".", state="ready")
        tui.app.connection.mirror.lsp["pyright", "."] = language
        tui.app.heard(Event("lsp_event", Change.UPDATED, language))
        await tui.until(lambda: "pyright LSP ready" in tui.screen)


async def test_the_sidebar_lists_what_is_left_of_the_changes_as_the_review_does(tmp_path: Path) -> None:
    steps = [*STEPS, [CallTool("view", {"path": "sums.py"})], *STEPS[2:]]
    server = local_server(tmp_path, ScriptedModel(steps))
    sums = Path(server.project) / "sums.py"
    async with server.serving(), open_tui(server, size=(120, 40), approve=Approve.ALL) as tui:
        await tui.say("work")
        await tui.until(lambda: tui.idle and tui.answers == ["done"])
        changes = tui.app.query_one(ChangesPanel)
        await tui.until(lambda: "sums.py +3" in tui.text_of(changes))
        sums.write_text("one\ntwo\n")  # a person's own undo
        await tui.say("again")
        await tui.until(lambda: tui.idle and tui.answers == ["done", "done"])
        connection, session_id = tui.app.connection, tui.app.current.session_id
        assert session_id is not None
        page = await connection.client.changes(connection.workspace_id, session_id=session_id)
        (file,) = page.items
        await connection.client.revert(connection.workspace_id, session_id, file.path, digest=file.digest)
        await tui.until(lambda: not changes.display)


# -- diffs in cards


def background(tui: TuiDriver, row: str, text: str) -> Color | None:
    """The background of a text in the row of the screen that has another one."""
    line = next(line for line in drawn(tui.app) if row in "".join(piece.text for piece in line))
    return next(piece.style.bgcolor for piece in line if text in piece.text and piece.style is not None)


async def test_a_diff_in_a_card_has_numbers_and_backgrounds_as_in_the_dialog(tmp_path: Path) -> None:
    server = local_server(tmp_path, ScriptedModel(STEPS))
    async with server.serving(), open_tui(server, size=(120, 40), approve=Approve.ALL) as tui:
        await tui.say("work")
        await tui.until(lambda: tui.idle and tui.answers == ["done"])
        await tui.until(lambda: "3 + four" in tui.screen)
        assert "2     - two" in tui.screen
        added, deleted = (background(tui, "+ four", "four"), background(tui, "- two", "two"))
        assert added != deleted
        row = next(line for line in drawn(tui.app) if any("four" in piece.text for piece in line))
        edge = tui.cards[-1].content_region.right - 1
        at = 0
        for piece in row:
            if at <= edge < at + piece.cell_length:
                assert piece.style is not None
                assert piece.style.bgcolor == added, "the background goes to the edge of the card"
            at += piece.cell_length


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_of_a_diff_is_wider_than_its_card(width: int) -> None:
    long = DIFF.replace("# with the wind", "# with the wind " * 20)
    for whole in (True, False):
        lines = diff_lines(long, width=width, most=30, whole=whole)
        assert {line.cell_length for line in lines} == {width}
        assert (lines[3].plain.count("with the wind") >= 2) is (width >= 60)
    assert sum("with" in line.plain for line in diff_lines(long, width=width, most=30, whole=True)) > 2


async def test_the_light_theme_is_white(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await tui.say("/theme light")
        await tui.until(lambda: tui.app.theme == LIGHT.name)
        await tui.pilot.pause()
        colours = [
            piece.style.bgcolor.get_truecolor()
            for line in drawn(tui.app)
            for piece in line
            if piece.style is not None and piece.style.bgcolor is not None
            for _ in range(piece.cell_length)
        ]
        white = sum(tuple(colour) == (255, 255, 255) for colour in colours)
        assert white > len(colours) * 0.8
