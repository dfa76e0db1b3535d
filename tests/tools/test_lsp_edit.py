"""A server's edit of several files, as changes: positions, encodings, line ends, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longboat.tools.context import ToolError
from longboat.tools.lsp.client.documents import Document
from longboat.tools.lsp.client.edit import changes_of
from longboat.tools.lsp.client.shapes import WorkspaceEdit


def nothing_open(_: Path) -> Document | None:
    return None


def at(line: int, start: int, end: int, new_text: str) -> dict[str, Any]:
    place = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"range": place, "newText": new_text}


def contents(
    directory: Path, edit: dict[str, Any], opened: Callable[[Path], Document | None] = nothing_open
) -> dict[str, bytes]:
    changes = changes_of(msgspec.convert(edit, WorkspaceEdit), directory, opened)
    return {change.target.shown: change.after for change in changes}


def test_both_ways_to_say_an_edit_are_understood(tmp_path: Path) -> None:
    (tmp_path / "a b.py").write_text("one\n")
    uri = (tmp_path / "a b.py").as_uri()
    assert contents(tmp_path, {"changes": {uri: [at(0, 0, 3, "two")]}}) == {"a b.py": b"two\n"}
    versioned = {"documentChanges": [{"textDocument": {"uri": uri, "version": None}, "edits": [at(0, 0, 3, "two")]}]}
    assert contents(tmp_path, versioned) == {"a b.py": b"two\n"}


def test_encoding_byte_order_mark_and_line_ends_are_kept(tmp_path: Path) -> None:
    before = "x = '😀'; é = 1\r\ny = é\r\n"
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbf" + before.encode())
    uri = (tmp_path / "a.py").as_uri()
    edit = {"changes": {uri: [at(0, 10, 11, "ö"), at(1, 4, 5, "ö")]}}
    assert contents(tmp_path, edit) == {"a.py": b"\xef\xbb\xbf" + "x = '😀'; ö = 1\r\ny = ö\r\n".encode()}


def test_two_names_of_one_file_are_one_change(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a b\n")
    (tmp_path / "link.py").symlink_to("a.py")
    edit = {
        "changes": {
            (tmp_path / "a.py").as_uri(): [at(0, 0, 1, "x")],
            (tmp_path / "link.py").as_uri(): [at(0, 2, 3, "y")],
        }
    }
    assert contents(tmp_path, edit) == {"a.py": b"x y\n"}


def test_a_file_that_stays_as_it_is_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n")
    assert contents(tmp_path, {"changes": {(tmp_path / "a.py").as_uri(): [at(0, 0, 3, "one")]}}) == {}


@pytest.mark.parametrize(("kind", "verb"), [("create", "create"), ("rename", "move"), ("delete", "delete")])
def test_files_are_not_created_moved_or_deleted(tmp_path: Path, kind: str, verb: str) -> None:
    with pytest.raises(ToolError, match=f"wants to {verb} files. Do that with bash"):
        contents(tmp_path, {"documentChanges": [{"kind": kind, "uri": "file:///x"}]})


def test_an_edit_of_a_file_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("newer\n")
    uri = (tmp_path / "a.py").as_uri()
    old = Document(text="older\n", version=4, sent_at=0)
    with pytest.raises(ToolError, match=r"a\.py was changed while"):
        contents(tmp_path, {"changes": {uri: [at(0, 0, 1, "x")]}}, lambda _: old)
    versioned = {"documentChanges": [{"textDocument": {"uri": uri, "version": 3}, "edits": []}]}
    with pytest.raises(ToolError, match=r"a\.py was changed while"):
        contents(tmp_path, versioned, lambda _: old)


def test_an_edit_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n")
    (tmp_path / "b.py").write_bytes(b"\x80 one\n")
    with pytest.raises(ToolError, match="the edits overlap"):
        contents(tmp_path, {"changes": {(tmp_path / "a.py").as_uri(): [at(0, 0, 2, "x"), at(0, 1, 3, "y")]}})
    with pytest.raises(ToolError, match="LATIN-1"):
        contents(tmp_path, {"changes": {(tmp_path / "b.py").as_uri(): [at(0, 0, 1, "€")]}})
    with pytest.raises(ToolError, match="not a file"):
        contents(tmp_path, {"changes": {"untitled:1": []}})
    with pytest.raises(ToolError, match=r"gone\.py does not exist"):
        contents(tmp_path, {"changes": {(tmp_path / "gone.py").as_uri(): []}})
