"""Markdown in the terminal app: laid out block by block while it grows, and the same in the end (issue 4)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.selection import Selection

from longboat.tui.prose import Document, Prose
from longboat.tui.rows import Row
from work import check_proportion

TEXT = """\
# Title

Some **bold** and *slanted* words, `code`, ~~gone~~ and a [link](https://example.org) that go on beyond one row.

Setext
======

- one
- two
  1. nested
  2. again, with words that are wrapped at the width of the terminal

     a second paragraph
- three

> quoted
> > twice

```python
def f(x):

    return x + 1  # a comment that is longer than the terminal is wide, so that it is folded
```

| name | what it is | count |
|---|:-:|--:|
| one | a cell with far more words than there is room for in it | 1 |
| two | short | 22 |

    indented code

---

<b>no tag</b> & &amp; [defined] ![a picture](https://example.org/a.png)

[defined]: https://example.org/defined

The end."""


def rows(document: Document, width: int = 40) -> list[list[Row]]:
    return list(document.lines(width))


def shown(text: str, width: int = 40) -> str:
    document = Document()
    document.show(text)
    return "\n\n".join(
        "\n".join((row.lead.plain + row.content.plain).rstrip() for row in block) for block in rows(document, width)
    )


def test_every_kind_of_block_has_its_form() -> None:
    assert shown(TEXT) == (
        """\
Title

Some bold and slanted words, code, gone
and a link that go on beyond one row.

Setext

• one
• two
  1. nested

  2. again, with words that are wrapped
     at the width of the terminal

     a second paragraph

• three

▌ quoted
▌ ▌
▌ ▌ twice

def f(x):

    return x + 1  # a comment that is lo
nger than the terminal is wide, so that
it is folded

name │        what it is         │ count
─────┼───────────────────────────┼──────
one  │   a cell with far more    │     1
     │ words than there is room  │
     │         for in it         │
two  │           short           │    22

indented code

────────────────────────────────────────

<b>no tag</b> & & defined [a picture]

The end."""
    )


@given(st.lists(st.integers(0, len(TEXT)), max_size=12), st.integers(10, 90))
@settings(max_examples=60, deadline=None)
def test_a_text_that_came_in_pieces_looks_as_if_it_had_come_at_once(cuts: list[int], width: int) -> None:
    grown, whole = Document(), Document()
    for cut in sorted(cuts):
        grown.show(TEXT[:cut])
    grown.show(TEXT)
    whole.show(TEXT)
    assert rows(grown, width) == rows(whole, width)


def test_what_is_finished_is_not_laid_out_again() -> None:
    document = Document()
    document.show("first\n\nsecond\n\nthi")
    before = rows(document)
    assert document.show("first\n\nsecond\n\nthird\n\nfourth") == 2
    after = rows(document)
    assert [before[number] is after[number] for number in (0, 1)] == [True, True]
    assert [row.content.plain for block in after for row in block] == ["first", "second", "third", "fourth"]


def test_a_text_that_is_another_one_replaces_all() -> None:
    document = Document()
    document.show("one\n\ntwo")
    assert document.show("three") == 0
    assert [row.content.plain for block in rows(document) for row in block] == ["three"]


def test_control_characters_are_signs_and_move_no_block() -> None:
    assert shown("a\r\n\r\nb \x1b[2J\r\n\r\nc\td") == "a\n\nb ␛[2J\n\nc d"


@pytest.mark.parametrize("width", [1, 4, 7, 40])
def test_no_row_is_wider_than_there_is_room(width: int) -> None:
    document = Document()
    document.show(TEXT + "\n\n" + "- " * 30 + "deep 漢字漢字漢字")
    room = max(width, 4)
    for block in rows(document, width):
        for row in block:
            if "│" not in row.content.plain and "┼" not in row.content.plain:
                assert row.lead.cell_length + row.content.cell_length <= room + room // 2, row


@pytest.mark.parametrize("piece", ["[" * 50_000, "*a **a " * 20_000, "> " * 40_000, "`" * 60_000 + "a", "|a" * 40_000])
def test_what_is_too_much_for_a_parser_is_shown_as_it_is(piece: str) -> None:
    assert "".join(shown(piece).split()) == "".join(piece.split())


@pytest.mark.parametrize("piece", ["[", "*a **a ", "> ", "|a"])
def test_what_is_hard_to_parse_takes_steps_in_proportion(piece: str) -> None:
    check_proportion(lambda times: shown(piece * times), 1_000)


def test_a_long_text_is_the_same_whether_it_grew_or_was_there_at_once() -> None:
    part = TEXT.partition("[defined]")[0]
    text = "\n\n".join(part for _ in range(100))
    grown, whole = Document(), Document()
    for end in range(0, len(text), 997):
        grown.show(text[:end])
    grown.show(text)
    whole.show(text)
    assert rows(grown) == rows(whole)
    assert sum(block[0].content.plain == "Title" for block in rows(whole)) == 100


def test_a_definition_at_the_end_of_a_long_text_is_known_at_its_beginning() -> None:
    document = Document()
    document.show("see [this]\n\n" + "words\n\n" * 5_000 + "[this]: https://example.org\n")
    assert rows(document)[0][0].content.plain == "see this"


LINKED = (
    'see [one], [two] and [three]\n\n[one]: https://one.org/deep "a title"\n[two]: <https://two.org>\n\n> [three]: x\n'
    "\nend\n"
)


@pytest.mark.parametrize("step", [1, 3, 7])
def test_a_link_whose_definition_streams_in_leads_to_the_whole_of_it(step: int) -> None:
    grown, whole = Document(), Document()
    for end in range(0, len(LINKED), step):
        grown.show(LINKED[:end])
    grown.show(LINKED)
    whole.show(LINKED)
    spans = [row.content.spans for block in rows(grown) for row in block]
    assert spans == [row.content.spans for block in rows(whole) for row in block]
    assert [target in repr(spans) for target in ("'https://one.org/deep'", "'https://two.org'", "'x'")] == [True] * 3


class Page(App[None]):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.prose = Prose(text)

    def compose(self) -> ComposeResult:
        yield self.prose


async def test_what_is_copied_has_no_breaks_that_only_the_width_made() -> None:
    text = (
        "- some words that are longer than a row of this terminal\n\n```\ncode that is also longer than a row is\n```"
    )
    app = Page(text)
    async with app.run_test(size=(30, 20)):
        assert len(app.prose._rows) > 5
        assert app.prose.get_selection(Selection(None, None)) == (
            "some words that are longer than a row of this terminal\n\ncode that is also longer than a row is",
            "\n",
        )
        assert app.prose.get_selection(Selection(Offset(5, 0), Offset(10, 0))) == ("words", "\n")


async def test_a_drag_marks_words_and_a_click_on_a_link_says_where_it_leads() -> None:
    heard: list[str] = []

    class Heard(Page):
        def on_prose_link_clicked(self, event: Prose.LinkClicked) -> None:
            heard.append(event.href)

    app = Heard("see [this page](https://example.org/a'b)")
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.click(app.prose, offset=(6, 0))
        assert heard == ["https://example.org/a'b"]
        await pilot.mouse_down(app.prose, offset=(0, 0))
        await pilot.hover(app.prose, offset=(3, 0))
        await pilot.mouse_up(app.prose, offset=(3, 0))
        assert app.screen.get_selected_text() == "see "
        pieces = [(piece.text, piece.style.bgcolor) for piece in app.prose.render_line(0) if piece.style is not None]
        assert "".join(text for text, ground in pieces if ground != pieces[-1][1]) == "see "
