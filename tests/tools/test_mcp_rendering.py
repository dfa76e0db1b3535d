"""Answers of MCP servers as text for a model."""

import json

import mcp_types as types
import pytest

from longboat.tools.mcp.rendering import HEAD, TAIL, call_answer, prompt_text, resource_text, truncate_middle
from longboat.tools.mcp.state import Answer


def text(value: str) -> types.TextContent:
    return types.TextContent(text=value)


def test_every_kind_of_content_is_told() -> None:
    blob = types.BlobResourceContents(uri="x://blob", mime_type="application/zip", blob="AAAA")
    result = types.CallToolResult(
        content=[
            text("one"),
            types.AudioContent(data="AAAAAAAA", mime_type="audio/wav"),
            types.ResourceLink(uri="x://link", name="link", description="more of it"),
            types.EmbeddedResource(resource=types.TextResourceContents(uri="x://text", text="embedded")),
            types.EmbeddedResource(resource=blob),
        ]
    )
    assert call_answer(result).text.splitlines() == [
        "one",
        "[audio, audio/wav, 6 bytes; cannot be shown as text]",
        "[resource x://link: link (more of it)]",
        "embedded",
        "[resource x://blob, application/zip, 3 bytes; cannot be shown as text]",
    ]


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (["plain"], {"result": "plain"}),
        (['{"a": 1}'], {"a": 1}),
        (["[1, 2]"], {"result": [1, 2]}),
        (["1", "2"], {"result": [1, 2]}),
    ],
)
def test_structured_content_that_repeats_the_text_is_told_once(texts: list[str], structured: object) -> None:
    result = types.CallToolResult(content=[text(value) for value in texts], structured_content=structured)
    assert call_answer(result).text == "\n".join(texts)


def test_structured_content_that_says_more_is_added() -> None:
    result = types.CallToolResult(content=[text("2 found")], structured_content={"found": ["a", "b"]})
    said, rest = call_answer(result).text.split("\n", 1)
    assert (said, json.loads(rest)) == ("2 found", {"found": ["a", "b"]})


def test_an_error_and_an_empty_answer_are_told() -> None:
    assert call_answer(types.CallToolResult(content=[], is_error=True)) == Answer(text="[no content]", is_error=True)


def test_a_long_answer_keeps_its_head_and_its_tail() -> None:
    shown = truncate_middle("a" * HEAD + "b" * 1_000 + "c" * TAIL)
    assert shown == f"{'a' * HEAD}\n[… 1,000 characters left out; request less at a time …]\n{'c' * TAIL}"
    assert truncate_middle("a" * (HEAD + TAIL)) == "a" * (HEAD + TAIL)


def test_a_prompt_is_one_text() -> None:
    result = types.GetPromptResult(
        messages=[
            types.PromptMessage(role="user", content=text("Look at this.")),
            types.PromptMessage(role="assistant", content=text("I see.")),
        ]
    )
    assert prompt_text(result) == "Look at this.\n\n[assistant] I see."


def test_an_empty_resource_says_so() -> None:
    assert resource_text(types.ReadResourceResult(contents=[])) == "[empty]"
