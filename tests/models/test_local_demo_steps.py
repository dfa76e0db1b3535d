"""The form that a very small model fills in instead of writing tool calls (A6)."""

from dataclasses import replace

import jsonschema_rs
import pytest

from longboat.models.local.demo_steps import Call, as_form, as_talk, choose_tools, read_form
from longboat.models.protocol import ModelRequest
from longboat.tools.files.edit import EditTool
from longboat.tools.files.ls import LsTool
from longboat.tools.files.view import ViewTool
from longboat.tools.files.write import WriteTool
from longboat.tools.process.bash import BashTool
from longboat.tools.search.grep import GrepTool
from longboat.wire.models import FilePart, Image, Message, Part, Role, TextPart, ToolCallPart, ToolResultPart

TOOLS = tuple(
    replace(tool.spec, description=tool.spec.brief)
    for tool in (ViewTool, LsTool, GrepTool, EditTool, WriteTool, BashTool)
)


def message(role: Role, *parts: Part) -> Message:
    return Message(id="m", session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="")


def prompt(text: str, *more: Message) -> ModelRequest:
    return ModelRequest(system="Be brief.", messages=(message(Role.USER, TextPart(text=text)), *more), tools=TOOLS)


CALLED = message(Role.ASSISTANT, ToolCallPart(id="c", name="ls", input="{}", finished=True))
RESULT = message(Role.TOOL, ToolResultPart(tool_call_id="c", content="a.txt"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("List the files in this directory.", {"ls"}),
        ("Read README.md", {"view"}),
        ("Please search for the word sail", {"grep"}),
        ("Create a file hello.txt that says hi.", {"write"}),
        ("Fix src/main.py", {"edit"}),
        ("Run the tests", {"bash"}),
        ("Read it to me", set()),
        ("Hello!", set()),
        ("What is the capital of France?", set()),
    ],
)
def test_a_prompt_gets_the_tools_that_its_words_call_for(text: str, names: set[str]):
    assert {tool.name for tool in choose_tools(prompt(text))} == names


def test_one_call_a_prompt_and_then_it_must_speak():
    assert choose_tools(prompt("List the files.", CALLED, RESULT)) == ()
    again = message(Role.USER, TextPart(text="List the files again."))
    assert [tool.name for tool in choose_tools(prompt("List the files.", CALLED, RESULT, again))] == ["ls"]


def test_the_form_has_the_needed_fields_alone_and_the_files_that_were_named():
    request = prompt("Read README.md and open src/a.py")
    form = as_form(request, choose_tools(request))
    assert (form.tools, form.schema is not None) == ((), True)
    assert form.schema is not None
    fits = jsonschema_rs.validator_for(dict(form.schema))
    assert fits.is_valid({"tool": "view", "input": {"path": "README.md"}})
    assert fits.is_valid({"tool": "view", "input": {"path": "src/a.py"}})
    assert fits.is_valid({"answer": "I would rather not."})
    for wrong in ({"path": "/etc/passwd"}, {"path": "README.md", "offset": 5}, {}):
        assert not fits.is_valid({"tool": "view", "input": wrong})


def test_a_filled_in_form_is_read_and_a_cut_one_is_none():
    assert read_form('{"tool": "ls", "input": {}}') == Call(name="ls", arguments="{}")
    assert read_form('{ "answer" : "Paris" }') == "Paris"
    assert read_form('{"tool": "write", "input": {"path"') is None


def test_a_transcript_with_calls_and_images_becomes_plain_talk():
    picture = FilePart(name="p.png", media_type="image/png", data="QQ==")
    seen = message(
        Role.TOOL,
        ToolResultPart(tool_call_id="c", content="x" * 9000, images=(Image(media_type="image/png", data="QQ=="),)),
    )
    talk = as_talk(prompt("Look.", message(Role.USER, picture), CALLED, seen))
    assert [each.role for each in talk.messages] == [Role.USER] * 3
    assert all(isinstance(part, TextPart) for each in talk.messages for part in each.parts)
    said = "".join(part.text for each in talk.messages for part in each.parts if isinstance(part, TextPart))
    assert "p.png is attached, but this model cannot see images" in said
    assert len(said) < 3000
