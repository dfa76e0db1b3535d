"""The dialogs in which people answer the agent: permissions and questions (F2, A2)."""

import pytest
from textual import events
from textual.widgets import Input, OptionList
from tui_stage import DIFF, Stage, a_permission, a_question, an_edit, picture

from longboat.tui.dialogs.asks import Gone
from longboat.tui.dialogs.confirm import ConfirmDialog
from longboat.tui.dialogs.permission import PermissionDecision, PermissionDialog
from longboat.tui.dialogs.question import QuestionAnswered, QuestionDialog
from longboat.wire.asks import PermissionAnswer

ONCE = PermissionDecision(answer=PermissionAnswer.ONCE)


@pytest.mark.parametrize(
    ("keys", "decision"),
    [
        (("o",), ONCE),
        (("s",), PermissionDecision(answer=PermissionAnswer.SESSION)),
        (("a",), PermissionDecision(answer=PermissionAnswer.ALWAYS)),
        (("w", "s"), PermissionDecision(answer=PermissionAnswer.SESSION, wide=True)),
        (("w", "a"), PermissionDecision(answer=PermissionAnswer.ALWAYS, wide=True)),
        (("w", "w", "a"), PermissionDecision(answer=PermissionAnswer.ALWAYS)),
        (("w", "o"), ONCE),
        (("enter",), ONCE),
        (("down", "enter"), PermissionDecision(answer=PermissionAnswer.SESSION)),
        (("down", "down", "enter"), PermissionDecision(answer=PermissionAnswer.ALWAYS)),
        (("down", "down", "down", "enter", "s"), PermissionDecision(answer=PermissionAnswer.SESSION, wide=True)),
        (("d", "n", "o", "enter"), PermissionDecision(answer=PermissionAnswer.DENY, reason="no")),
        (("d", "enter"), PermissionDecision(answer=PermissionAnswer.DENY)),
        (("up", "enter", "x", "enter"), PermissionDecision(answer=PermissionAnswer.DENY, reason="x")),
        (("d", "x", "escape", "o"), ONCE),
        (("escape",), None),
        (("d", "escape", "escape"), None),
    ],
)
async def test_each_key_of_a_permission_says_what_it_should(
    keys: tuple[str, ...], decision: PermissionDecision | None
) -> None:
    """A2: once, session, always (as offered, or wider), deny with a reason; or later."""
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, PermissionDialog(a_permission(), grace_s=0))
        await pilot.press(*keys)
        await pilot.pause()
        assert app.results == [decision]


async def test_a_reason_is_written_in_the_order_of_its_keys_when_they_arrive_at_once() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, PermissionDialog(a_permission(), grace_s=0))
        await pilot.press("d")
        for key in ("n", "p", "backspace", "o", "t", "left", "left", "k", "enter"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert app.results == [PermissionDecision(answer=PermissionAnswer.DENY, reason="nkot")]


async def test_a_permission_shows_the_tool_the_command_why_and_the_rules_it_would_add() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, PermissionDialog(a_permission(), asked_by="ada", position=2, of=3, grace_s=0))
        shown = picture(app)
        for words in ("bash · for ada · 2 of 3", "No rule allows git push.", "bash(git push --force origin main)"):
            assert words in shown
        assert "bash(git push *)" not in shown
        await pilot.press("w")
        assert "bash(git push *)" in picture(app)
        assert "will allow (wider):" in picture(app)


async def test_what_can_only_be_allowed_once_offers_nothing_more() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, PermissionDialog(a_permission(grant=(), wide=()), grace_s=0))
        await pilot.press("s", "a", "w")
        await pilot.pause()
        assert app.results == []
        assert "only be allowed once" in picture(app)
        assert app.screen.query_one(OptionList).option_count == 2
        await pilot.press("o")
        await pilot.pause()
        assert app.results == [ONCE]


async def test_an_edit_is_shown_as_a_difference_that_can_be_scrolled_from_the_answers() -> None:
    long = DIFF + "".join(f"@@ -{n},1 +{n},1 @@\n-old {n}\n+new {n}\n" for n in range(100, 160))
    app = Stage()
    async with app.run_test(size=(60, 20)) as pilot:
        await app.open(pilot, PermissionDialog(a_permission(detail=long, argument="src/boat.py"), grace_s=0))
        assert "      2 +     # with the wind" in picture(app)
        await pilot.press(*["pagedown"] * 40)
        await pilot.pause()
        assert "159 + new 159" in picture(app)
        await pilot.press("pageup")
        await pilot.pause()
        assert "159 + new 159" not in picture(app)
        await pilot.press("o")
        await pilot.pause()
        assert app.results == [ONCE]


@pytest.mark.parametrize("size", [(60, 20), (40, 15), (80, 24)])
async def test_a_long_command_never_pushes_the_answers_off_the_screen(size: tuple[int, int]) -> None:
    app = Stage()
    async with app.run_test(size=size) as pilot:
        await app.open(pilot, PermissionDialog(a_permission(detail="echo and more; " * 200 + "THE END"), grace_s=0))
        assert "Allow once" in picture(app)
        assert "Deny, and say what to do instead" in picture(app)
        await pilot.press(*["pagedown"] * 25)
        await pilot.pause()
        assert "will allow" in picture(app)
        await pilot.press("d")
        await pilot.pause()
        assert app.screen.query_one("#reason").region.bottom <= size[1]


@pytest.mark.parametrize(
    ("who", "answer", "said"),
    [
        ("bob", PermissionAnswer.ONCE, "bob allowed it once"),
        ("bob", PermissionAnswer.SESSION, "bob allowed it for this session"),
        ("bob", PermissionAnswer.ALWAYS, "bob always allowed it"),
        ("bob", PermissionAnswer.DENY, "bob denied it"),
        (None, None, "No longer needs an answer"),
    ],
)
async def test_what_somebody_else_answered_closes_the_permission_and_says_who(
    who: str | None, answer: PermissionAnswer | None, said: str
) -> None:
    """A2, F6: the first answer wins, and everybody sees whose it was."""
    app = Stage()
    async with app.run_test() as pilot:
        dialog = PermissionDialog(a_permission(), grace_s=0)
        await app.open(pilot, dialog)
        dialog.withdrawn(who, answer)
        dialog.withdrawn(who, answer)
        await pilot.press("o")
        await pilot.pause()
        assert app.results == [Gone(sentence=f"{said}: Run git push --force origin main")]
        assert [note.message for note in app._notifications] == [f"{said}: Run git push --force origin main"]
        assert app.screen is app.screen_stack[0]


async def test_an_ask_that_is_withdrawn_beneath_another_dialog_closes_when_it_is_seen_again() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        dialog = PermissionDialog(a_permission(), grace_s=0)
        await app.open(pilot, dialog)
        await app.open(pilot, ConfirmDialog("Something else?"))
        dialog.withdrawn("bob", PermissionAnswer.DENY)
        await pilot.pause()
        assert isinstance(app.screen, ConfirmDialog)
        await pilot.press("n")
        await pilot.pause()
        assert app.results == [None, Gone(sentence="bob denied it: Run git push --force origin main")]
        assert len(app.screen_stack) == 1


async def test_somebody_who_is_typing_when_the_dialog_opens_answers_nothing() -> None:
    """Keys count after a pause: a letter meant for the prompt must not allow a command."""
    now = 100.0
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, PermissionDialog(a_permission(), grace_s=0.5, clock=lambda: now))
        now += 0.4
        await pilot.press("o")
        now += 0.4
        await pilot.press("a", "enter")
        await pilot.pause()
        assert app.results == []
        now += 0.6
        await pilot.press("o")
        await pilot.pause()
        assert app.results == [ONCE]


async def test_a_key_before_the_dialog_is_drawn_answers_nothing() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        app.push_screen(PermissionDialog(a_permission(), grace_s=60), app.results.append)
        app.screen._forward_event(events.Key("o", "o"))
        await pilot.pause()
        await pilot.pause()
        assert app.results == []


async def test_two_answers_at_once_close_one_dialog() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, ConfirmDialog("Beneath"))
        dialog = PermissionDialog(a_permission(), grace_s=0)
        await app.open(pilot, dialog)
        dialog.action_answer("once")
        dialog.action_answer("always")
        await pilot.pause()
        assert app.results == [ONCE]
        assert isinstance(app.screen, ConfirmDialog)


async def test_answers_can_be_clicked() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, PermissionDialog(an_edit(), grace_s=0))
        await pilot.click("#answers", offset=(4, 1))
        await pilot.pause()
        assert app.results == [PermissionDecision(answer=PermissionAnswer.SESSION)]


CHOICES = ("SQLite in memory", "SQLite in a file", "PostgreSQL")


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (("enter",), CHOICES[:1]),
        (("down", "enter"), CHOICES[1:2]),
        (("2",), CHOICES[1:2]),
        (("3",), CHOICES[2:]),
        (("t", "M", "y", "enter"), ("My",)),
        (("tab", "2", "enter"), ("2",)),
        (("t", "o", "k", "up", "enter"), (CHOICES[0], "ok")),
        (("t", "o", "k", "down", "2"), (CHOICES[1], "ok")),
    ],
)
async def test_one_of_several_choices_or_ones_own_words(keys: tuple[str, ...], answer: tuple[str, ...]) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, QuestionDialog(a_question(), grace_s=0))
        await pilot.press(*keys)
        await pilot.pause()
        assert app.results == [QuestionAnswered(answer=answer)]


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (("space", "enter"), CHOICES[:1]),
        (("1", "3", "enter"), (CHOICES[0], CHOICES[2])),
        (("3", "1", "3", "enter"), CHOICES[:1]),
        (("space", "down", "space", "t", "t", "o", "o", "enter"), (*CHOICES[:2], "too")),
        (("t", "o", "n", "l", "y", "enter"), ("only",)),
    ],
)
async def test_several_choices_are_marked_and_sent_together(keys: tuple[str, ...], answer: tuple[str, ...]) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, QuestionDialog(a_question(multiple=True), grace_s=0))
        await pilot.press(*keys)
        await pilot.pause()
        assert app.results == [QuestionAnswered(answer=answer)]


@pytest.mark.parametrize("multiple", [True, False])
async def test_an_empty_answer_is_not_sent(multiple: bool) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, QuestionDialog(a_question(multiple=multiple), grace_s=0))
        await pilot.press("9", "t", " ", "enter")
        await pilot.pause()
        assert app.results == []
        assert "Mark one or more choices" in picture(app) if multiple else "Type an answer, or" in picture(app)
        await pilot.press("escape")
        await pilot.pause()
        assert app.results == [None]


async def test_a_question_without_choices_takes_words() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, QuestionDialog(a_question(choices=()), grace_s=0))
        await pilot.press("down", *"1 or 2", "enter")
        await pilot.pause()
        assert app.results == [QuestionAnswered(answer=("1 or 2",))]


@pytest.mark.parametrize(
    ("multiple", "keys", "answer"),
    [
        (False, ("down", "enter"), CHOICES[1:2]),
        (False, ("down", "down", "enter"), CHOICES[2:]),
        (True, ("down", "space", "enter"), CHOICES[1:2]),
    ],
)
async def test_keys_that_come_in_one_burst_keep_their_order(
    multiple: bool, keys: tuple[str, ...], answer: tuple[str, ...]
) -> None:
    """Over a slow line they arrive together: enter must not overtake the arrow before it."""
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, QuestionDialog(a_question(multiple=multiple), grace_s=0))
        for key in keys:
            app.post_message(events.Key(key, key if len(key) == 1 else {"enter": "\r", "space": " "}.get(key)))
        while not app.results:
            await pilot.pause()
        assert app.results == [QuestionAnswered(answer=answer)]


async def test_words_that_come_before_their_field_has_the_focus_choose_nothing() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, QuestionDialog(a_question(), grace_s=0))
        for key in ("t", "M", "y", "enter"):
            app.post_message(events.Key(key, key if len(key) == 1 else "\r"))
        while "type your answer again" not in picture(app):
            await pilot.pause()
        assert app.results == []
        await pilot.press("M", "y", "enter")
        await pilot.pause()
        assert app.results == [QuestionAnswered(answer=("My",))]


async def test_choices_can_be_clicked_and_several_are_then_marked() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, QuestionDialog(a_question(multiple=True), grace_s=0))
        await pilot.click("#choices", offset=(4, 1))
        await pilot.click("#choices", offset=(4, 2))
        await pilot.pause()
        assert app.results == []
        assert "2 [x] SQLite in a file" in picture(app)
        await pilot.press("enter")
        await pilot.pause()
        assert app.results == [QuestionAnswered(answer=CHOICES[1:])]


async def test_a_long_question_with_many_choices_keeps_its_field_on_the_screen() -> None:
    app = Stage()
    async with app.run_test(size=(60, 20)) as pilot:
        choices = tuple(f"choice {n}" for n in range(50))
        await app.open(pilot, QuestionDialog(a_question(text="Why? " * 120 + "END", choices=choices), grace_s=0))
        assert app.screen.query_one("#words", Input).region.bottom < 20
        box = app.screen.query_one(".box")
        assert box.region.height == sum(child.outer_size.height for child in box.children if child.display) + 2
        await pilot.press(*["pagedown"] * 12)
        await pilot.pause()
        assert "END" in picture(app)
        await pilot.press("end", "enter")
        await pilot.pause()
        assert app.results == [QuestionAnswered(answer=("choice 49",))]


@pytest.mark.parametrize(
    ("answer", "said"),
    [(("yes", "and no"), "bob answered “yes, and no”: Which"), (None, "No longer needs an answer: Which")],
)
async def test_what_somebody_else_answered_closes_the_question(answer: tuple[str, ...] | None, said: str) -> None:
    """F6."""
    app = Stage()
    async with app.run_test() as pilot:
        dialog = QuestionDialog(a_question(text="Which"), grace_s=0)
        await app.open(pilot, dialog)
        dialog.withdrawn("bob", answer)
        await pilot.press("1")
        await pilot.pause()
        assert app.results == [Gone(sentence=said)]


async def test_a_hasty_key_does_not_answer_a_question() -> None:
    now = 0.0
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, QuestionDialog(a_question(), grace_s=0.5, clock=lambda: now))
        await pilot.press("1", "enter")
        assert app.results == []
        now += 1
        await pilot.press("enter")
        await pilot.pause()
        assert app.results == [QuestionAnswered(answer=CHOICES[:1])]


@pytest.mark.parametrize("multiple", [False, True])
async def test_what_a_choice_means_stands_below_it_and_is_no_part_of_the_answer(multiple: bool) -> None:
    asked = a_question(choices=("Up", "Down"), descriptions=("away from zero\x1b[2J",), multiple=multiple)
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, QuestionDialog(asked, grace_s=0))
        rows = [line.strip(" │▌") for line in picture(app).splitlines()]
        mark = "[ ] " if multiple else ""
        at = rows.index(f"1 {mark}Up")
        assert rows[at + 1 : at + 3] == ["away from zero␛[2J", f"2 {mark}Down"]
        await pilot.press("down", "up", "space", "enter")
        await pilot.pause()
        assert app.results == [QuestionAnswered(answer=("Up",))]
