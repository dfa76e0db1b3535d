"""The session dialog: marks that differ, a preview, and what was said among the results (faces: Sessions, people)."""

from typing import Any

import msgspec
import terminal_attacks
from textual.widgets import OptionList
from tui_sessions import NOON, Sessions
from tui_stage import WHEN, Stage, drawn, picture

from longboat.errors import BadInput
from longboat.tui.dialogs.sessions import OpenSession, SessionList, ShowElsewhere, last_words
from longboat.tui.panels.todos import ClientsPanel
from longboat.wire.models import ClientInfo, Message, Role, Session, TextPart, ToolResultPart
from longboat.wire.search import SearchHit, Snippet


def hit(
    text: str, *matches: tuple[int, int], title: str = "The keel", message_id: str | None = "m1", role: Role = Role.USER
) -> SearchHit:
    return SearchHit(
        workspace_id="wsp_1",
        workspace_path="/work",
        session_id="ses_0001",
        session_title=title,
        message_id=message_id,
        role=role,
        at=WHEN,
        snippet=Snippet(text=text, matches=matches),
    )


def dialog(sessions: Sessions, *hits: SearchHit, **more: Any) -> SessionList:
    async def search_text(words: str) -> list[SearchHit]:
        return list(hits)

    return SessionList(
        sessions.search,
        rename=sessions.rename,
        delete=sessions.delete,
        search_text=search_text,
        clock=lambda: NOON,
        **more,
    )


async def test_working_waiting_and_pinned_sessions_have_marks_of_their_own() -> None:
    sessions = Sessions(4)
    sessions.kept["ses_0003"] = msgspec.structs.replace(sessions.kept["ses_0003"], pinned=True)
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, dialog(sessions, asking={"ses_0001"}))
        rows = [line.strip(" │▊▎") for line in picture(app).splitlines() if "Session number" in line]
        assert [row[0] for row in rows] == ["★", "1", "?", "●"], "pinned first; one without a mark begins with its age"
        assert rows[0].endswith("Session number 3")


async def test_what_was_said_is_found_below_the_titles_and_opens_at_its_message() -> None:
    app = Stage()
    async with app.run_test(size=(100, 30)) as pilot:
        said = [hit("mend the keel now", (9, 13)), hit("a title", title="keel", message_id=None)]
        await app.open(pilot, dialog(Sessions(2), *said))
        assert "In messages" not in picture(app), "nothing is searched for yet"
        await pilot.press(*"number 1")
        await app.settled(pilot)
        shown = picture(app)
        assert "In messages" in shown
        assert "The keel  prompt: mend the keel now" in shown
        assert "a title" not in shown, "a title that matches is among the sessions"
        await pilot.press("down", "enter")
        assert app.results == [OpenSession(session_id="ses_0001", message_id="m1")]


async def test_what_was_said_in_other_directories_comes_last_and_names_its_directory() -> None:
    app = Stage()
    async with app.run_test(size=(100, 30)) as pilot:
        other = {"workspace_id": "wsp_2", "workspace_path": "/src/other"}
        said = [
            hit("here the keel", (9, 13)),
            msgspec.structs.replace(hit("there the keel", (10, 14)), **other),
            msgspec.structs.replace(hit("keel", title="keel", message_id=None), role=None, **other),
        ]
        await app.open(pilot, dialog(Sessions(1), *said, workspace_id="wsp_1"))
        await pilot.press(*"keel")
        await app.settled(pilot)
        lines = [" ".join(line.strip(" │▊▎┃").split()) for line in picture(app).splitlines()]
        at = lines.index("In messages")
        assert [line.removeprefix("now ") for line in lines[at : at + 7] if line] == [
            "In messages",
            "The keel prompt: here the keel",
            "In other directories",
            "other: The keel prompt: there the keel",
            "other: keel title: keel",
        ]
        await pilot.press("down", "enter")
        assert app.results == [ShowElsewhere(session_id="ses_0001", workspace_path="/src/other")]


async def test_only_what_was_said_matches() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, dialog(Sessions(1), hit("mend the keel", (9, 13), role=Role.ASSISTANT)))
        await pilot.press(*"keel")
        await app.settled(pilot)
        assert "answer: mend the keel" in picture(app)
        await pilot.press("enter")
        assert app.results == [OpenSession(session_id="ses_0001", message_id="m1")]


async def test_the_highlighted_session_shows_what_was_said_last() -> None:
    async def preview(session_id: str) -> str:
        if session_id == "ses_0001":
            raise BadInput("Not now.")
        return f"Answer: the end of {session_id}"

    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, dialog(Sessions(3), preview=preview))
        await app.settled(pilot)
        assert "Answer: the end of ses_0000" in picture(app)
        await pilot.press("down")
        await app.settled(pilot)
        assert "the end of" not in picture(app)
        await pilot.press("down")
        await app.settled(pilot)
        assert "Answer: the end of ses_0002" in picture(app)


async def test_a_session_is_pinned_and_archived_in_the_list() -> None:
    sessions = Sessions(3)

    async def pin(session: Session) -> None:
        sessions.kept[session.id] = msgspec.structs.replace(session, pinned=not session.pinned)

    async def archive(session: Session) -> None:
        del sessions.kept[session.id]

    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, dialog(sessions, pin=pin, archive=archive))
        await pilot.press("down", "ctrl+t")
        await app.settled(pilot)
        listing = app.screen.query_one(OptionList)
        assert sessions.kept["ses_0001"].pinned
        assert listing.highlighted == 0, "it is first now, and still the chosen one"
        await pilot.press("ctrl+t")
        await app.settled(pilot)
        assert not sessions.kept["ses_0001"].pinned
        await pilot.press("ctrl+o")
        await app.settled(pilot)
        assert list(sessions.kept) == ["ses_0000", "ses_0002"]
        assert listing.option_count == 2


async def test_hostile_words_in_hits_titles_and_previews_stay_words() -> None:
    for line in terminal_attacks.PAYLOADS:

        async def preview(_: str, said: str = line) -> str:
            return said

        app = Stage()
        async with app.run_test(size=(120, 30)) as pilot:
            found = hit(line, (0, 3), (3, len(line)), title=line)
            await app.open(pilot, dialog(Sessions(1), found, preview=preview))
            await pilot.press("S")
            await app.settled(pilot)
            assert "In messages" in picture(app)
            assert [terminal_attacks.acting(list(line)) for line in drawn(app)] == [[]] * 30


def test_the_last_words_of_a_session() -> None:
    def message(seq: int, role: Role, text: str) -> Message:
        part = ToolResultPart(tool_call_id="c", content=text) if role is Role.TOOL else TextPart(text=text)
        return Message(id=str(seq), session_id="s", run_id="r", seq=seq, role=role, parts=(part,), created_at=WHEN)

    prompt, answer = message(1, Role.USER, "Mend it"), message(2, Role.ASSISTANT, "Mended " + "x" * 999)
    assert last_words([]) == ""
    assert last_words([prompt]) == "Prompt: Mend it"
    assert last_words([prompt, answer, message(3, Role.TOOL, "done"), message(4, Role.ASSISTANT, "")]).startswith(
        "Answer: Mended x"
    )
    assert len(last_words([answer])) < 400


async def test_one_person_with_several_windows_is_one_person() -> None:
    """faces 20: every terminal of anna looked like another person."""
    app = Stage()
    panel = ClientsPanel()
    async with app.run_test() as pilot:
        await app.mount(panel)
        clients = ["ben:web-1", "anna:tui-25ee", "anna:web-77aa", "anna:web-12cd"]
        panel.show([ClientInfo(client_id=each, attached_at=WHEN) for each in clients], "anna:tui-25ee")
        await pilot.pause()
        shown = picture(app)
        assert "Connected (2)" in shown
        assert "● anna (you, 3 windows)" in shown
        assert "● ben" in shown
