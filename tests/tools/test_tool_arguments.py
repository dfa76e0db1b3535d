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
        (bash.Input, {"command": "ls", "description": "List files", "requires_approval": False}, {"command": "ls"}),
        (bash.Input, {"command": "ls", "timeout": "60"}, {"command": "ls", "timeout_s": 60}),
        (bash.Input, {"command": "ls", "timeout": 120_000}, {"command": "ls", "timeout_s": 120}),
        (bash.Input, {"command": "ls", "timeout_ms": 5_000}, {"command": "ls", "timeout_s": 5}),
        (view.Input, {"file_path": "a", "explanation": "To see."}, {"path": "a"}),
        (view.Input, {"path": "a", "start_line": "5", "end_line": "9"}, {"path": "a", "offset": 5, "limit": 5}),
        (view.Input, {"path": "a", "end_line": 9}, {"path": "a", "offset": 1, "limit": 9}),
        (view.Input, {"path": "a", "end_line": 1_000_000}, {"path": "a", "offset": 1, "limit": 2_000}),
        (view.Input, {"target_file": "a", "start_line_one_indexed": 2, "end_line_one_indexed_inclusive": 4},
         {"path": "a", "offset": 2, "limit": 3}),
        (view.Input, {"path": "a", "view_range": [3, 7]}, {"path": "a", "offset": 3, "limit": 5}),
        (view.Input, {"path": "a", "view_range": "[3, -1]"}, {"path": "a", "offset": 3}),
        (multiedit.Input, {"path": "a", "edits": [{"old_text": "x", "new_text": "y", "reason": "z"}]},
         {"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]}),
    ],
)  # fmt: skip
def test_what_can_only_mean_one_thing_is_understood(
    shape: type[Any], written: dict[str, Any], meant: dict[str, Any]
) -> None:
    adapted = adapt_arguments(written, schema_of(shape))
    assert adapted == meant
    parse("the tool", adapted, shape)


@pytest.mark.parametrize(
    ("shape", "written"),
    [
        (bash.Input, {"command": "ls", "timeout": 3_600}),
        (bash.Input, {"command": "ls", "timeout": "soon"}),
        (bash.Input, {"command": "ls", "timeout": True}),
        (bash.Input, {"command": "ls", "timeout": 9, "timeout_s": 3}),
        (view.Input, {"path": "a", "offset": 9, "end_line": 5}),
        (view.Input, {"path": "a", "limit": 9, "end_line": 5}),
        (view.Input, {"path": "a", "view_range": [5]}),
        (view.Input, {"path": "a", "offset": "five", "end_line": 5}),
        (write.Input, {"path": "a", "content": "b", "end_line": 5}),
    ],
)
def test_a_foreign_field_that_could_mean_several_things_is_refused(shape: type[Any], written: dict[str, Any]) -> None:
    assert adapt_arguments(written, schema_of(shape)) == written
    with pytest.raises(ToolError):
        parse("the tool", written, shape)


def test_a_tool_that_takes_any_fields_gets_what_was_written() -> None:
    """The tools of MCP servers."""
    written = {"description": "A bug", "reason": "x", "timeout": "60"}
    properties = {"title": {"type": "string"}, "timeout_s": {"type": "number"}}
    assert adapt_arguments(written, {"type": "object", "properties": properties}) == written


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


# As servers of MCP write their schemas

TEXT_OR_NULL = {"type": ["string", "null"]}
NUMBER_OR_NULL = {"type": ["integer", "null"]}


@pytest.mark.parametrize(
    ("field", "written", "meant"),
    [
        (TEXT_OR_NULL, None, None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, None),
        ({"type": "string", "nullable": True}, None, None),
        ({"enum": ["a", None]}, None, None),
        ({}, None, None),
        (True, None, None),
        (TEXT_OR_NULL, "5", "5"),
        (TEXT_OR_NULL, "true", "true"),
        (NUMBER_OR_NULL, "5", 5),
        (NUMBER_OR_NULL, 5.0, 5),
        (NUMBER_OR_NULL, "null", None),
        (NUMBER_OR_NULL, "many", "many"),
        ({"type": ["array", "null"], "items": NUMBER_OR_NULL}, '["1", null]', [1, None]),
        ({"type": ["boolean", "integer"]}, "True", True),
        (True, "5", "5"),
        ({"type": "array", "items": True}, "[1]", [1]),
    ],
)
def test_a_field_that_takes_several_types_gets_what_was_meant(field: object, written: object, meant: object) -> None:
    schema = {"type": "object", "properties": {"a": field}}
    nested = {"type": "object", "properties": {"list": {"type": "array", "items": schema}}}
    assert adapt_arguments({"a": written}, schema) == {"a": meant}
    assert adapt_arguments({"list": [{"a": written}]}, nested) == {"list": [{"a": meant}]}


@pytest.mark.parametrize("field", [{"type": "string"}, {"enum": ["a"]}, {"$ref": "#/$defs/A"}])
def test_a_null_that_a_field_does_not_take_is_left_out(field: object) -> None:
    schema = {"type": "object", "properties": {"a": field}}
    assert adapt_arguments({"a": None}, schema) == {}
    assert adapt_arguments({"a": None}, schema | {"required": ["a"]}) == {"a": None}
    assert adapt_arguments({"b": None}, schema) == {"b": None}
    assert adapt_arguments({"b": None}, schema | {"additionalProperties": False}) == {}
