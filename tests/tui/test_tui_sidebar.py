"""The sidebar: what it tells, that it gives way on narrow terminals, and diffs and colours beside it (issue 12)."""

import asyncio
from pathlib import Path

import pytest
from rich.color import Color
from tui_deck import Deck, aboard, harbour
from tui_stage import DIFF, drawn

from longboat.client import Client
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, Use
from longboat.tui.card_diff import diff_lines
from longboat.tui.panels.details import ChangedFile, ChangesPanel, ModelPanel, ServersPanel, changed_files
from longboat.tui.panels.todos import TodosPanel
from longboat.tui.theming import LIGHT
from longboat.wire.events import Change, Event
from longboat.wire.listings import FileDiff
from longboat.wire.requests import Approve
from longboat.wire.workshop import LspEvent, McpEvent

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
    port = harbour(tmp_path, ScriptedModel(STEPS))
    async with port.serving(), aboard(port, size=size, approve=Approve.ALL) as deck:
        await deck.say("work")
        await deck.until(lambda: deck.idle and deck.answers == ["done"])
        wide = size[0] >= 100
        assert deck.app.sidebar.is_shown is wide
        if not wide:
            await deck.pilot.press("ctrl+t")
        await deck.until(lambda: deck.app.sidebar.is_shown)
        server = McpEvent(server="time", transport="stdio", phase="failed", reason="exit 1")
        deck.app.connection.mirror.mcp["time"] = server
        deck.app.heard(Event("mcp_event", Change.UPDATED, server))
        changes = deck.app.query_one(ChangesPanel)
        await deck.until(lambda: "sums.py +3" in deck.text_of(changes))
        assert "Changes 1" in deck.text_of(changes)
        assert "Plan 1/2" in deck.text_of(deck.app.query_one(TodosPanel))
        await deck.until(lambda: "$0.25" in deck.text_of(deck.app.query_one(ModelPanel)))
        assert "time MCP failed: exit 1" in deck.text_of(deck.app.query_one(ServersPanel))
        assert "Model" in deck.screen
        assert deck.app.composer.region.bottom < size[1]
        await deck.pilot.press("ctrl+x", "b")
        await deck.until(lambda: not deck.app.sidebar.is_shown)


async def test_the_sidebar_gives_way_when_the_terminal_becomes_narrow(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port, size=(120, 40)) as deck:
        assert deck.app.sidebar.is_shown
        await deck.pilot.resize_terminal(80, 24)
        await deck.until(lambda: not deck.app.sidebar.is_shown)
        await deck.pilot.resize_terminal(120, 40)
        await deck.until(lambda: deck.app.sidebar.is_shown)


async def test_a_slow_answer_about_changes_holds_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def stuck(client: Client, *args: object, **kwargs: object) -> object:
        asked.set()
        await never.wait()
        raise AssertionError

    port = harbour(tmp_path, ScriptedModel(STEPS))
    async with port.serving(), aboard(port, size=(120, 40), approve=Approve.ALL) as deck:
        monkeypatch.setattr(Client, "diff", stuck)
        await deck.say("work")
        await deck.until(lambda: deck.idle and deck.answers == ["done"] and asked.is_set())
        await deck.say("half a")
        await deck.until(lambda: "half a" in deck.screen)


async def test_servers_are_read_at_the_start_and_an_event_wins(tmp_path: Path) -> None:
    gate = Gate()
    async with (
        harbour(tmp_path, ScriptedModel([[Pause(gate)]])).serving() as port,
        aboard(port, size=(120, 40)) as deck,
    ):
        await deck.until(lambda: "me (you)" in deck.screen)  # the snapshot is there, which would replace the mirror
        language = LspEvent(server="pyright", root=".", state="ready")
        deck.app.connection.mirror.lsp["pyright", "."] = language
        deck.app.heard(Event("lsp_event", Change.UPDATED, language))
        await deck.until(lambda: "pyright LSP ready" in deck.screen)


def test_a_file_that_was_changed_several_times_is_one_row() -> None:
    items = [
        FileDiff(path="a.py", change=Change.CREATED, additions=2, deletions=0, diff=""),
        FileDiff(path="b.py", change=Change.UPDATED, additions=0, deletions=4, diff=""),
        FileDiff(path="a.py", change=Change.UPDATED, additions=1, deletions=1, diff=""),
    ]
    assert changed_files(items) == [
        ChangedFile(path="a.py", additions=3, deletions=1),
        ChangedFile(path="b.py", additions=0, deletions=4),
    ]


# -- diffs in cards


def background(deck: Deck, row: str, text: str) -> Color | None:
    """The background of a text in the row of the screen that has another one."""
    line = next(line for line in drawn(deck.app) if row in "".join(piece.text for piece in line))
    return next(piece.style.bgcolor for piece in line if text in piece.text and piece.style is not None)


async def test_a_diff_in_a_card_has_numbers_and_backgrounds_as_in_the_dialog(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel(STEPS))
    async with port.serving(), aboard(port, size=(120, 40), approve=Approve.ALL) as deck:
        await deck.say("work")
        await deck.until(lambda: deck.idle and deck.answers == ["done"])
        await deck.until(lambda: "3 + four" in deck.screen)
        assert "2     - two" in deck.screen
        added, deleted = (background(deck, "+ four", "four"), background(deck, "- two", "two"))
        assert added != deleted
        row = next(line for line in drawn(deck.app) if any("four" in piece.text for piece in line))
        edge = deck.cards[-1].content_region.right - 1
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
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await deck.say("/theme light")
        await deck.until(lambda: deck.app.theme == LIGHT.name)
        await deck.pilot.pause()
        colours = [
            piece.style.bgcolor.get_truecolor()
            for line in drawn(deck.app)
            for piece in line
            if piece.style is not None and piece.style.bgcolor is not None
            for _ in range(piece.cell_length)
        ]
        white = sum(tuple(colour) == (255, 255, 255) for colour in colours)
        assert white > len(colours) * 0.8
