"""Tool calls that a model writes as text: read where they are plain, left alone where they are not."""

import json

import pytest

from longboat.core.tool import ToolSpec
from longboat.models.protocol import ModelRequest
from longboat.models.tool_modes.text_calls import MAX_CALLS, CallWatch, Found, as_text, find_calls, salvage_call
from longboat.models.tool_modes.tool_texts import TextCall
from longboat.wire.models import Image, Message, Part, Role, TextPart, ToolCallPart, ToolResultPart

VIEW = ToolSpec(
    name="view",
    description="Read a file.",
    schema={
        "type": "object",
        "properties": {"path": {"type": "string", "description": "The file."}, "limit": {"type": "integer"}},
        "required": ["path"],
    },
)
BASH = ToolSpec(
    name="bash", description="Run it.", schema={"type": "object", "properties": {"command": {"type": "string"}}}
)
TOOLS = (VIEW, BASH)


def call(name: str, **arguments: object) -> TextCall:
    return TextCall(name=name, arguments=json.dumps(arguments))


READ = call("view", path="a.py")
JSON = '{"name": "view", "arguments": {"path": "a.py"}}'


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{JSON}\n```",
        f"```\n{JSON}\n```",
        f"```tool_call\n[{JSON}]\n```",
        JSON,
        f"<tool_call>{JSON}</tool_call>",
        f"<tool_call>\n{JSON}\n</tool_call>",
        f"<tool_call>\n{JSON}",
        f"<tools>{JSON}</tools>",
        f"[TOOL_CALLS] [{JSON}]",
        f"<|python_tag|>{JSON}",
        '{"name": "view", "parameters": {"path": "a.py"}}',
        '{"tool": "view", "args": {"path": "a.py"}}',
        '{"type": "function", "function": {"name": "view", "arguments": "{\\"path\\": \\"a.py\\"}"}}',
        '{"tool_calls": [{"id": "1", "name": "view", "arguments": {"path": "a.py"}}]}',
        '<function=view>{"path": "a.py"}</function>',
        "<function=view>\n<parameter=path>\na.py\n</parameter>\n</function>",
        "<tool_call>\n<function=view>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
    ],
)
@pytest.mark.parametrize("lead", ["", "I look at it.\n\n"])
def test_the_forms_that_models_were_trained_on_are_read(text: str, lead: str) -> None:
    assert find_calls(lead + text, TOOLS) == Found(before=lead.rstrip(), calls=(READ,))


@pytest.mark.parametrize(
    "text",
    [
        f"{JSON}\n" + '{"name": "bash", "arguments": {"command": "ls"}}',
        f"```json\n{JSON}\n```\n```json\n" + '{"name": "bash", "arguments": {"command": "ls"}}\n```',
        f"<tool_call>{JSON}</tool_call>\n<tool_call>" + '{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
        "<function=view><parameter=path>a.py</parameter></function><function=bash>"
        "<parameter=command>ls</parameter></function>",
    ],
)
def test_several_calls_are_read_in_their_order(text: str) -> None:
    assert find_calls(text, TOOLS).calls == (READ, call("bash", command="ls"))


def test_a_call_that_is_repeated_without_end_is_made_only_a_few_times() -> None:
    assert find_calls(f"{JSON}\n" * 30, TOOLS).calls == (READ,) * MAX_CALLS


def test_parameters_in_tags_have_the_types_of_their_fields() -> None:
    text = "<function=view><parameter=path>1</parameter><parameter=limit>\n20\n</parameter></function>"
    assert find_calls(text, TOOLS).calls == (call("view", path="1", limit=20),)


def test_parameters_in_tags_may_have_fields_of_several_types() -> None:
    fields = {"text": {"type": ["string", "null"]}, "number": {"type": ["integer", "null"]}, "any": True}
    odd = ToolSpec(name="odd", description="", schema={"type": "object", "properties": fields})
    given = "".join(f"<parameter={name}>5</parameter>" for name in fields)
    assert find_calls(f"<function=odd>{given}</function>", (odd,)).calls == (call("odd", text="5", number=5, any="5"),)


def test_line_ends_in_strings_are_no_hindrance() -> None:
    text = '{"name": "bash", "arguments": {"command": "cat <<E\nhello\nE"}}'
    assert find_calls(text, TOOLS).calls == (call("bash", command="cat <<E\nhello\nE"),)


def test_what_a_model_says_after_its_calls_is_told_apart() -> None:
    found = find_calls(f"First:\n```json\n{JSON}\n```\nThe file has 3 lines.", TOOLS)
    assert found == Found(before="First:", calls=(READ,), after="The file has 3 lines.")


@pytest.mark.parametrize(
    "text",
    [
        "A plain answer.",
        '{"name": "longboat", "version": "1"}',
        "Use `<tool_call>` tags.",
        f"It sends {JSON} then.",
        "```python\n{'a': 1}\n```",
        "[1, 2]",
        '[{"name": "view", "description": "Read a file."}]',
        '{"name": "view", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}',
        '<tools>\n  <tool name="hammer"/>\n</tools>',
        "Mistral begins with\n[TOOL_CALLS]\nand then JSON.",
    ],
)
def test_other_text_is_left_alone(text: str) -> None:
    assert find_calls(text, TOOLS) == Found(before=text)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "view", "arguments": {"path": "a.py"',
        '```json\n{"name": "view", \'arguments\': {}}\n```',
        '{"name": "read_file", "arguments": {"path": "a.py"}}',
        "<tool_call>view a.py</tool_call>",
    ],
)
def test_what_was_meant_as_a_call_and_cannot_be_read_is_noticed(text: str) -> None:
    found = find_calls(text, TOOLS)
    assert (found.calls, found.broken_at) == ((), 0)


def test_a_tool_that_is_not_there_is_called_all_the_same_in_tags() -> None:
    """Its result tells the model which tools there are."""
    text = '<tool_call>{"name": "read_file", "arguments": {}}</tool_call>'
    assert find_calls(text, TOOLS).calls == (call("read_file"),)


def test_a_call_that_was_cut_off_keeps_what_there_is() -> None:
    cut = '<tool_call>{"name": "bash", "arguments": {"command": "ec'
    assert salvage_call(cut, TOOLS) == TextCall(name="bash", arguments='{"command": "ec')
    assert salvage_call("<tool_call>bash", TOOLS) is None


# While it streams


def shown_early(text: str, *, piece: int = 1) -> tuple[str, str]:
    """What was shown while it came, and what was held until the end."""
    watch = CallWatch()
    shown = "".join(watch.feed(text[start : start + piece]) for start in range(0, len(text), piece))
    return shown, watch.finish()


@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "Hello `world`, 1 < 2 {sic} [link](x).\n\n- [ ] todo\n[a]: b\n",
        "```python\nif a < b:\n    x = {'a': 1}\n```\nDone.",
        '```json\n{"compilerOptions": {}}\n```\n',
        "<b>bold</b> and <tool",
    ],
)
def test_ordinary_text_is_shown_as_it_comes(text: str, piece: int) -> None:
    shown, held = shown_early(text, piece=piece)
    assert shown + held == text
    assert len(held) <= len("<tool")


@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize("text", [JSON, f"```json\n{JSON}\n```", f"<tool_call>{JSON}</tool_call> and more"])
def test_a_call_is_held_back(text: str, piece: int) -> None:
    assert shown_early(f"I look:\n{text}", piece=piece) == ("I look:\n", text)


# The transcript


def message(role: Role, *parts: Part) -> Message:
    return Message(id="i", session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="")


def test_the_transcript_has_calls_as_the_model_writes_them_and_results_as_user_messages() -> None:
    made = ToolCallPart(id="c1", name="view", input='{"path":"a.py"}', finished=True)
    cut = ToolCallPart(id="c2", name="bash", input='{"comm', finished=True)
    red = ToolCallPart(id="c3", name="bash", input="{}", finished=True)
    image = Image(media_type="image/png", data="AAAA")
    results = (
        ToolResultPart(tool_call_id="c1", name="view", content="x = 1", images=(image,)),
        ToolResultPart(tool_call_id="c2", name="bash", content="No command.", is_error=True),
        ToolResultPart(tool_call_id="c3", name="bash", content="1 failed", is_error=True, command_failed=True),
    )
    messages = (
        message(Role.USER, TextPart(text="Look.")),
        message(Role.ASSISTANT, TextPart(text="I look."), made, cut, red),
        message(Role.TOOL, *results),
    )
    asked = as_text(ModelRequest(system="Work.", messages=messages, tools=TOOLS))
    assert asked.tools == ()
    assert asked.system.startswith("Work.\n\nTo use a tool, ")
    assert "- view: Read a file.\n    path (string): The file.\n    limit (integer, optional)\n- bash" in asked.system
    user, assistant, told = asked.messages
    assert user == messages[0]
    assert assistant.parts == (
        TextPart(
            text='I look.\n<tool_call>{"name":"view","arguments":{"path":"a.py"}}</tool_call>\n'
            '<tool_call>{"name":"bash","arguments":{}}</tool_call>\n'
            '<tool_call>{"name":"bash","arguments":{}}</tool_call>'
        ),
    )
    assert told.role is Role.USER
    assert [part.text for part in told.parts if isinstance(part, TextPart)] == [
        "Result of call 1 (view):\nx = 1",
        "Call 2 (bash) failed:\nNo command.",
        "Result of call 3 (bash):\n1 failed",
    ]
    assert [part.data for part in told.parts if not isinstance(part, TextPart)] == ["AAAA"]
