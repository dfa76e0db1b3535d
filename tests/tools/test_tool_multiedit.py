"""`multiedit`: all edits or none (A3)."""

from pathlib import Path

import pytest

from longboat.testing.tool_context import Change, OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.files.multiedit import MultieditTool

CONTENT = b"a = 1\r\nb = 2\r\nc = 3\r\n"


@pytest.fixture
def context(tmp_path: Path) -> OpenToolContext:
    (tmp_path / "a.py").write_bytes(CONTENT)
    context = OpenToolContext(tmp_path)
    context.saw(tmp_path / "a.py")
    return context


async def test_edits_are_made_in_order_as_one_change(context: OpenToolContext) -> None:
    edits = [
        {"old_text": "a = 1", "new_text": "a = 10\nz = 0"},
        {"old_text": "z = 0\nb = 2", "new_text": "b = 20"},
        {"old_text": " = ", "new_text": "=", "replace_all": True},
    ]
    result = await context.use(MultieditTool(), path="a.py", edits=edits)
    after = b"a=10\r\nb=20\r\nc=3\r\n"
    assert (context.directory / "a.py").read_bytes() == after
    assert context.changes == [Change(path=context.directory / "a.py", before=CONTENT, after=after)]
    assert result.content.startswith(
        "Edited a.py: 1 replacement at line 1; 1 replacement at line 2; 3 replacements at lines 1, 2, 3.\n"
    )
    (need,) = context.needs
    assert (need.tool, need.action, need.argument) == ("multiedit", "edit", "a.py")
    assert "+b=20" in need.detail


async def test_one_failing_edit_leaves_the_file_as_it_was(context: OpenToolContext) -> None:
    edits = [{"old_text": "a = 1", "new_text": "a = 2"}, {"old_text": "not there at all", "new_text": "x"}]
    with pytest.raises(ToolError, match="Edit 2 of 2 failed, so no edit was made: old_text is not in the file"):
        await context.use(MultieditTool(), path="a.py", edits=edits)
    assert (context.directory / "a.py").read_bytes() == CONTENT
    assert (context.needs, context.changes) == ([], [])


async def test_edits_that_undo_each_other_are_refused(context: OpenToolContext) -> None:
    edits = [{"old_text": "a = 1", "new_text": "a = 2"}, {"old_text": "a = 2", "new_text": "a = 1"}]
    with pytest.raises(ToolError, match="cancel each other out"):
        await context.use(MultieditTool(), path="a.py", edits=edits)


@pytest.mark.parametrize("edits", [[], [{"old_text": "a"}], "a = 1", [{"old": "a", "new": "b"}]])
async def test_bad_input_is_named(context: OpenToolContext, edits: object) -> None:
    with pytest.raises(ToolError, match="Invalid input for multiedit"):
        await context.use(MultieditTool(), path="a.py", edits=edits)
