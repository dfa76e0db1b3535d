"""The pure parts of the terminal app: history, completion, pastes, subjects, the words at the end (F2)."""

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import msgspec
import pytest
from textual.widget import Widget

import longboat.tui
from longboat.client.subject import subject_of
from longboat.tools.registry import built_in_traits
from longboat.tui.app_exit import farewell_text, theme_of_terminal
from longboat.tui.attachments import LONG, Unsuitable, chip, from_file, from_name, from_paste
from longboat.tui.commands import command_in
from longboat.tui.completion import Choice, Sort, Wanted, find_wanted, matching
from longboat.tui.content import format_count, one_line
from longboat.tui.history import History
from longboat.tui.messages import end_note
from longboat.tui.toolcard import ToolCard, time_text
from longboat.wire.models import FinishPart, FinishReason, ToolCallPart, ToolResultPart
from longboat.wire.plain import plain


def test_history_walks_back_and_forth_and_keeps_what_was_typed() -> None:
    history = History()
    history.take(["old", "older twice", "older twice"])
    history.add("new")
    history.add("old")
    assert [history.older("draft") for _ in range(4)] == ["old", "new", "older twice", None]
    assert [history.newer() for _ in range(4)] == ["new", "old", "draft", None]


def test_history_stays_at_the_recalled_prompt_when_more_is_read() -> None:
    """The app is opened, somebody presses Up, and only then the session has been read."""
    history = History()
    history.remember(["first", "second"])
    assert history.older("draft") == "second"
    history.take(["of the session", "first"])
    assert [history.older("second") for _ in range(2)] == [None, None]
    assert [history.newer() for _ in range(4)] == ["of the session", "first", "draft", None]


@pytest.mark.parametrize(
    ("text", "first_line", "expected"),
    [
        ("/un", True, Wanted(sort=Sort.COMMAND, query="un", length=3)),
        ("/un", False, None),
        ("say /un", True, None),
        ("see @src/pa", True, Wanted(sort=Sort.FILE, query="src/pa", length=7)),
        ("@", False, Wanted(sort=Sort.FILE, query="", length=1)),
        ("me@example", True, None),
        ("plain", True, None),
    ],
)
def test_what_is_completed(text: str, first_line: bool, expected: Wanted | None) -> None:
    assert find_wanted(text, first_line=first_line) == expected


def test_choices_that_begin_so_come_first() -> None:
    choices = [Choice(text="/summarize"), Choice(text="/undo"), Choice(text="/new")]
    assert [choice.text for choice in matching(choices, "u")] == ["/undo", "/summarize"]


@pytest.mark.parametrize(
    ("text", "name"), [("/undo", "undo"), ("/a:b c", "a:b"), ("/usr/bin", ""), ("no /undo", ""), ("/", "")]
)
def test_a_command_is_told_from_a_path(text: str, name: str) -> None:
    assert command_in(text) == name


def test_only_long_text_and_pictures_become_attachments() -> None:
    assert from_paste("x" * LONG, 0) is None
    assert from_paste("/no/such/picture.png", 0) is None
    assert from_paste("it's 'unbalanced", 0) is None
    long = from_paste("x\n" * LONG, 2)
    assert long is not None
    assert (long.name, long.media_type, chip(long)) == ("pasted-3.txt", "text/plain", "pasted-3.txt (2000 lines)")


@pytest.mark.parametrize(
    "text", ["~nobody/picture.png", "~nobody", "~\0", "file://[", "file:///%00.png", "/a\0.png", f"/{'z' * 300}.png"]
)
def test_what_cannot_be_a_path_is_text(text: str) -> None:
    assert from_paste(text, 0) is None
    with pytest.raises(Unsuitable, match="is not a file"):
        from_name(text)


@pytest.mark.parametrize("name", ["two words.txt", "'two words.txt'", '"two words.txt"', "two\\ words.txt"])
def test_a_file_is_named_bare_or_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two words.txt").write_text("a\nb\n")
    assert chip(from_name(name)) == "two words.txt (2 lines)"


def test_text_pdfs_and_pictures_can_be_attached_by_name(tmp_path: Path) -> None:
    for name, content in {"a.md": b"\xef\xbb\xbfWords\n", "b.pdf": b"%PDF-1.7 ...", "c.png": b"\x89PNG"}.items():
        (tmp_path / name).write_bytes(content)
    files = [from_file(tmp_path / name) for name in ("a.md", "b.pdf", "c.png")]
    assert [(file.media_type, file.text) for file in files] == [
        ("text/plain", "Words\n"),
        ("application/pdf", None),
        ("image/png", None),
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"\x7fELF\0", "not text"), (b"caf\xe9", "not text"), (b"x" * 5_000_001, "too large"), (None, "not a file")],
)
def test_what_cannot_be_attached_says_why(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "file"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(Unsuitable, match=why):
        from_file(path)


@pytest.mark.parametrize(
    ("tool", "arguments", "subject"),
    [
        ("bash", '{"command": "ls -l"}', "ls -l"),
        ("grep", '{"path": "src", "pattern": "x"}', "x src"),
        ("todos", '{"items": [{"text": "a", "state": "in_progress"}]}', "0 of 1 done: a"),
        ("any", '{"unfinished', ""),
        ("any", "[1]", ""),
        ("any", '{"count": 3, "odd": "word"}', "word"),
    ],
)
def test_what_a_call_is_about(tool: str, arguments: str, subject: str) -> None:
    assert subject_of(arguments, built_in_traits().get(tool)).text == subject


def test_foreign_text_is_shown_as_text() -> None:
    assert plain("a\x1b[2Jb") == "a␛[2Jb"
    assert one_line("one\ntwo   three", 8) == "one two…"


@pytest.mark.parametrize(("number", "told"), [(999, "999"), (1_000, "1k"), (12_340, "12.3k"), (2_500_000, "2.5M")])
def test_tokens_are_told_in_few_characters(number: int, told: str) -> None:
    assert format_count(number) == told


def test_the_last_words_tell_what_was_not_sent_and_how_to_come_back() -> None:
    told = farewell_text(failure="", session_id="s1", runs=(), unsent=["a\nb"], come_back="longboat -s {session_id}")
    assert told.splitlines() == ["1 prompt was not sent:", "  a b", "Continue with: longboat -s s1"]
    assert farewell_text(failure="Gone\x1b[2J.", session_id="s1", runs=(), unsent=(), come_back="") == "Gone␛[2J."


@pytest.mark.parametrize(("said", "theme"), [("15;0", "dark"), ("0;15", "light"), ("", "dark")])
def test_the_theme_follows_the_terminal(said: str, theme: str) -> None:
    assert theme_of_terminal({"COLORFGBG": said}) == theme


@pytest.mark.parametrize(
    ("finish", "told"),
    [
        (FinishPart(reason=FinishReason.CANCELED), "■ Canceled."),
        (FinishPart(reason=FinishReason.CANCELED, detail="by anna:tui-1"), "■ Canceled by you."),
        (FinishPart(reason=FinishReason.ERROR), "✗ Failed."),
        (FinishPart(reason=FinishReason.ERROR, detail="No."), "✗ Failed: No."),
        (FinishPart(reason=FinishReason.ERROR, title="Longboat failed", detail="See."), "✗ Longboat failed: See."),
        (FinishPart(reason=FinishReason.ERROR, title="Too many requests"), "✗ Too many requests."),
        (
            FinishPart(reason=FinishReason.MAX_TOKENS),
            "✗ Cut off: the answer reached the model's length limit. Ask it to continue.",
        ),
    ],
)
def test_how_a_turn_ended_is_said_once(finish: FinishPart, told: str) -> None:
    note = end_note(finish, lambda _: "")
    assert note is not None
    assert str(note.render()) == told


@pytest.mark.parametrize(
    ("ran_s", "waited_s", "told"),
    [
        (None, 0.0, ""),
        (0.05, 0.0, ""),
        (0.3, 52.0, "300 ms, waited 52 s for an answer"),
        (0.0, 4.0, "waited 4.0 s for an answer"),
        (75.0, 0.0, "1 min 15 s"),
    ],
)
def test_a_card_says_how_long_the_tool_ran_without_the_wait_for_a_person(
    ran_s: float | None, waited_s: float, told: str
) -> None:
    result = ToolResultPart(tool_call_id="c1", content="", ran_s=ran_s, waited_s=waited_s)
    assert time_text(result) == told
    assert time_text(msgspec.structs.replace(result, finished=False)) == ""
    head = ToolCard(ToolCallPart(id="c1", name="bash", input="{}"), result).render()
    assert str(head).splitlines()[0].strip().endswith(told)


def test_no_two_widgets_share_a_name() -> None:
    """Styles go by the name of the class: those of one would be those of the other, which hid the choices once."""
    modules = [import_module(found.name) for found in walk_packages(longboat.tui.__path__, "longboat.tui.")]
    widgets = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Widget) and value.__module__.startswith("longboat.")
    }
    names = [widget.__name__ for widget in widgets]
    assert len(names) > 30
    assert [name for name in names if names.count(name) > 1] == []
