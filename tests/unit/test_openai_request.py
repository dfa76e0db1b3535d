"""Our transcript on the OpenAI chat wire."""

import base64
from typing import Any

import msgspec

from longboat.core.tool import ToolSpec
from longboat.models.openai_request import encode_request
from longboat.models.seam import ModelRequest
from longboat.wire.models import (
    FilePart,
    FinishPart,
    FinishReason,
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
    body = msgspec.json.decode(encode_request(request, model="m", **options))
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


def test_reasoning_goes_back_only_where_the_server_wants_it() -> None:
    answer = message(Role.ASSISTANT, ReasoningPart(text="hm"), TextPart(text="a"))
    request = ModelRequest(system="", messages=(answer,))
    assert sent(request)["messages"] == [{"role": "assistant", "content": "a"}]
    assert sent(request, send_reasoning=True)["messages"] == [
        {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    ]


def test_a_tool_call_nested_without_end_does_not_spoil_every_later_request_t3() -> None:
    nested = '{"a":' * 5000 + "1" + "}" * 5000
    request = ModelRequest(
        system="", messages=(message(Role.ASSISTANT, ToolCallPart(id="1", name="look", input=nested)),)
    )
    assert sent(request)["messages"][0]["tool_calls"][0]["function"] == {"name": "look", "arguments": "{}"}
