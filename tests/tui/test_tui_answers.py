"""Answers that are typed into the composer, and dangerous calls, in the terminal app."""

import re
from pathlib import Path

import pytest
import terminal_attacks
from textual.widgets import OptionList, Static
from tui_deck import Deck, Harbour, aboard, harbour
from tui_stage import Stage, a_permission, a_question, drawn, picture

import hostile
from longboat.client import Client
from longboat.testing import CallTool, Say, ScriptedModel
from longboat.tui.answering import INSTEAD, AnswerLine, decide, effect, is_answer
from longboat.tui.dialogs.permission import PermissionDecision, PermissionDialog
from longboat.tui.dialogs.question import QuestionAnswered, QuestionDialog
from longboat.tui.status import State, StatusBar
from longboat.wire.asks import CommandPart, CommandPartKind, Permission, PermissionAnswer
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


async def postponed(deck: Deck, dialog: type) -> None:
    """The request is there, and the person put it off: the composer has the focus."""
    await deck.until(lambda: isinstance(deck.app.screen, dialog) and deck.app.screen.is_mounted)
    deck.app.screen._grace_s = 0.0  # type: ignore[attr-defined]  # nobody is typing
    await deck.pilot.pause()
    await deck.pilot.press("escape")
    await deck.until(lambda: len(deck.app.screen_stack) == 1 and deck.app.query_one(AnswerLine).display)


def written(port: Harbour) -> bool:
    return (Path(port.project) / "a.txt").exists()


async def test_what_is_typed_while_a_question_waits_answers_it(tmp_path: Path) -> None:
    """It became a prompt that waited behind the question for ever."""
    model = ScriptedModel([[QUESTION], [Say("rounded")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("round it")
        await postponed(deck, QuestionDialog)
        assert "Type your answer to the question" in deck.screen
        await deck.pilot.press(*"Half-even")
        await deck.until(lambda: "enter answers the question with “Half-even”" in deck.screen)
        assert INSTEAD in deck.screen
        await deck.pilot.press("enter")
        await deck.until(lambda: deck.idle and deck.answers == ["rounded"])
        assert "Half-even" in deck.text_of(deck.cards[0])
        assert not deck.app.query_one(AnswerLine).display
        assert deck.app.composer.input.text == ""


async def test_a_typed_text_denies_a_call_and_says_what_to_do_instead(tmp_path: Path) -> None:
    async with (
        harbour(tmp_path, ScriptedModel([[WRITE], [Say("done")]])).serving() as port,
        aboard(port) as deck,
    ):
        await deck.say("write it")
        await postponed(deck, PermissionDialog)
        await deck.pilot.press(*"use b.txt")
        await deck.until(lambda: "enter denies this call and tells the agent what to do instead" in deck.screen)
        await deck.pilot.press("enter")
        await deck.until(lambda: deck.idle and deck.answers == ["done"])
        assert "denied by you" in deck.text_of(deck.cards[0])
        assert not written(port)


async def test_a_whole_word_allows_and_alt_enter_sends_a_prompt(tmp_path: Path) -> None:
    model = ScriptedModel([[WRITE], [Say("done")], [Say("quickly")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await postponed(deck, PermissionDialog)
        await deck.pilot.press(*"hurry", "alt+enter")
        await deck.until(lambda: len(deck.app.desk.unfinished) == 2)
        assert deck.app.query_one(StatusBar).state.asks == 1
        await deck.pilot.press(*"yes")
        await deck.until(lambda: "enter allows this call once" in deck.screen)
        await deck.pilot.press("enter")
        await deck.until(lambda: deck.idle and written(port))


async def test_the_line_can_be_clicked_to_send_a_prompt_instead(tmp_path: Path) -> None:
    async with (
        harbour(tmp_path, ScriptedModel([[WRITE], [Say("done")]])).serving() as port,
        aboard(port) as deck,
    ):
        await deck.say("write it")
        await postponed(deck, PermissionDialog)
        await deck.pilot.press(*"hurry")
        await deck.until(lambda: INSTEAD in deck.screen)
        await deck.pilot.click("#instead")
        await deck.until(lambda: len(deck.app.desk.unfinished) == 2)
        assert deck.app.composer.input.text == ""
        assert deck.app.query_one(StatusBar).state.asks == 1


async def test_commands_stay_commands_while_a_request_waits(tmp_path: Path) -> None:
    async with (
        harbour(tmp_path, ScriptedModel([[WRITE], [Say("done")]])).serving() as port,
        aboard(port) as deck,
    ):
        await deck.say("write it")
        await postponed(deck, PermissionDialog)
        await deck.pilot.press(*"/nonsense")
        await deck.until(lambda: not deck.app.query_one(AnswerLine).display)
        await deck.pilot.press("enter")
        await deck.until(lambda: "Unknown command /nonsense" in deck.screen.replace("\n", " "))
        assert deck.app.query_one(StatusBar).state.asks == 1


async def test_who_was_faster_is_told_and_the_draft_stays(tmp_path: Path) -> None:
    """The answer of somebody else is on the server before ours: 409."""
    model = ScriptedModel([[QUESTION], [Say("rounded")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("round it")
        await postponed(deck, QuestionDialog)
        (ask,) = deck.app.asking.pending
        workspace, client = deck.app.connection.workspace_id, deck.app.connection.client
        send = client.answer_question

        async def overtaken(*arguments: str) -> object:
            async with Client(socket=port.socket, client_id="bob") as bob:
                await bob.answer_question(workspace, ask.id, "Down")
            return await send(*arguments)

        client.answer_question = overtaken  # type: ignore[method-assign, assignment]
        await deck.pilot.press(*"my answer", "enter")
        await deck.until(lambda: "bob answered first" in deck.screen.replace("\n", " "))
        await deck.until(lambda: deck.app.composer.input.text == "my answer")
        await deck.until(lambda: deck.idle and deck.answers == ["rounded"])
        assert len(await _runs(port)) == 1


async def _runs(port: Harbour) -> list[object]:
    async with Client(socket=port.socket, client_id="bob") as bob:
        workspace = await bob.join(port.project)
        (session,) = (await bob.sessions(workspace.id)).items
        return [*(await bob.runs(workspace.id, session_id=session.id)).items]


async def test_a_text_that_was_meant_for_an_answer_becomes_no_prompt_when_somebody_is_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel([[QUESTION], [Say("rounded")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("round it")
        await postponed(deck, QuestionDialog)
        (ask,) = deck.app.asking.pending
        await deck.pilot.press(*"my answer")
        monkeypatch.setattr("longboat.tui.ask_dialogs.GRACE_S", 3600.0)  # the half second after the news
        async with Client(socket=port.socket, client_id="bob") as bob:
            await bob.answer_question(deck.app.connection.workspace_id, ask.id, "Down")
        await deck.until(lambda: deck.idle and deck.answers == ["rounded"])
        await deck.pilot.press("enter")
        await deck.until(lambda: deck.app.composer.input.text == "my answer")
        assert len(await _runs(port)) == 1


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
        harbour(tmp_path, model).serving() as port,
        aboard(port) as deck,
        Client(socket=port.socket, client_id="ann") as ann,
    ):
        workspace = await ann.join(port.project)
        for title in ("one", "two"):
            session = await ann.create_session(workspace.id, title)
            await ann.submit(workspace.id, Submit(session_id=session.id, prompt="go"))
        await deck.until(lambda: "? 2 approvals needed in other sessions (ctrl+s)" in deck.screen)


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
