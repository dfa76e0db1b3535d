"""The dialogs with lists and fields: sessions, models, confirmation, texts, export, help (F2)."""

import asyncio

import msgspec
import pytest
from textual.widgets import Input, OptionList, TextArea
from tui_sessions import Sessions
from tui_stage import Stage, a_session, picture, some_models

from longboat.errors import BadInput
from longboat.tui.dialogs.confirm import ConfirmDialog, Confirmed, TextDialog, Written
from longboat.tui.dialogs.export import ExportChoice, ExportDialog
from longboat.tui.dialogs.help import DIALOG_HELP, HelpScreen, HelpSection
from longboat.tui.dialogs.models import ModelChoice, ModelPicker
from longboat.tui.dialogs.sessions import ForkSession, NewSession, OpenSession, SessionList
from longboat.wire.models import Outcome, Session, Usage


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (("enter",), OpenSession(session_id="ses_0000")),
        (("down", "enter"), OpenSession(session_id="ses_0001")),
        (("up", "enter"), OpenSession(session_id="ses_0011")),
        (("pagedown", "pageup", "enter"), OpenSession(session_id="ses_0000")),
        ((*"number 7", "enter"), OpenSession(session_id="ses_0007")),
        (("tab", "end", "enter"), OpenSession(session_id="ses_0011")),
        (("down", "ctrl+f"), ForkSession(session_id="ses_0001")),
        (("ctrl+n",), NewSession()),
        (("tab", "n"), NewSession()),
        (("escape",), None),
    ],
)
async def test_each_key_of_the_session_list(keys: tuple[str, ...], result: object) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, Sessions(12).dialog())
        for key in keys:
            await pilot.press(key)
            await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.results == [result]


async def test_sessions_are_listed_newest_first_with_what_they_cost_and_which_is_busy() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, Sessions(4).dialog(current="ses_0001"))
        lines = [line.strip(" │▊▎") for line in picture(app).splitlines() if "Session number" in line]
        assert lines == [
            "12 h            Session number 0",
            "12 h     $0.25  Session number 1 (current)",
            "●    12 h     $0.50  Session number 2 working",
            "12 h     $0.75  Session number 3",
        ]
        assert app.screen.query_one(OptionList).highlighted == 1


async def test_every_letter_searches_and_a_late_answer_does_not_replace_a_newer_one() -> None:
    sessions = Sessions(12)
    slow = asyncio.Event()

    async def search(text: str) -> list[Session]:
        if text == "numbe":
            await slow.wait()
        return await sessions.search(text)

    app = Stage()
    async with app.run_test() as pilot:
        dialog = SessionList(search, rename=sessions.rename, delete=sessions.delete)
        await app.open(pilot, dialog)
        app.screen.query_one("#search", Input).value = "numbe"
        await pilot.pause()
        app.screen.query_one("#search", Input).value = "number 11"
        await app.settled(pilot)
        slow.set()
        await app.settled(pilot)
        assert sessions.asked == ["", "number 11"]
        assert app.screen.query_one(OptionList).option_count == 1


async def test_a_session_is_renamed_in_the_list() -> None:
    sessions = Sessions(3)
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, sessions.dialog())
        await pilot.press("down", "ctrl+r", "ctrl+u", *"Keel", "enter")
        await app.settled(pilot)
        assert sessions.kept["ses_0001"].title == "Keel"
        assert "Keel" in picture(app)
        assert app.screen.query_one(OptionList).highlighted == 1
        await pilot.press("ctrl+r", "x", "escape")
        await app.settled(pilot)
        assert sessions.kept["ses_0001"].title == "Keel"
        assert app.results == []


async def test_what_the_server_refuses_is_said_in_the_list() -> None:
    sessions = Sessions(3)
    sessions.refuses = True
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, sessions.dialog())
        await pilot.press("ctrl+r", "x", "enter")
        await app.settled(pilot)
        assert "A title may not be that." in picture(app)


@pytest.mark.parametrize("refuses", [True, False])
async def test_a_change_goes_on_when_the_list_is_closed_at_once(refuses: bool) -> None:
    sessions, go_on = Sessions(3), asyncio.Event()

    async def rename(session_id: str, title: str) -> None:
        await go_on.wait()
        await sessions.rename(session_id, title)

    sessions.refuses = refuses
    app = Stage()
    async with app.run_test(notifications=True) as pilot:
        await app.open(pilot, SessionList(sessions.search, rename=rename, delete=sessions.delete))
        await pilot.press("ctrl+r", "ctrl+u", "x", "enter", "escape")
        await pilot.pause()
        assert app.results == [None]
        go_on.set()
        await app.settled(pilot)
        assert sessions.kept["ses_0000"].title == ("Session number 0" if refuses else "x")
        assert ("A title may not be that." in picture(app)) is refuses


async def test_a_search_that_fails_is_said_and_the_list_stays() -> None:
    async def search(text: str) -> list[Session]:
        if text:
            raise BadInput("Not now.")
        return [a_session(0)]

    app = Stage()
    async with app.run_test() as pilot:
        sessions = Sessions(0)
        await app.open(pilot, SessionList(search, rename=sessions.rename, delete=sessions.delete))
        await pilot.press("x")
        await app.settled(pilot)
        assert "Not now." in picture(app)
        assert "Session number 0" in picture(app)


async def test_a_session_is_deleted_after_a_question() -> None:
    sessions = Sessions(3)
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, sessions.dialog())
        await pilot.press("down", "delete", "enter")
        await app.settled(pilot)
        assert len(sessions.kept) == 3, "No has the focus"
        await pilot.press("delete")
        assert "Delete the session “Session number 1”" in picture(app)
        await pilot.press("y")
        await app.settled(pilot)
        assert list(sessions.kept) == ["ses_0000", "ses_0002"]
        assert "Session number 1" not in picture(app)


async def test_delete_in_the_search_deletes_a_letter_while_there_is_one() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, Sessions(3).dialog())
        await pilot.press(*"ab", "home", "delete")
        assert app.screen.query_one("#search", Input).value == "b"
        assert isinstance(app.screen, SessionList)


async def test_no_session_found_cannot_be_opened() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, Sessions(3).dialog())
        await pilot.press(*"xyz")
        await app.settled(pilot)
        await pilot.press("enter", "ctrl+r", "ctrl+f", "delete", "down", "enter")
        await pilot.pause()
        assert "No matching sessions." in picture(app)
        assert app.results == []


async def test_a_thousand_sessions_are_shown_at_once_and_reached() -> None:
    sessions = Sessions(1_000)
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, sessions.dialog())
        assert app.screen.query_one(OptionList).option_count == 1_000
        await pilot.press("up", "enter")
        await pilot.pause()
        assert app.results == [OpenSession(session_id="ses_0999")]


async def test_sessions_can_be_clicked() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, Sessions(3).dialog())
        await pilot.click("#sessions", offset=(20, 3))
        await pilot.pause()
        assert app.results == [OpenSession(session_id="ses_0002")]


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (("enter",), ModelChoice(model="openai/gpt-large", effort="low")),
        (("up", "enter"), ModelChoice(model=None, effort="low")),
        (("down", "enter"), ModelChoice(model="openai/gpt-small", effort=None)),
        (("ctrl+t", "enter"), ModelChoice(model="openai/gpt-large", effort="medium")),
        (("ctrl+t", "ctrl+t", "enter"), ModelChoice(model="openai/gpt-large", effort="high")),
        (("ctrl+t", "ctrl+t", "ctrl+t", "enter"), ModelChoice(model="openai/gpt-large", effort=None)),
        (("tab", "tab", "left", "shift+tab", "enter"), ModelChoice(model="openai/gpt-large", effort=None)),
        (("tab", "tab", "right", "space", "shift+tab", "enter"), ModelChoice(model="openai/gpt-large", effort="high")),
        ((*"LIT", "enter"), ModelChoice(model="local/little", effort="low")),
        ((*"gpt sm", "enter"), ModelChoice(model="openai/gpt-small", effort=None)),
        (("pagedown", "pageup", "enter"), ModelChoice(model=None, effort="low")),
        (("escape",), None),
    ],
)
async def test_each_key_of_the_model_picker(keys: tuple[str, ...], result: ModelChoice | None) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, ModelPicker(some_models(), current="openai/gpt-large", effort="low"))
        await pilot.press(*keys)
        await pilot.pause()
        assert app.results == [result]


async def test_a_model_that_is_not_ready_says_why_and_is_not_taken() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, ModelPicker(some_models(), current=None))
        assert "anthropic/claude" not in picture(app), "those that are not ready are folded away"
        await pilot.press(*"claude", "enter")
        await pilot.pause()
        assert picture(app).count("Set ANTHROPIC_API_KEY.") == 2
        assert app.results == []
        await pilot.press("x", "enter")
        await pilot.pause()
        assert "No matching models." in picture(app)
        assert app.results == []


async def test_models_that_are_not_ready_are_one_row_until_it_is_opened() -> None:
    """Finding 10: 13 of 17 entries were models without a key."""
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, ModelPicker(some_models()))
        await pilot.press("end", "pagedown", "enter")
        await pilot.pause()
        assert app.results == []
        assert "1 model is not ready" not in picture(app)
        assert picture(app).index("local/little") < picture(app).index("anthropic/claude")
        await pilot.press("enter")
        await pilot.pause()
        assert picture(app).count("Set ANTHROPIC_API_KEY.") == 2
        assert app.results == []


async def test_models_have_prices_and_an_unknown_one_says_so() -> None:
    """Finding 10."""
    app = Stage()
    async with app.run_test(size=(100, 30)) as pilot:
        await app.open(pilot, ModelPicker(some_models()))
        for name, price in (
            ("openai/gpt-large", "$3 in, $15 out per M"),
            ("openai/gpt-small", "price unknown"),
            ("local/little", "free"),
        ):
            assert any(name in line and f" {price} " in line for line in picture(app).splitlines()), name


async def test_the_effort_that_the_configuration_sets_is_shown() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, ModelPicker(some_models(), current="openai/gpt-large"))
        assert "(•) default (medium)" in picture(app)
        await pilot.press("down", "down")
        await pilot.pause()
        assert "(•) default  " in picture(app), "of another model"


@pytest.mark.parametrize(
    ("outcome", "mark"),
    [(Outcome.ERROR, "failed"), (Outcome.INTERRUPTED, "interrupted"), (Outcome.END_TURN, ""), (None, "")],
)
async def test_a_session_whose_last_turn_failed_is_marked(outcome: Outcome | None, mark: str) -> None:
    """Finding 13."""
    session = msgspec.structs.replace(a_session(1, title="Oars"), last_outcome=outcome)

    async def search(text: str) -> list[Session]:
        return [session]

    app, sessions = Stage(), Sessions(0)
    async with app.run_test() as pilot:
        await app.open(pilot, SessionList(search, rename=sessions.rename, delete=sessions.delete))
        await app.settled(pilot)
        (row,) = [line for line in picture(app).splitlines() if "Oars" in line]
        assert row.split("Oars")[1].split("▎")[0].strip() == mark


async def test_an_unknown_cost_is_said_in_the_list_of_sessions() -> None:
    """Finding 10."""
    used = Usage(input_tokens=10, cost=None, unpriced_tokens=10)
    paid = Usage(input_tokens=5, cost=0.25)
    found = [
        msgspec.structs.replace(a_session(number, title=title), usage=usage)
        for number, (title, usage) in enumerate([("Unknown", used), ("Partly", used + paid), ("Paid", paid)])
    ]

    async def search(text: str) -> list[Session]:
        return found

    app, sessions = Stage(), Sessions(0)
    async with app.run_test(size=(100, 30)) as pilot:
        await app.open(pilot, SessionList(search, rename=sessions.rename, delete=sessions.delete))
        await app.settled(pilot)
        for title, cost in (("Unknown", "unknown"), ("Partly", "≥ $0.25"), ("Paid", "$0.25")):
            assert f" {cost}  {title}" in picture(app)


async def test_the_effort_can_be_clicked() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, ModelPicker(some_models()))
        await pilot.click("#effort", offset=(len("effort: (•) default (medium)  ( ) low  ( ) m"), 0))
        assert "(•) medium" in picture(app)


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (("y",), Confirmed()),
        (("n",), None),
        (("enter",), None),
        (("escape",), None),
        (("right", "enter"), Confirmed()),
        (("tab", "enter"), Confirmed()),
        (("left", "right", "enter"), None),
    ],
)
async def test_each_key_of_a_confirmation(keys: tuple[str, ...], result: Confirmed | None) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, ConfirmDialog("Delete it?", yes="Delete"))
        await pilot.press(*keys)
        await pilot.pause()
        assert app.results == [result]


@pytest.mark.parametrize(("button", "result"), [("#yes", Confirmed()), ("#no", None)])
async def test_a_confirmation_can_be_clicked(button: str, result: Confirmed | None) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, ConfirmDialog("Delete it?"))
        await pilot.click(button)
        await pilot.pause()
        assert app.results == [result]


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (("!", "ctrl+s"), Written(text="one\n\ttwo!")),
        (("enter", "x", "ctrl+s"), Written(text="one\n\ttwo\nx")),
        (("ctrl+j", "x", "ctrl+s"), Written(text="one\n\ttwo\nx")),
        (("x", "escape"), None),
    ],
)
async def test_several_lines_are_edited(keys: tuple[str, ...], result: Written | None) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, TextDialog("The prompt:", text="one\n\ttwo", lines=True))
        await pilot.press(*keys)
        await pilot.pause()
        assert app.results == [result]


async def test_one_line_is_renamed_and_nothing_is_no_title() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, TextDialog("The new title:", text="Old"))
        await pilot.press("ctrl+u", "enter")
        assert "The text cannot be empty." in picture(app)
        await pilot.press(*" New ", "enter")
        await pilot.pause()
        assert app.results == [Written(text="New")]


async def test_a_text_may_be_empty_where_that_is_said() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, TextDialog("Anything?", lines=True, may_be_empty=True))
        assert app.screen.query_one(TextArea).has_focus
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert app.results == [Written(text="")]


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (("enter",), ExportChoice(format="markdown", path="boat.md")),
        (("ctrl+t", "enter"), ExportChoice(format="json", path="boat.json")),
        (("ctrl+t", "ctrl+t", "enter"), ExportChoice(format="markdown", path="boat.md")),
        (("ctrl+u", *"x.txt", "ctrl+t", "enter"), ExportChoice(format="json", path="x.txt")),
        (("ctrl+u", "enter", "a", "enter"), ExportChoice(format="markdown", path="a")),
        (("escape",), None),
    ],
)
async def test_each_key_of_the_export(keys: tuple[str, ...], result: ExportChoice | None) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, ExportDialog("Boat", path="boat.md"))
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        assert app.results == [result]


@pytest.mark.parametrize("key", ["escape", "enter", "f1"])
async def test_the_help_is_searched_scrolled_and_closed(key: str) -> None:
    section = HelpSection(title="Commands", rows=(("/ship", "Sends it off"),))
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, HelpScreen((*DIALOG_HELP, section)))
        assert "Allow once" in picture(app)
        assert "/ship" not in picture(app)
        await pilot.press(*["pagedown"] * 20)
        assert "/ship" in picture(app)
        await pilot.press(*["pageup"] * 20, "down", "up")
        assert "Allow once" in picture(app)
        await pilot.press(*"SENDS")
        assert "/ship" in picture(app)
        assert "Allow once" not in picture(app)
        await pilot.press("z")
        assert "Nothing found." in picture(app)
        await pilot.press(key)
        await pilot.pause()
        assert app.results == [None]
