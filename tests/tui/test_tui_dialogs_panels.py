"""What stands beside the transcript, and differences of files (F2)."""

from collections.abc import Sequence

import msgspec
import pytest
from textual.widgets import OptionList
from tui_stage import DIFF, WHEN, Stage, a_run, drawn, picture, until

from longboat.tui.panels.diff import SPLIT_WIDTH, DiffView, language_of
from longboat.tui.panels.diff_rows import MAX_COLUMNS, MAX_ROWS, Kind, read_rows
from longboat.tui.panels.jobs import JobsPanel
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.panels.todos import ClientsPanel, TodosPanel
from longboat.wire.models import ClientInfo, Delivery, RunState
from longboat.wire.workspace_state import Job, JobState, TodoItem, TodoState


def shown(app: Stage) -> list[str]:
    return [line.strip() for line in picture(app).splitlines() if line.strip()]


async def test_the_queue_shows_what_waits_in_order_and_is_gone_when_nothing_does() -> None:
    panel = QueuePanel([a_run(3), a_run(0, state=RunState.ACTIVE), a_run(1, delivery=Delivery.STEER), a_run(2)])
    app = Stage(panel)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        assert shown(app) == [
            "Queue 3  tab select, e edit, t steer/queue, del delete",
            "steer Prompt number 1  ada",
            "queue Prompt number 2  ada",
            "queue Prompt number 3  ada",
        ]
        panel.show([a_run(0, state=RunState.ACTIVE)])
        await pilot.pause()
        assert shown(app) == []


async def test_what_steers_goes_first_although_it_came_last() -> None:
    """L10. The places that the events named are older than its arrival."""
    late = msgspec.structs.replace(a_run(3, delivery=Delivery.STEER), position=1)
    app = Stage(QueuePanel([a_run(1), a_run(2), late]))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        assert [line.split()[3] for line in shown(app)[1:]] == ["3", "1", "2"]


@pytest.mark.parametrize(
    ("keys", "heard"),
    [
        (("d",), [QueuePanel.Deleted(run_id="run_1")]),
        (("down", "delete"), [QueuePanel.Deleted(run_id="run_2")]),
        (("t",), [QueuePanel.Delivered(run_id="run_1", delivery=Delivery.QUEUE)]),
        (("down", "t"), [QueuePanel.Delivered(run_id="run_2", delivery=Delivery.STEER)]),
        (("e", "!", "ctrl+s"), [QueuePanel.Edited(run_id="run_1", prompt="Prompt number 1!")]),
        (("down", "enter", "!", "ctrl+s"), [QueuePanel.Edited(run_id="run_2", prompt="Prompt number 2!")]),
        (("e", "ctrl+s"), []),
        (("e", "!", "escape"), []),
    ],
)
async def test_each_key_of_the_queue(keys: Sequence[str], heard: list[object]) -> None:
    app = Stage(QueuePanel([a_run(1, delivery=Delivery.STEER), a_run(2)]))
    async with app.run_test() as pilot:
        app.query_one(OptionList).focus()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        assert [vars_of(message) for message in app.heard] == [vars_of(message) for message in heard]


def vars_of(message: object) -> tuple[str, dict[str, object]]:
    return type(message).__name__, {name: getattr(message, name) for name in message.__dataclass_fields__}  # type: ignore[attr-defined]


async def test_the_highlight_stays_with_its_prompt_while_others_leave_the_queue() -> None:
    panel = QueuePanel([a_run(1), a_run(2), a_run(3)])
    app = Stage(panel)
    async with app.run_test() as pilot:
        await pilot.pause()
        panel.query_one(OptionList).highlighted = 1
        panel.show([a_run(2), a_run(3)])
        assert panel.query_one(OptionList).highlighted == 0
        panel.show([a_run(3)])
        panel.query_one(OptionList).focus()
        await pilot.press("d")
        assert [vars_of(message)[1] for message in app.heard] == [{"run_id": "run_3"}]


async def test_the_plan_says_what_is_done_without_colours() -> None:
    panel = TodosPanel()
    app = Stage(panel)
    async with app.run_test(size=(60, 20)) as pilot:
        panel.show(
            [
                TodoItem(text="Look", state=TodoState.COMPLETED),
                TodoItem(text="Mend", state=TodoState.IN_PROGRESS),
                TodoItem(text="Test"),
            ]
        )
        await pilot.pause()
        assert shown(app) == ["Plan 1/3", "✓ Look", "▸ Mend", "○ Test"]
        panel.show([])
        await pilot.pause()
        assert shown(app) == []


async def test_who_is_here_begins_with_oneself() -> None:
    panel = ClientsPanel()
    app = Stage(panel)
    async with app.run_test(size=(60, 20)) as pilot:
        panel.show([ClientInfo(client_id=name, attached_at=WHEN) for name in ("bob", "ada", "web:1")], "ada")
        await pilot.pause()
        assert shown(app) == ["Connected (3)", "● ada (you)", "● bob", "● web"]


def a_job(name: str, state: JobState = JobState.RUNNING, exit_code: int | None = None, by: str | None = None) -> Job:
    return Job(id=name, command=f"make {name}", state=state, exit_code=exit_code, seconds=75, killed_by=by)


async def test_a_running_job_is_killed_after_a_question_and_a_finished_one_is_not() -> None:
    killed: list[str] = []
    panel = JobsPanel(killed.append)
    app = Stage(panel)
    async with app.run_test(size=(60, 20)) as pilot:
        panel.show([a_job("a", JobState.FINISHED, 2), a_job("b"), a_job("c", JobState.KILLED, by="bob")])
        await pilot.pause()
        assert shown(app) == [
            "Jobs 1/3  k kill",
            "● make b  1 min",
            "✓ make a  1 min finished, exit 2",
            "✗ make c  1 min killed by bob",
        ]
        panel.query_one(OptionList).focus()
        await pilot.press("k")
        assert "Kill “make b”?" in picture(app)
        await pilot.press("n")
        await pilot.press("delete")
        await pilot.press("y")
        await pilot.press("down", "k")
        await pilot.pause()
        assert killed == ["b"]
        assert len(app.screen_stack) == 1
        panel.show([])
        assert not panel.display


def test_rows_know_their_lines_in_both_files() -> None:
    rows = read_rows(DIFF)
    assert (rows.additions, rows.deletions) == (3, 2)
    assert [(row.kind, row.old, row.new) for row in rows.rows[:5]] == [
        (Kind.HUNK, None, None),
        (Kind.CONTEXT, 1, 1),
        (Kind.DELETED, 2, None),
        (Kind.ADDED, None, 2),
        (Kind.ADDED, None, 3),
    ]


def test_lines_that_look_like_headers_are_lines_inside_a_hunk() -> None:
    rows = read_rows("--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ plus\n @@ -1 +1 @@\n")
    assert [(row.kind, row.text) for row in rows.rows[1:]] == [
        (Kind.DELETED, "-- old comment"),
        (Kind.ADDED, "++ plus"),
        (Kind.CONTEXT, "@@ -1 +1 @@"),
    ]


def test_old_and_new_stand_beside_each_other() -> None:
    sides = [
        (old.text if old else None, new.text if new else None)
        for old, new in read_rows("@@ -1,4 +1,3 @@\n-a\n-b\n+A\n c\n-d\n+D\n").sides()
    ]
    assert sides[1:] == [("a", "A"), ("b", None), ("c", "c"), ("d", "D")]


def test_a_deletion_after_an_addition_begins_anew() -> None:
    sides = [
        (old.text if old else None, new.text if new else None)
        for old, new in read_rows("@@ -1,2 +1,2 @@\n+A\n-a\n+B\n-b\n").sides()
    ]
    assert sides[1:] == [(None, "A"), ("a", "B"), ("b", None)]


def test_huge_differences_are_bounded_and_say_so() -> None:
    lines = MAX_ROWS + 500
    rows = read_rows(f"@@ -0,0 +1,{lines} @@\n" + "+x\n" * lines)
    assert len(rows.rows) == MAX_ROWS + 1
    assert rows.rows[-1].text == "… 501 more lines not shown"
    long = read_rows("@@ -0,0 +1 @@\n+" + "y" * 5_000_000)
    assert len(long.rows[1].text) == MAX_COLUMNS + 1


@pytest.mark.parametrize(
    ("diff", "said"),
    [
        ("", "No lines to show."),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "Binary files a/x and b/x differ"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "new mode 100755"),
        ("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "No newline at end of file"),
        ("@@ -1,9 +1,9 @@\n-a\n… (12 more lines)\n", "… (12 more lines)"),
        ("@@ not really @@\n", "@@ not really @@"),
    ],
)
async def test_what_is_no_text_is_said_in_words(diff: str, said: str) -> None:
    app = Stage(DiffView(diff, "x"))
    async with app.run_test() as pilot:
        await pilot.pause()
        assert said in shown(app)


async def test_signs_tell_what_was_added_where_there_are_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Stage(DiffView(DIFF, "src/boat.py"))
    async with app.run_test() as pilot:
        await pilot.pause()
        assert '2     -     return "slow"' in shown(app)
        assert "2 +     # with the wind" in shown(app)


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "nord", "solarized-light"])
async def test_words_are_coloured_by_the_language_of_the_path_in_every_theme(theme: str) -> None:
    app = Stage(DiffView(DIFF, "src/boat.py"))
    async with app.run_test() as pilot:
        app.theme = theme
        await pilot.pause()
        line = next(line for line in drawn(app) if any("def" in piece.text for piece in line))
        looks = {piece.text.strip(): piece.style.color for piece in line if piece.style}
        assert looks["def"] != looks["sail"]
        added, deleted = (
            next(piece.style.bgcolor for line in drawn(app) for piece in line if piece.text == sign and piece.style)
            for sign in ("+ ", "- ")
        )
        assert added != deleted


def test_a_path_tells_the_language_and_an_unknown_one_is_text() -> None:
    assert language_of("a/b.py") == "python"
    assert language_of("Makefile") == "make"
    assert language_of("[weird]*?.zzz") == "text"
    assert language_of("") == "text"


async def test_split_needs_room_and_follows_the_width() -> None:
    view = DiffView(DIFF, "src/boat.py", split=True)
    app = Stage(view)
    async with app.run_test(size=(SPLIT_WIDTH, 30)) as pilot:
        await pilot.pause()
        assert view.is_split
        line = next(line for line in picture(app).splitlines() if "# with the wind" in line)
        assert line.startswith('  2 -     return "slow"')
        assert line[50:] == "  2 +     # with the wind"
        await pilot.resize_terminal(SPLIT_WIDTH - 1, 30)
        await until(pilot, lambda: not view.is_split)
        await pilot.resize_terminal(SPLIT_WIDTH, 30)
        await until(pilot, lambda: view.is_split)


async def test_the_key_for_split_says_when_there_is_no_room() -> None:
    view = DiffView(DIFF, "src/boat.py")
    app = Stage(view)
    async with app.run_test(size=(60, 20)) as pilot:
        view.focus()
        await pilot.press("s")
        assert [note.message for note in app._notifications] == ["Side by side needs 100 columns."]
        await pilot.resize_terminal(120, 20)
        await until(pilot, lambda: view.size.width >= SPLIT_WIDTH)
        await pilot.press("s")
        await until(pilot, lambda: view.is_split)
        await pilot.press("s")
        await until(pilot, lambda: not view.is_split)


async def test_a_long_line_is_reached_sideways_and_its_number_stays() -> None:
    view = DiffView("@@ -0,0 +1 @@\n+" + "a" * 90 + "END\n", "x.txt")
    app = Stage(view)
    async with app.run_test(size=(60, 20)) as pilot:
        view.focus()
        view.scroll_to(x=200, animate=False)
        await until(pilot, lambda: "END" in picture(app))
        line = next(line for line in picture(app).splitlines() if "END" in line)
        assert line.startswith("      1 + a")


async def test_twenty_thousand_lines_draw_only_what_is_seen() -> None:
    count = 20_000
    view = DiffView(f"@@ -0,0 +1,{count - 1} @@\n" + "".join(f"+x = {n}\n" for n in range(1, count)), "x.py")
    app = Stage(view)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        view.scroll_end(animate=False)
        await until(pilot, lambda: "+ x = 19999" in picture(app))
        assert len(view._blocks) <= 3, "only the blocks that were seen were coloured"


async def test_a_lexer_that_changes_the_text_does_not_change_what_is_shown() -> None:
    code = "@@ -0,0 +1,3 @@\n+\n+   <a>\tx\n+\n"
    app = Stage(DiffView(code, "x.html"))
    async with app.run_test() as pilot:
        await pilot.pause()
        assert "2 +    <a>  x" in shown(app)
