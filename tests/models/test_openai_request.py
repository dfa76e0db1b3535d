"""Our transcript on the OpenAI chat wire."""

import base64
from typing import Any

import msgspec
import pytest

from longboat.core.tool import ToolSpec
from longboat.models.openai_request import Dialect, encode_request
from longboat.models.protocol import ModelRequest
from longboat.wire.models import (
    FilePart,
    FinishPart,
    FinishReason,
    Image,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def message(role: Role, *parts: Part) -> Message:
    return Message(id="i", session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="")


def sent(request: ModelRequest, **options: Any) -> dict[str, Any]:
    body = msgspec.json.decode(encode_request(request, model="m", dialect=Dialect(**options)))
    assert isinstance(body, dict)
    return body


def test_a_whole_transcript_on_the_wire() -> None:
    look = ToolSpec(name="look", description="Looks.", schema={"type": "object", "properties": {}})
    request = ModelRequest(
        system="Be brief.",
        messages=(
            message(
                Role.USER,
                TextPart(text="see"),
                FilePart(name="a.txt", media_type="text/plain", text="A"),
                FilePart(name="b.md", media_type="text/markdown", data=base64.b64encode("Ö".encode()).decode()),
                FilePart(name="c.bin", media_type="application/x-c", data=base64.b64encode(b"\xff").decode()),
            ),
            message(
                Role.ASSISTANT,
                ReasoningPart(text="hm"),
                TextPart(text="I look."),
                ToolCallPart(id="1", name="look", input='{"at":1}', finished=True),
                ToolCallPart(id="2", name="look", input="", finished=True),
                ToolCallPart(id="3", name="look", input='{"at', finished=False),
            ),
            message(
                Role.TOOL,
                ToolResultPart(tool_call_id="1", content="found"),
                ToolResultPart(tool_call_id="2", content="nothing", is_error=True),
                ToolResultPart(tool_call_id="3", content="canceled", is_error=True),
            ),
            message(Role.ASSISTANT, TextPart(text="Done."), FinishPart(reason=FinishReason.END_TURN)),
        ),
        tools=(look,),
        max_output_tokens=50,
    )

    def call(call_id: str, arguments: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}

    files = '<file name="a.txt">\nA\n</file>\n\n<file name="b.md">\nÖ\n</file>'
    note = "[The file c.bin (application/x-c) cannot be shown to this model.]"
    assert sent(request, max_output_tokens=40) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": f"see\n\n{files}\n\n{note}"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [call("1", '{"at":1}'), call("2", "{}"), call("3", "{}")],
            },
            {"role": "tool", "tool_call_id": "1", "content": "found"},
            {"role": "tool", "tool_call_id": "2", "content": "Error: nothing"},
            {"role": "tool", "tool_call_id": "3", "content": "Error: canceled"},
            {"role": "assistant", "content": "Done."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 40,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Looks.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
    }


def test_images_go_as_data_urls() -> None:
    request = ModelRequest(
        system="",
        messages=(message(Role.USER, TextPart(text="see"), FilePart(name="a", media_type="image/png", data="QQ==")),),
    )
    assert sent(request)["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
            ],
        }
    ]


def test_prompts_around_a_canceled_answer_go_as_one_t2() -> None:
    """T2 leaves an assistant message without text: servers refuse it, and templates refuse two users in a row."""
    canceled = message(Role.ASSISTANT, FinishPart(reason=FinishReason.CANCELED))
    first, second = message(Role.USER, TextPart(text="a")), message(Role.USER, TextPart(text="b"))
    request = ModelRequest(system="", messages=(first, canceled, second))
    assert sent(request)["messages"] == [{"role": "user", "content": "a\n\nb"}]


FORM = '{"field":"reasoning_content"}'


def thinking(text: str, *, signature: str | None = FORM) -> Message:
    return message(Role.ASSISTANT, ReasoningPart(text="hm", signature=signature), TextPart(text=text))


def test_reasoning_since_the_last_prompt_goes_back_as_it_came() -> None:
    prompt = message(Role.USER, TextPart(text="?"))
    request = ModelRequest(system="", messages=(prompt, thinking("a"), prompt, thinking("b")))
    old, new = sent(request)["messages"][1::2]
    assert old == {"role": "assistant", "content": "a"}
    assert new == {"role": "assistant", "content": "b", "reasoning_content": "hm"}
    assert "hm" not in str(sent(request, send_reasoning="never"))


def test_reasoning_details_go_back_as_they_came() -> None:
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s"}]
    signature = msgspec.json.encode({"field": "reasoning", "details": details}).decode()
    (answer,) = sent(ModelRequest(system="", messages=(thinking("a", signature=signature),)))["messages"]
    assert answer == {"role": "assistant", "content": "a", "reasoning_details": details}


def test_a_server_that_insists_gets_the_field_with_every_answer() -> None:
    prompt = message(Role.USER, TextPart(text="?"))
    plain = message(Role.ASSISTANT, TextPart(text="b"))
    request = ModelRequest(system="", messages=(prompt, thinking("a", signature=None), prompt, plain))
    answers = sent(request, send_reasoning="always")["messages"][1::2]
    assert [answer["reasoning_content"] for answer in answers] == ["hm", ""]


@pytest.mark.parametrize("signature", [None, "opaque", "{broken", '{"id":"x","signature":"y"}'])
def test_reasoning_in_no_form_of_this_wire_stays_here(signature: str | None) -> None:
    request = ModelRequest(system="", messages=(thinking("a", signature=signature),))
    assert sent(request)["messages"] == [{"role": "assistant", "content": "a"}]


def test_a_tool_call_nested_without_end_does_not_spoil_every_later_request_t3() -> None:
    nested = '{"a":' * 5000 + "1" + "}" * 5000
    request = ModelRequest(
        system="", messages=(message(Role.ASSISTANT, ToolCallPart(id="1", name="look", input=nested)),)
    )
    assert sent(request)["messages"][0]["tool_calls"][0]["function"] == {"name": "look", "arguments": "{}"}


def test_an_image_that_a_tool_shows_follows_its_result_a6() -> None:
    """A6: the wire has no images in tool results; they come in a user message, with the next prompt if there is one."""
    request = ModelRequest(
        system="",
        messages=(
            message(Role.ASSISTANT, ToolCallPart(id="c1", name="view", input="{}", finished=True)),
            message(
                Role.TOOL,
                ToolResultPart(
                    tool_call_id="c1", content="a PNG", images=(Image(media_type="image/png", data="QQ=="),)
                ),
            ),
            message(Role.USER, TextPart(text="And?")),
        ),
    )
    assert sent(request)["messages"][1:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "a PNG"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Image from the tool call c1:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
                {"type": "text", "text": "And?"},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("name", "media_type", "data"),
    [("a.tiff", "image/tiff", "/w=="), ("a.pdf", "application/pdf", "JVBERi0xLjc=")],
)
def test_what_this_wire_does_not_take_is_named_instead(name: str, media_type: str, data: str) -> None:
    part = FilePart(name=name, media_type=media_type, data=data)
    request = ModelRequest(system="", messages=(message(Role.USER, part),))
    assert sent(request)["messages"] == [
        {"role": "user", "content": f"[The file {name} ({media_type}) cannot be shown to this model.]"}
    ]


def test_the_effort_is_the_prompts_or_the_models_and_spelled_as_the_server_does_a6() -> None:
    """A6"""
    plain, asked = ModelRequest(system="", messages=()), ModelRequest(system="", messages=(), effort="high")
    assert "reasoning_effort" not in sent(plain)
    assert sent(asked)["reasoning_effort"] == "high"
    assert sent(plain, effort="low")["reasoning_effort"] == "low"
    assert sent(asked, effort="low")["reasoning_effort"] == "high"
    assert sent(asked, nested_effort=True)["reasoning"] == {"effort": "high"}


def test_a_schema_goes_along_unless_it_would_clash_with_tools() -> None:
    schema = {"type": "object"}
    tool = ToolSpec(name="look", description="", schema={"type": "object"})
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    alone = ModelRequest(system="", messages=(), schema=schema)
    beside = ModelRequest(system="", messages=(), schema=schema, tools=(tool,))
    assert sent(alone)["response_format"] == wanted
    assert "response_format" not in sent(beside)
    assert sent(beside, json_schema=True)["response_format"] == wanted


def test_a_command_that_failed_has_a_result_and_no_error() -> None:
    """A red test run is what the model asked for."""
    calls = [ToolCallPart(id=name, name="bash", input="{}", finished=True) for name in ("ran", "denied")]
    results = [
        ToolResultPart(tool_call_id="ran", content="1 failed", is_error=True, command_failed=True),
        ToolResultPart(tool_call_id="denied", content="Denied.", is_error=True),
    ]
    request = ModelRequest(system="", messages=(message(Role.ASSISTANT, *calls), message(Role.TOOL, *results)))
    assert [each["content"] for each in sent(request)["messages"][1:]] == ["1 failed", "Error: Denied."]
