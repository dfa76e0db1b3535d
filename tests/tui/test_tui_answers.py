"""Answers that are typed into the composer, and dangerous calls, in the terminal app."""

import re
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest
import terminal_attacks
from textual.widgets import OptionList, Static
from tui_driver import LocalServer, TuiDriver, local_server, open_tui
from tui_stage import Stage, a_permission, a_question, drawn, picture

import hostile
from longboat.client import Client
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.tui.answering import INSTEAD, AnswerLine, decide, effect, is_answer
from longboat.tui.dialogs.permission import PermissionDecision, PermissionDialog
from longboat.tui.dialogs.question import QuestionAnswered, QuestionDialog
from longboat.tui.inbox import WaitingElsewhere
from longboat.tui.status import SPINNER, State, StatusBar
from longboat.wire.asks import CommandPart, CommandPartKind, Permission, PermissionAnswer
from longboat.wire.models import Usage
from longboat.wire.requests import Submit

QUESTION = CallTool("question", {"text": "How to round?", "choices": ["Up", "Down"]})
WRITE = CallTool("write", {"path": "a.txt", "content": "hello\n"})
CORPUS = tuple(text.encode(errors="replace").decode() for text in (*terminal_attacks.PAYLOADS, *hostile.PAYLOADS))
COMMAND = "make && rm -rf ü && ls"
PARTS = (
    CommandPart(kind=CommandPartKind.COMMAND, text="make", why="needs approval", start=0, end=4),
    CommandPart(
        kind=CommandPartKind.COMMAND,
        text="rm -rf ü",
        why="needs approval",
        danger="It permanently deletes files.",
        start=8,
        end=16,
    ),
    CommandPart(kind=CommandPartKind.COMMAND, text="ls", start=20, end=22),
)
DANGEROUS = a_permission(
    title=f"Run {COMMAND}",
    detail=f"{COMMAND}\n\n(in a sandbox)",
    argument=COMMAND,
    parts=PARTS,
    danger="It permanently deletes files.",
    rules_file="~/p/longboat.json",
)


async def postponed(tui: TuiDriver, dialog: type) -> None:
    """The request is there, and the person put it off: the composer has the focus."""
    await tui.until(lambda: isinstance(tui.app.screen, dialog) and tui.app.screen.is_mounted)
    await tui.pilot.pause()
    await tui.pilot.press("escape")
    await tui.until(lambda: len(tui.app.screen_stack) == 1 and tui.app.query_one(AnswerLine).display)


def written(server: LocalServer) -> bool:
    return (Path(server.project) / "a.txt").exists()


async def test_what_is_typed_while_a_question_waits_answers_it(tmp_path: Path) -> None:
    """It became a prompt that waited behind the question for ever."""
    model = ScriptedModel([[QUESTION], [Say("rounded")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("round it")
        await postponed(tui, QuestionDialog)
        assert "Type your answer to the question" in tui.screen
        await tui.pilot.press(*"Half-even")
        await tui.until(lambda: "enter answers the question with “Half-even”" in tui.screen)
        assert INSTEAD in tui.screen
        await tui.pilot.press("enter")
        await tui.until(lambda: tui.idle and tui.answers == ["rounded"])
        assert "Half-even" in tui.text_of(tui.cards[0])
        assert not tui.app.query_one(AnswerLine).display
        assert tui.app.composer.input.text == ""


async def test_a_typed_text_denies_a_call_and_says_what_to_do_instead(tmp_path: Path) -> None:
    async with (
        local_server(tmp_path, ScriptedModel([[WRITE], [Say("done")]])).serving() as server,
        open_tui(server) as tui,
    ):
        await tui.say("write it")
        await postponed(tui, PermissionDialog)
        await tui.pilot.press(*"use b.txt")
        await tui.until(lambda: "enter denies this call and tells the agent what to do instead" in tui.screen)
        await tui.pilot.press("enter")
        await tui.until(lambda: tui.idle and tui.answers == ["done"])
        assert "denied by you" in tui.text_of(tui.cards[0])
        assert not written(server)


async def test_nobody_is_told_to_type_while_the_keys_go_to_the_dialog(tmp_path: Path) -> None:
    """The line said “Type what to do instead”, and the first letter of “add a test” allowed the call for ever."""
    async with (
        local_server(tmp_path, ScriptedModel([[WRITE], [Say("done")]])).serving() as server,
        open_tui(server) as tui,
    ):
        await tui.say("write it")
        await tui.until(lambda: isinstance(tui.app.screen, PermissionDialog))
        assert not tui.app.query_one(AnswerLine).display
        await tui.pilot.press("escape")
        await tui.until(lambda: "Type what to do instead" in tui.screen)
        await tui.pilot.press("ctrl+g")
        await tui.until(lambda: isinstance(tui.app.screen, PermissionDialog))
        assert not tui.app.query_one(AnswerLine).display


async def test_a_whole_word_allows_and_alt_enter_sends_a_prompt(tmp_path: Path) -> None:
    model = ScriptedModel([[WRITE], [Say("done")], [Say("quickly")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("write it")
        await postponed(tui, PermissionDialog)
        await tui.pilot.press(*"hurry", "alt+enter")
        await tui.until(lambda: len(tui.app.current.unfinished) == 2)
        assert tui.app.query_one(StatusBar).state.asks == 1
        await tui.pilot.press(*"yes")
        await tui.until(lambda: "enter allows this call once" in tui.screen)
        await tui.pilot.press("enter")
        await tui.until(lambda: tui.idle and written(server))


async def test_the_line_can_be_clicked_to_send_a_prompt_instead(tmp_path: Path) -> None:
    async with (
        local_server(tmp_path, ScriptedModel([[WRITE], [Say("done")]])).serving() as server,
        open_tui(server) as tui,
    ):
        await tui.say("write it")
        await postponed(tui, PermissionDialog)
        await tui.pilot.press(*"hurry")
        await tui.until(lambda: INSTEAD in tui.screen)
        await tui.pilot.click("#instead")
        await tui.until(lambda: len(tui.app.current.unfinished) == 2)
        assert tui.app.composer.input.text == ""
        assert tui.app.query_one(StatusBar).state.asks == 1


async def test_commands_stay_commands_while_a_request_waits(tmp_path: Path) -> None:
    async with (
        local_server(tmp_path, ScriptedModel([[WRITE], [Say("done")]])).serving() as server,
        open_tui(server) as tui,
    ):
        await tui.say("write it")
        await postponed(tui, PermissionDialog)
        await tui.pilot.press(*"/nonsense")
        await tui.until(lambda: not tui.app.query_one(AnswerLine).display)
        await tui.pilot.press("enter")
        await tui.until(lambda: "Unknown command /nonsense" in tui.screen.replace("\n", " "))
        assert tui.app.query_one(StatusBar).state.asks == 1


async def test_who_was_faster_is_told_and_the_draft_stays(tmp_path: Path) -> None:
    """The answer of somebody else is on the server before ours: 409."""
    model = ScriptedModel([[QUESTION], [Say("rounded")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("round it")
        await postponed(tui, QuestionDialog)
        (ask,) = tui.app.asking.pending
        workspace, client = tui.app.connection.workspace_id, tui.app.connection.client
        send = client.answer_question

        async def overtaken(*arguments: str) -> object:
            async with Client(socket=server.socket, client_id="bob") as bob:
                await bob.answer_question(workspace, ask.id, "Down")
            return await send(*arguments)

        client.answer_question = overtaken  # type: ignore[method-assign, assignment]
        await tui.pilot.press(*"my answer", "enter")
        await tui.until(lambda: "bob answered first" in tui.screen.replace("\n", " "))
        await tui.until(lambda: tui.app.composer.input.text == "my answer")
        await tui.until(lambda: tui.idle and tui.answers == ["rounded"])
        assert len(await _runs(server)) == 1


async def _runs(server: LocalServer) -> list[object]:
    async with Client(socket=server.socket, client_id="bob") as bob:
        workspace = await bob.join(server.project)
        (session,) = (await bob.sessions(workspace.id)).items
        return [*(await bob.runs(workspace.id, session_id=session.id)).items]


async def test_a_text_that_was_meant_for_an_answer_becomes_no_prompt_when_somebody_is_faster(tmp_path: Path) -> None:
    model = ScriptedModel([[QUESTION], [Say("rounded")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("round it")
        await postponed(tui, QuestionDialog)
        (ask,) = tui.app.asking.pending
        await tui.pilot.press(*"my answer")
        tui.app.asking.grace_s = 3600.0  # the half second after the news
        async with Client(socket=server.socket, client_id="bob") as bob:
            await bob.answer_question(tui.app.connection.workspace_id, ask.id, "Down")
        await tui.until(lambda: tui.idle and tui.answers == ["rounded"])
        await tui.pilot.press("enter")
        await tui.until(lambda: tui.app.composer.input.text == "my answer")
        assert len(await _runs(server)) == 1


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("yes", PermissionDecision(answer=PermissionAnswer.ONCE)),
        ("always", PermissionDecision(answer=PermissionAnswer.ALWAYS)),
        ("no", PermissionDecision(answer=PermissionAnswer.DENY)),
        ("use make", PermissionDecision(answer=PermissionAnswer.DENY, reason="use make")),
    ],
)
def test_a_text_decides_a_permission(text: str, decision: PermissionDecision) -> None:
    assert decide(a_permission(), text) == decision


def test_a_text_answers_a_question_by_number_or_as_it_is() -> None:
    assert decide(a_question(), "2") == QuestionAnswered(answer=("SQLite in a file",))
    assert decide(a_question(), "none") == QuestionAnswered(answer=("none",))
    assert decide(a_question(multiple=True), "1, 3") == QuestionAnswered(answer=("SQLite in memory", "PostgreSQL"))
    assert "“SQLite in a file”" in effect(a_question(), "2")
    assert not is_answer("/undo")
    assert not is_answer("!ls")


async def test_what_other_sessions_wait_for_is_told_in_english(tmp_path: Path) -> None:
    """It said "2 waits in another session"."""
    model = ScriptedModel([[WRITE], [CallTool("write", {"path": "b.txt", "content": "b\n"})]])
    async with (
        local_server(tmp_path, model).serving() as server,
        open_tui(server) as tui,
        Client(socket=server.socket, client_id="ann") as ann,
    ):
        workspace = await ann.join(server.project)
        for title in ("one", "two"):
            session = await ann.create_session(workspace.id, title)
            await ann.submit(workspace.id, Submit(session_id=session.id, prompt="go"))
        await tui.until(lambda: "? 2 approvals needed in other sessions (ctrl+s)" in tui.screen)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (State(elsewhere=1, others=1), "? 1 approval needed in another session (ctrl+s)"),
        (State(elsewhere=2, others=1), "? 2 approvals needed in another session (ctrl+s)"),
        (State(elsewhere=3, others=2, questions_elsewhere=1), "? 3 answers needed in other sessions (ctrl+s)"),
    ],
)
async def test_the_status_line_counts_what_is_needed_elsewhere(state: State, told: str) -> None:
    bar = StatusBar()
    async with Stage(bar).run_test(size=(100, 5)):
        bar.state = state
        assert told in str(bar.render())


WAITING = State(elsewhere=1, others=1, abroad=WaitingElsewhere(asks=2), usage=Usage(cost=0.5), model="m/large")
ENDED = State(abroad=WaitingElsewhere(ended=3, failed=1), usage=Usage(cost=0.5), model="m/large")
WORKING = replace(WAITING, since=0)


@pytest.mark.parametrize(
    ("state", "width", "told"),
    [
        (
            WAITING,
            130,
            "Idle ? 1 approval needed in another session (ctrl+s)"
            " ? 2 approvals needed in other workspaces (/inbox) $0.50 · large",
        ),
        (replace(WAITING, asks=1), 80, "? 1 approval needed (ctrl+g) ? 3 approvals needed elsewhere (/inbox) large"),
        (WORKING, 82, "working 0s esc stop ? 3 approvals needed elsewhere (/inbox) $0.50 · large"),
        (WORKING, 40, "working 0s esc stop ? 3 (/inbox)"),
        (WORKING, 30, "working 0s esc stop"),
        (replace(WAITING, asks=1, all_approved=True), 62, "? 1 approval needed (ctrl+g) ? 3 (/inbox) approve all"),
        (replace(WAITING, failed=True), 65, "Failed ctrl+r retry ? 3 approvals needed elsewhere (/inbox)"),
        (replace(ENDED, since=0), 90, "working 0s esc stop 3 runs ended elsewhere, 1 failed (/inbox) $0.50 · large"),
        (replace(ENDED, since=0), 70, "working 0s esc stop $0.50 · large"),
        (replace(ENDED, abroad=WaitingElsewhere(ended=1)), 70, "Idle 1 run ended elsewhere (/inbox) $0.50 · large"),
        (
            replace(ENDED, asks=1, abroad=WaitingElsewhere(ended=1, failed=1)),
            90,
            "? 1 approval needed (ctrl+g) 1 run failed elsewhere (/inbox) $0.50 · large",
        ),
    ],
)
async def test_what_is_needed_elsewhere_is_told_whatever_happens_here(state: State, width: int, told: str) -> None:
    """While a run worked here, approvals that other sessions needed were not shown; with a request here, none were."""
    bar = StatusBar()
    async with Stage(bar).run_test(size=(width, 5)):
        bar.state = replace(state, since=monotonic()) if state.since is not None else state
        shown = str(bar.render())
        assert len(shown) <= bar.size.width
        assert " ".join(shown.lstrip(SPINNER).split()) == told


async def test_an_approval_in_another_session_is_told_while_a_run_works_here(tmp_path: Path) -> None:
    held = Gate("model")
    async with (
        local_server(tmp_path, ScriptedModel([[Pause(held), Say("done")], [WRITE]])).serving() as server,
        open_tui(server, size=(120, 24)) as tui,
        Client(socket=server.socket, client_id="ann") as ann,
    ):
        await tui.say("here")
        await held.reached()
        workspace = await ann.join(server.project)
        session = await ann.create_session(workspace.id, "two")
        await ann.submit(workspace.id, Submit(session_id=session.id, prompt="go"))
        await tui.until(lambda: "esc stop  ? 1 approval needed in another session (ctrl+s)" in tui.screen)
        held.open()
        await tui.until(lambda: tui.answers == ["done"])


# The dialog


@pytest.mark.parametrize("size", [(80, 24), (40, 15), (120, 40)])
async def test_a_dangerous_call_shows_its_command_once_and_why(size: tuple[int, int]) -> None:
    app = Stage()
    async with app.run_test(size=size) as pilot:
        await app.open(pilot, PermissionDialog(DANGEROUS, grace_s=0))
        shown = picture(app)
        assert "Deny, and say" in shown
        assert "Allow once" in shown
        pages = [shown]
        for _ in range(12):
            await pilot.press("pagedown")
            await pilot.pause()
            pages.append(picture(app))
        words = re.sub(r"[^\w.⚠ ]", " ", "".join(pages))
        assert "⚠ Dangerous. It permanently deletes files." in " ".join(words.split())
        assert any(page.count("rm -rf ü && ls") == 1 for page in pages)
        assert all(page.count("make &&") <= 1 for page in pages)


async def test_the_risky_part_is_marked_by_more_than_a_color() -> None:
    app = Stage()
    async with app.run_test(size=(100, 30)) as pilot:
        await app.open(pilot, PermissionDialog(DANGEROUS, grace_s=0))
        pieces = {piece.text: piece.style for line in drawn(app) for piece in line if piece.style}
        assert pieces["rm -rf ü"].underline
        assert pieces["rm -rf ü"].bold
        assert pieces["make"].underline
        assert not pieces["make"].bold
        assert "Always allow (in ~/p/longboat.json)" in picture(app)


@pytest.mark.parametrize(
    ("keys", "decision"),
    [
        (("enter", "enter"), PermissionDecision(answer=PermissionAnswer.DENY)),
        (("y", *"yes", "enter"), PermissionDecision(answer=PermissionAnswer.ONCE)),
        (("s", *"Yes", "enter"), PermissionDecision(answer=PermissionAnswer.SESSION)),
        (("w", "a", *"yes", "enter"), PermissionDecision(answer=PermissionAnswer.ALWAYS, wide=True)),
        (("up", "up", "up", "up", "enter", *"yes", "enter"), PermissionDecision(answer=PermissionAnswer.ONCE)),
        (("y", "escape", "d", "enter"), PermissionDecision(answer=PermissionAnswer.DENY)),
    ],
)
async def test_a_dangerous_call_takes_a_typed_yes(keys: tuple[str, ...], decision: PermissionDecision) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, PermissionDialog(DANGEROUS, grace_s=0))
        assert app.screen.query_one(OptionList).highlighted == 4
        await pilot.press(*keys)
        await pilot.pause()
        assert app.results == [decision]


@pytest.mark.parametrize("keys", [("y",), ("y", "y"), ("y", "enter"), ("y", *"no", "enter"), ("a", "a", "enter")])
async def test_nothing_less_than_yes_allows_a_dangerous_call(keys: tuple[str, ...]) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, PermissionDialog(DANGEROUS, grace_s=0))
        await pilot.press(*keys)
        await pilot.pause()
        assert app.results == []
        assert ("Not allowed yet: type yes" in picture(app)) == (keys[-1] == "enter")
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert app.results == [None]


async def test_what_a_command_holds_is_inert_in_the_dialog_and_in_the_line() -> None:
    """A mark cuts the text into pieces: no escape may slip through between two of them."""
    app = Stage(line := AnswerLine())
    async with app.run_test(size=(120, 120)) as pilot:
        for start in range(0, len(CORPUS), 32):
            text = "\n".join(CORPUS[start : start + 32])
            for each in CORPUS[start : start + 32]:
                line.show(a_question(choices=(each,)), "1")
                assert terminal_attacks.acting(list(line.query_one("#effect", Static).render_line(0))) == []
            await app.open(pilot, PermissionDialog(hostile_permission(text), grace_s=0))
            assert_inert(app)
            await pilot.press("escape")
            await pilot.pause()


def hostile_permission(text: str) -> Permission:
    """With a mark on every other letter."""
    parts = tuple(
        CommandPart(kind=CommandPartKind.COMMAND, text="x", why="x", start=at, end=at + 1)
        for at in range(0, len(text), 2)
    )
    told = CommandPart(kind=CommandPartKind.COMMAND, text=text, why=text, danger=text)
    return a_permission(argument=text, detail=text, parts=(told, *parts), danger=text[:500], rules_file=text[:500])


def assert_inert(app: Stage) -> None:
    for pieces in drawn(app):
        assert terminal_attacks.acting(pieces) == []
