"""`multiedit`: all edits or none (A3)."""

from pathlib import Path

import pytest

from longboat.testing.kit import Change, OpenKit
from longboat.tools.kit import ToolError
from longboat.tools.multiedit import MultieditTool

CONTENT = b"a = 1\r\nb = 2\r\nc = 3\r\n"


@pytest.fixture
def kit(tmp_path: Path) -> OpenKit:
    (tmp_path / "a.py").write_bytes(CONTENT)
    kit = OpenKit(tmp_path)
    kit.saw(tmp_path / "a.py")
    return kit


async def test_edits_are_made_in_order_as_one_change(kit: OpenKit) -> None:
    edits = [
        {"old_text": "a = 1", "new_text": "a = 10\nz = 0"},
        {"old_text": "z = 0\nb = 2", "new_text": "b = 20"},
        {"old_text": " = ", "new_text": "=", "replace_all": True},
    ]
    result = await kit.use(MultieditTool(), path="a.py", edits=edits)
    after = b"a=10\r\nb=20\r\nc=3\r\n"
    assert (kit.directory / "a.py").read_bytes() == after
    assert kit.changes == [Change(path=kit.directory / "a.py", before=CONTENT, after=after)]
    assert result.content.startswith(
        "Edited a.py: 1 replacement at line 1; 1 replacement at line 2; 3 replacements at lines 1, 2, 3.\n"
    )
    (need,) = kit.needs
    assert (need.tool, need.action, need.argument) == ("multiedit", "edit", "a.py")
    assert "+b=20" in need.detail


async def test_one_failing_edit_leaves_the_file_as_it_was(kit: OpenKit) -> None:
    edits = [{"old_text": "a = 1", "new_text": "a = 2"}, {"old_text": "not there at all", "new_text": "x"}]
    with pytest.raises(ToolError, match="Edit 2 of 2 failed, so no edit was made: old_text is not in the file"):
        await kit.use(MultieditTool(), path="a.py", edits=edits)
    assert (kit.directory / "a.py").read_bytes() == CONTENT
    assert (kit.needs, kit.changes) == ([], [])


async def test_edits_that_undo_each_other_are_refused(kit: OpenKit) -> None:
    edits = [{"old_text": "a = 1", "new_text": "a = 2"}, {"old_text": "a = 2", "new_text": "a = 1"}]
    with pytest.raises(ToolError, match="cancel each other out"):
        await kit.use(MultieditTool(), path="a.py", edits=edits)


@pytest.mark.parametrize("edits", [[], [{"old_text": "a"}], "a = 1", [{"old": "a", "new": "b"}]])
async def test_bad_input_is_named(kit: OpenKit, edits: object) -> None:
    with pytest.raises(ToolError, match="Invalid input for multiedit"):
        await kit.use(MultieditTool(), path="a.py", edits=edits)
