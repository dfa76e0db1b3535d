"""What a terminal remembers (issue 4): the theme and the prompts, in files that nobody else may read."""

import stat
from pathlib import Path

import pytest

from longboat.tui.app_exit import notification
from longboat.tui.history import History
from longboat.tui.saved_state import AUTO, KEPT, LONGEST, SavedState, state_dir


def test_the_files_are_where_state_belongs(tmp_path: Path) -> None:
    assert state_dir({"XDG_STATE_HOME": "/elsewhere"}, tmp_path) == Path("/elsewhere/longboat")
    assert state_dir({}, tmp_path) == tmp_path / ".local/state/longboat"


def test_prompts_come_back_in_their_directory_alone(tmp_path: Path) -> None:
    SavedState(tmp_path / "state").keep_prompt("/a", "first\nof two lines")
    SavedState(tmp_path / "state").keep_prompt("/b", "elsewhere")
    SavedState(tmp_path / "state").keep_prompt("/a", "second \x1b[2J")
    assert SavedState(tmp_path / "state").prompts("/a") == ["first\nof two lines", "second \x1b[2J"]


def test_nobody_else_may_read_them(tmp_path: Path) -> None:
    keeping = SavedState(tmp_path / "state")
    keeping.keep_prompt("/a", "secret")
    keeping.keep_theme("nord")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert modes == {"prompts.jsonl": 0o600, "terminal.json": 0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_they_do_not_grow_for_ever(tmp_path: Path) -> None:
    keeping = SavedState(tmp_path)
    for number in range(2 * KEPT + 1):
        keeping.keep_prompt("/a", f"prompt {number}")
    keeping.keep_prompt("/a", "x" * (LONGEST + 1))
    assert keeping.prompts("/a") == [f"prompt {number}" for number in range(KEPT + 1, 2 * KEPT + 1)]
    assert len((tmp_path / "prompts.jsonl").read_bytes().splitlines()) == KEPT
    assert stat.S_IMODE((tmp_path / "prompts.jsonl").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b'{"theme": 3}', b"\xff\xfe", b"[]"])
def test_a_broken_file_is_no_memory_and_no_failure(tmp_path: Path, content: bytes) -> None:
    for name in ("terminal.json", "prompts.jsonl"):
        (tmp_path / name).write_bytes(content)
    keeping = SavedState(tmp_path)
    assert (keeping.theme, keeping.prompts("/a")) == (AUTO, [])
    keeping.keep_theme("light")
    assert keeping.theme == "light"


def test_a_place_that_cannot_be_written_costs_nothing_but_the_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for keeping in (SavedState(tmp_path / "file" / "below"), SavedState(None)):
        keeping.keep_theme("light")
        keeping.keep_prompt("/a", "prompt")
        assert (keeping.theme, keeping.prompts("/a")) == (AUTO, [])


def test_what_was_said_here_comes_before_the_session_and_that_before_what_was_said_long_ago() -> None:
    history = History()
    history.remember(["long ago", "again"])
    history.take(["of the session", "again"])
    history.add("here")
    walked = [history.older("") for _ in range(5)]
    assert walked == ["here", "again", "of the session", "long ago", None]


@pytest.mark.parametrize(
    ("environ", "sent"),
    [
        ({"TERM": "xterm-256color"}, "\x1b]9;Longboat: Done. a title\x1b\\"),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, "\x1b]777;notify;Longboat;Done. a title\x1b\\"),
        ({"TERM": "foot"}, "\x1b]777;notify;Longboat;Done. a title\x1b\\"),
        ({"TERM": "linux"}, ""),
        ({}, ""),
    ],
)
def test_a_terminal_is_told_in_the_form_that_it_may_know(environ: dict[str, str], sent: str) -> None:
    assert notification("Done.", "a title", environ) == sent


def test_a_title_cannot_end_the_notification_or_begin_another() -> None:
    told = notification("Done.", "a;b\x07\x1b\\\x1b]52;c;eA==\x07\x9c" + "x" * 500, {"TERM": "foot"})
    inner = told.removeprefix("\x1b]777;notify;Longboat;").removesuffix("\x1b\\")
    assert inner.isprintable()
    assert ";" not in inner
    assert len(inner) < 80
