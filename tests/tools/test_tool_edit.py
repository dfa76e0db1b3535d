"""`edit`: exact text replaced, everything else kept, and what is said when it cannot be (A3)."""

import asyncio
import os
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from longboat.permissions.verdict import Need
from longboat.testing.tool_context import Change, OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.files.edit import EditTool
from longboat.tools.files.replacement import replace
from longboat.tools.files.text import decode, diff, lines_of, truncate_lines


def kit_with(directory: Path, content: bytes, name: str = "a.py") -> OpenToolContext:
    (directory / name).write_bytes(content)
    context = OpenToolContext(directory)
    context.saw(directory / name)
    return context


async def edit(context: OpenToolContext, old: str, new: str, **more: object) -> str:
    arguments = {"path": "a.py", "old_text": old, "new_text": new} | more
    return (await context.use(EditTool(), **arguments)).content


# The tool -------------------------------------------------------------------------------------------------------------


async def test_an_edit_replaces_the_text_and_shows_the_difference(tmp_path: Path) -> None:
    context = kit_with(tmp_path, b"a = 1\nb = 2\n")
    (tmp_path / "a.py").chmod(0o755)
    said = await edit(context, "b = 2", "b = 3")
    difference = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n"
    path = tmp_path / "a.py"
    assert said == f"Edited a.py: 1 replacement at line 2.\n\n{difference}"
    assert path.read_bytes() == b"a = 1\nb = 3\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert context.changes == [Change(path=path, before=b"a = 1\nb = 2\n", after=b"a = 1\nb = 3\n")]
    assert context.needs == [
        Need(tool="edit", action="edit", argument="a.py", paths=(str(path),), title="Edit a.py", detail=difference)
    ]


async def test_an_edit_needs_a_read_and_an_unchanged_file(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\n")
    context = OpenToolContext(tmp_path)
    with pytest.raises(ToolError, match="has not been read"):
        await edit(context, "1", "2")
    context.saw(path)
    path.write_text("a = 1  # theirs\n")
    with pytest.raises(ToolError, match="has changed since"):
        await edit(context, "1", "2")
    assert path.read_text() == "a = 1  # theirs\n"
    assert context.needs == []


async def test_edits_in_a_row_need_no_read_between_them(tmp_path: Path) -> None:
    context = kit_with(tmp_path, b"a = 1\n")
    await edit(context, "1", "2")
    await edit(context, "2", "3")
    assert (tmp_path / "a.py").read_text() == "a = 3\n"


async def test_of_two_edits_at_once_none_is_lost(tmp_path: Path) -> None:
    """The second either sees the first or is told; it never writes over it."""
    context = kit_with(tmp_path, b"a = 1\nb = 1\n")
    results = await asyncio.gather(
        edit(context, "a = 1", "a = 2"), edit(context, "b = 1", "b = 2"), return_exceptions=True
    )
    content = (tmp_path / "a.py").read_text()
    assert ("a = 2" in content) == isinstance(results[0], str)
    assert ("b = 2" in content) == isinstance(results[1], str)
    assert any(isinstance(result, str) for result in results)


async def test_of_two_edits_that_saw_the_same_the_second_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\nb = 1\n")
    both = asyncio.Event()

    async def meet(_: Need) -> None:
        if len(context.needs) == 2:
            both.set()
        await both.wait()

    context = OpenToolContext(tmp_path, on_permit=meet)
    context.saw(path)
    results = await asyncio.gather(
        edit(context, "a = 1", "a = 2"), edit(context, "b = 1", "b = 2"), return_exceptions=True
    )
    (made,) = [n for n, result in enumerate(results) if isinstance(result, str)]
    assert "Someone else just changed" in str(results[1 - made])
    assert path.read_text() == ("a = 2\nb = 1\n", "a = 1\nb = 2\n")[made]
    assert context.expected == {}
    assert len(context.changes) == 1


async def test_a_change_underneath_while_permission_is_asked_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\n")

    async def meanwhile(_: Need) -> None:
        # The same size, and the same time: only the content tells.
        before = path.stat()
        path.write_text("b = 1\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    context = OpenToolContext(tmp_path, on_permit=meanwhile)
    context.saw(path)
    with pytest.raises(ToolError, match="Someone else just changed"):
        await edit(context, "1", "2")
    assert path.read_text() == "b = 1\n"
    assert context.changes == []


async def test_a_file_that_vanishes_while_permission_is_asked_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\n")

    async def meanwhile(_: Need) -> None:
        path.unlink()

    context = OpenToolContext(tmp_path, on_permit=meanwhile)
    context.saw(path)
    with pytest.raises(ToolError):
        await edit(context, "1", "2")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\x7fELF\0", "ELF program"), (b"a\0b", "binary file"), (b"\x89PNG\r\n\x1a\n", "PNG image")],
)
async def test_a_binary_file_is_not_edited(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(ToolError, match=f"is not a text file .{said}"):
        await edit(kit_with(tmp_path, content), "a", "b")


async def test_a_character_that_the_encoding_lacks_is_refused(tmp_path: Path) -> None:
    context = kit_with(tmp_path, "größe\n".encode("latin-1"))
    with pytest.raises(ToolError, match="LATIN-1, which lacks some characters"):
        await edit(context, "größe", "Ωmega")
    await edit(context, "größe", "Größe")
    assert (tmp_path / "a.py").read_bytes() == "Größe\n".encode("latin-1")


async def test_a_symlink_is_written_through(tmp_path: Path) -> None:
    context = kit_with(tmp_path, b"a = 1\n", "real.py")
    (tmp_path / "a.py").symlink_to("real.py")
    await edit(context, "1", "2")
    assert (tmp_path / "a.py").is_symlink()
    assert (tmp_path / "real.py").read_text() == "a = 2\n"


async def test_what_language_servers_say_is_added(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    context = OpenToolContext(tmp_path, diagnostics="a.py:1: undefined name")
    context.saw(tmp_path / "a.py")
    assert (await edit(context, "1", "b")).endswith("\n\na.py:1: undefined name")


async def test_a_long_difference_is_cut_for_the_model(tmp_path: Path) -> None:
    context = kit_with(tmp_path, b"a\n" * 5_000)
    said = await edit(context, "a\n", "b\n", replace_all=True)
    assert said.startswith("Edited a.py: 5000 replacements at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ….")
    assert len(said) < 9_000
    assert "more lines)" in said
    assert len(context.needs[0].detail) > 20_000


# What is found, and what is said --------------------------------------------------------------------------------------


def test_text_that_is_there_twice_is_refused_with_its_lines() -> None:
    with pytest.raises(ToolError, match=r"occurs 2 times \(lines 1, 3\)\. Add surrounding lines"):
        replace("x = 1\ny\nx = 1\n", "x = 1", "x = 2")
    with pytest.raises(ToolError, match="occurs 2 times"):
        replace("aaa", "aa", "b")
    assert replace("x = 1\ny\nx = 1\n", "x = 1", "x = 2", every=True).content == "x = 2\ny\nx = 2\n"


@pytest.mark.parametrize(
    ("content", "old", "new", "said"),
    [
        ("a\n", "", "b", "old_text is empty"),
        ("a\n", "a", "a", "are the same"),
        ("a\r\n", "a\n", "a\r\n", "are the same"),
        ("x = 1\n", "completely different text", "b", "nor anything similar"),
        ("x = 1\n", "     1\tx = 1", "b", "Leave out the line numbers"),
        ("  a()\n", "\ta() ", "\ta()", "already has new_text"),
        ("a\n", "  \n", "b", "not in the file"),
    ],
)
def test_what_cannot_be_replaced_is_told(content: str, old: str, new: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        replace(content, old, new)


def test_the_nearest_lines_are_shown_if_nothing_matches() -> None:
    content = "import os\n\ndef compute_total(items):\n    return sum(items)\n"
    with pytest.raises(ToolError, match=r"(?s)Lines like its first line:\n     3\tdef compute_total\(items\):\n"):
        replace(content, "def compute_totals(item):\n    pass", "x")


def test_whitespace_differences_are_tolerated_where_unique_and_said() -> None:
    content = "class A:\n    def f(self):\n        return  1   \n\n    def g(self):\n        return 2\n"
    replaced = replace(content, "def f(self):\n    return 1\n", "def f(self):\n    if x:\n        return 3\n")
    assert replaced.content == (
        "class A:\n    def f(self):\n        if x:\n            return 3\n\n    def g(self):\n        return 2\n"
    )
    assert "whitespace differed from old_text" in replaced.remark


def test_tabs_in_the_file_and_spaces_in_the_edit_give_tabs() -> None:
    content = "if a:\n\tif b:\n\t\tc()\n"
    replaced = replace(content, "    if b:\n        c()", "    if b:\n        d()\n    e()")
    assert replaced.content == "if a:\n\tif b:\n\t\td()\n\te()\n"


def test_an_edit_indented_too_far_is_moved_back() -> None:
    replaced = replace("a:\n  b\n", "    a:\n      b", "    a:\n      c\n  d")
    assert replaced.content == "a:\n  c\n  d\n"


def test_whitespace_differences_that_fit_twice_are_refused() -> None:
    with pytest.raises(ToolError, match=r"occurs 2 times \(lines 1, 2\)"):
        replace("  a()\n\ta()\n", "    a()", "b()")


# Line ends and encodings ----------------------------------------------------------------------------------------------

LINES = st.lists(st.text("ab \t", max_size=4), min_size=1, max_size=6)
ENDS = st.sampled_from(["\n", "\r\n"])


@given(lines=LINES, end=ENDS, data=st.data())
def test_an_edit_of_unique_text_changes_that_text_alone(lines: list[str], end: str, data: st.DataObject) -> None:
    """Models see LF: the same edit on the CRLF file is the CRLF of the edit on the LF file."""
    flat = "\n".join([*lines, "END"])
    start = data.draw(st.integers(0, len(flat) - 1))
    old = flat[start : data.draw(st.integers(start + 1, len(flat)))]
    new = data.draw(st.text("xy\n", max_size=5))
    assume(old != new)
    assume(sum(flat.startswith(old, place) for place in range(len(flat))) == 1)
    expected = flat[:start] + new + flat[start + len(old) :]
    content = flat.replace("\n", end)
    assert replace(content, old, new).content == expected.replace("\n", end)


@given(before=st.text("ab\r\n", max_size=12), after=st.text("ab\r\n", max_size=12), new=st.text("xy\n", max_size=4))
@example(before="\r", after="\n", new="")
def test_mixed_line_ends_outside_of_the_edit_are_kept(before: str, after: str, new: str) -> None:
    replaced = replace(f"{before}<old>{after}", "<old>", new).content
    assert replaced.startswith(before)
    assert replaced.endswith(after)
    inserted = replaced[len(before) : len(replaced) - len(after)]
    assert inserted.replace("\r\n", "\n") == new


@given(content=st.text("ab", min_size=1, max_size=8), new=st.text("xy", max_size=3))
def test_replacing_all_is_what_python_does(content: str, new: str) -> None:
    assume("a" in content)
    assert replace(content, "a", new, every=True).content == content.replace("a", new)


@given(st.text("xyz\n", min_size=1).filter(str.strip), st.text("uvw\n", min_size=1))
def test_an_edit_and_its_opposite_give_the_file_back(old: str, new: str) -> None:
    content = f"begin\n{old}\nend\n"
    assume(new not in content)
    assume(old != new)
    edited = replace(content, f"begin\n{old}\nend", f"begin\n{new}\nend").content
    assert replace(edited, f"begin\n{new}\nend", f"begin\n{old}\nend").content == content


@given(st.binary(max_size=40) | st.text(max_size=20).map(lambda text: text.encode("utf-16")))
def test_text_encodes_back_to_the_bytes_it_came_from(content: bytes) -> None:
    try:
        text = decode(content)
    except ValueError:
        return
    assert text.encode(text.content) == content


@pytest.mark.parametrize("bom", [b"\xef\xbb\xbf", b""])
async def test_byte_order_mark_and_line_ends_survive_an_edit(tmp_path: Path, bom: bytes) -> None:
    context = kit_with(tmp_path, bom + b"a\r\nb\r\nc\r\n")
    await edit(context, "a\nb", "a\nx\ny")
    assert (tmp_path / "a.py").read_bytes() == bom + b"a\r\nx\r\ny\r\nc\r\n"


# Differences ----------------------------------------------------------------------------------------------------------


def patched(directory: Path, before: str, difference: str) -> str:
    path = directory / "file"
    path.write_bytes(before.encode())
    subprocess.run(
        ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", "-"],
        input=difference.encode(),
        cwd=directory,
        check=True,
    )
    return path.read_bytes().decode()


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "-- x", "++ y", "@@ z"]), max_size=30).map("\n".join)


@given(before=TEXTS.filter(bool), after=TEXTS.filter(bool))
def test_a_difference_applies(tmp_path_factory: pytest.TempPathFactory, before: str, after: str) -> None:
    difference = diff(before, after, "file")
    assert bool(difference) == (before != after)
    if difference:
        assert patched(tmp_path_factory.mktemp("patch"), before, difference) == after


def test_a_difference_too_large_to_compute_is_a_replacement_that_applies(tmp_path: Path) -> None:
    before = "same\n" * 5 + "".join(f"old {number}\n" for number in range(3_000)) + "end\n"
    after = "same\n" * 5 + "".join(f"new {number}\n" for number in range(3_000)) + "end\n"
    assert patched(tmp_path, before, diff(before, after, "file")) == after


@given(st.text("ab\n", max_size=200), st.integers(1, 50))
def test_bounded_text_keeps_whole_lines_and_says_what_is_missing(text: str, limit: int) -> None:
    cut = truncate_lines(text, limit)
    if len(text) <= limit:
        assert cut == text
    else:
        assert len(cut) < limit + 40
        assert "more lines)" in cut


@given(st.text("a\r\n", max_size=20))
def test_lines_are_counted_as_ripgrep_counts_them(content: str) -> None:
    assert len(lines_of(content)) == content.count("\n") + (content != "" and not content.endswith("\n"))
