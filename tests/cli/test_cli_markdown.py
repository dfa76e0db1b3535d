"""Answers at a terminal: formatted, wrapped between words, and the same however they stream in (issue 12)."""

import io
import os
from collections.abc import Iterable

import pyte
import pytest
import terminal_attacks
from pyte.modes import LNM

from longboat.cli.markdown import Markdown, RawText, writer_for

ANSWER = """\
# What was wrong

`add` took one from the *other*. It **adds** now, which this rather long paragraph says in many more words than \
fit on one line of a terminal.

1. the sign is changed
2. a test holds it

- one
    - inner

| before | after |
|---|--:|
| `a - b` | `a + b` |

```python
def add(a, b):
    return a + b  # <b>not</b> html
```

> quoted

See [the page](https://page.example) and <b>bold</b>.
"""


class Screen:
    """A terminal, as the kernel hands it what a program writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int, lines: int) -> None:
        monkeypatch.setattr("shutil.get_terminal_size", lambda fallback=(80, 24): os.terminal_size((columns, lines)))
        monkeypatch.setenv("NO_COLOR", "1")
        self._screen = pyte.HistoryScreen(columns, lines, history=2_000, ratio=1)
        self._screen.set_mode(LNM)
        self._stream = pyte.Stream(self._screen)
        self.out = io.StringIO()
        self._fed = 0

    def feed(self) -> None:
        written = self.out.getvalue()
        self._stream.feed(written[self._fed :])
        self._fed = len(written)

    @property
    def text(self) -> str:
        """All that was printed, also what has left the screen."""
        self.feed()
        above = ["".join(row[at].data for at in range(self._screen.columns)) for row in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*above, *self._screen.display]).rstrip()


def printed(screen: Screen, pieces: Iterable[str]) -> str:
    writer = Markdown(screen.out)
    for piece in pieces:
        writer.write(piece)
        screen.feed()
    writer.close()
    return screen.text


@pytest.mark.parametrize("columns", [30, 60, 100])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_an_answer_looks_the_same_however_it_streams(monkeypatch: pytest.MonkeyPatch, columns: int, size: int) -> None:
    whole = printed(Screen(monkeypatch, columns, 60), [ANSWER])
    pieces = [ANSWER[start : start + size] for start in range(0, len(ANSWER), size)]
    assert printed(Screen(monkeypatch, columns, 60), pieces) == whole


def test_markdown_is_formatted_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(Screen(monkeypatch, 60, 60), [ANSWER])
    assert text.startswith("What was wrong\n")
    for raw in ("**", "# ", "```", "|---", "[the page]"):
        assert raw not in text.replace("# <b>", "")
    for kept in ("add took one", " 1 the sign", " • one", "a + b", "return a + b  # <b>not</b> html", "▌ quoted"):
        assert kept in text
    assert "https://page.example" in text
    assert "<b>bold</b>" in text


@pytest.mark.parametrize("columns", [24, 40, 77])
def test_no_word_is_broken(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    words = "the quick brown fox jumps over the lazy dog while somebody else is watching it from afar " * 4
    text = printed(Screen(monkeypatch, columns, 60), [words[at : at + 3] for at in range(0, len(words), 3)])
    assert text.split() == words.split()
    assert max(map(len, text.splitlines())) < columns


def test_a_block_that_is_longer_than_the_screen_is_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "```\n" + "".join(f"line {number}\n" for number in range(100)) + "```\n\nafter\n"
    text = printed(Screen(monkeypatch, 40, 10), [code[at : at + 5] for at in range(0, len(code), 5)])
    assert [line.strip() for line in text.splitlines() if line.strip()] == [
        *(f"line {number}" for number in range(100)),
        "after",
    ]


def test_text_of_any_length_is_drawn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that are longer than what is parsed at a time, in one piece or many."""
    code = "```\n" + "".join(f"line {number}\n" for number in range(4_000)) + "```\n"
    text = "word " * 10_000 + "\n\n" + code + "\nafter\n"
    for pieces in ([text], [text[at : at + 5_000] for at in range(0, len(text), 5_000)]):
        screen = Screen(monkeypatch, 80, 40)
        writer = Markdown(screen.out)
        for piece in pieces:
            writer.write(piece)
        writer.close()
        written = screen.out.getvalue()
        assert written.count("line 3999") >= 1
        assert written.rstrip().endswith("after")
        assert "```" not in written


def test_what_is_printed_in_between_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a notice on stderr does: it begins on a line of its own, and code goes on as code."""
    screen = Screen(monkeypatch, 40, 20)
    writer = Markdown(screen.out)
    writer.write("Look:\n\n```\na = **b")
    writer.close()
    screen.out.write("notice\n")
    writer.write("**\nc\n```\n")
    writer.close()
    assert screen.text.splitlines() == ["Look:", "", "  a = **b", "notice", "  **", "  c"]


@pytest.mark.parametrize("payload", terminal_attacks.PAYLOADS)
def test_nothing_in_an_answer_controls_the_terminal(monkeypatch: pytest.MonkeyPatch, payload: str) -> None:
    screen = Screen(monkeypatch, 60, 30)
    text = payload.encode(errors="replace").decode()
    printed(screen, [f"said {text} end\n\n```{text}\n{text}\n```\n\n[{text}]({text})\n"])
    written = screen.out.getvalue()
    for ours in ("\x1b[J", "\x1b[1m", "\x1b[3m", "\x1b[0m", "\x1b[4m"):
        written = written.replace(ours, "")
    controls = {letter for letter in written if ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0}
    assert "\x1b]" not in written
    assert controls <= {"\n", "\r", "\x1b"}


def test_a_terminal_that_cannot_move_its_cursor_gets_the_text_as_it_is() -> None:
    out = io.StringIO()
    writer = writer_for(out, {"TERM": "dumb"})
    assert isinstance(writer, RawText)
    writer.write("**a**")
    writer.close()
    assert out.getvalue() == "**a**\n"
    assert isinstance(writer_for(out, {"TERM": "xterm"}), Markdown)
