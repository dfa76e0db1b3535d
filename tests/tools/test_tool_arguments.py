"""The liberties that a model may take with a tool's arguments."""

from typing import Any

import pytest

from longboat.tools.arguments import adapt_arguments
from longboat.tools.context import ToolError, parse
from longboat.tools.files import edit, multiedit, view, write
from longboat.tools.process import bash
from longboat.tools.schema import schema_of
from longboat.tools.search import glob, grep


@pytest.mark.parametrize(
    ("shape", "written", "meant"),
    [
        (view.Input, {"file_path": "a", "offset": "5"}, {"path": "a", "offset": 5}),
        (view.Input, {"filePath": "a", "start_line": 5.0, "limit": None}, {"path": "a", "offset": 5}),
        (edit.Input, {"path": "a", "oldString": "x", "newString": "y", "replaceAll": "true"},
         {"path": "a", "old_text": "x", "new_text": "y", "replace_all": True}),
        (edit.Input, {"file": "a", "old_str": "x", "new_str": ""}, {"path": "a", "old_text": "x", "new_text": ""}),
        (multiedit.Input, {"path": "a", "edits": '[{"old_string": "x", "new_string": "y"}]'},
         {"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]}),
        (write.Input, {"filename": "a", "contents": "5"}, {"path": "a", "content": "5"}),
        (bash.Input, {"cmd": "ls", "timeout_s": "1.5"}, {"command": "ls", "timeout_s": 1.5}),
        (grep.Input, {"regex": "x", "glob": "*.py"}, {"pattern": "x", "include": "*.py"}),
        (glob.Input, {"glob": "*.py", "directory": "src"}, {"pattern": "*.py", "path": "src"}),
    ],
)  # fmt: skip
def test_what_can_only_mean_one_thing_is_understood(
    shape: type[Any], written: dict[str, Any], meant: dict[str, Any]
) -> None:
    adapted = adapt_arguments(written, schema_of(shape))
    assert adapted == meant
    parse("the tool", adapted, shape)


@pytest.mark.parametrize(
    "written",
    [
        {"path": "a", "file_path": "b"},
        {"path": "a", "offset": "five"},
        {"path": "a", "offset": 1.5},
        {"path": "a", "colour": "red"},
        {"path": None},
    ],
)
def test_what_is_unclear_stays_as_it_is(written: dict[str, Any]) -> None:
    adapted = adapt_arguments(written, schema_of(view.Input))
    assert adapted == written
    with pytest.raises(ToolError):
        parse("view", adapted, view.Input)


def test_fields_of_a_schema_without_properties_are_left_alone() -> None:
    assert adapt_arguments({"filePath": "a", "n": "5"}, {"type": "object"}) == {"filePath": "a", "n": "5"}


@pytest.mark.parametrize(
    ("shape", "written", "told"),
    [
        (view.Input, {"pth": "a"}, "Fields: path (required), offset, limit."),
        (multiedit.Input, {"path": "a", "edits": [{"new_text": ""}]},
         "Fields: old_text (required), new_text (required), replace_all."),
    ],
)  # fmt: skip
def test_a_refusal_lists_the_fields(shape: type[Any], written: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolError) as refused:
        parse("the tool", written, shape)
    assert str(refused.value).endswith(told)
