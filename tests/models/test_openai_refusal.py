"""What a refusal means, without any HTTP."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longboat.models.openai_refusal import Addressee, Complaint, read_body, refusal, retry_after

TO = Addressee(provider="mine", model="m", url="http://here/v1", has_key=True)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30.0),
        ("Wed, 21 Oct 2026 07:28:10 GMT", 10.0),
        ("Wed, 21 Oct 2026 07:20:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("-3", None),
        ("", None),
        ("9" * 400, None),
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999999999", None),
        ("Mon, 01 Jan 99999 00:00:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 251_609_819_459.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: float | None) -> None:
    now = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)
    assert retry_after({"retry-after": value}, now=now) == seconds


def test_a_long_complaint_is_cut() -> None:
    error = refusal(400, read_body(b'{"message": "%s"}' % (b"x" * 10_000)), TO)
    assert len(error.message) < 600


@settings(deadline=None)
@given(st.text() | st.from_regex(r"\A(\w+, )?-?\d+[ -]\w+[ -]-?\d+ -?\d+:\d+(:\d+)?( [-+]?\w+)?\Z"))
def test_a_retry_after_of_any_kind_is_a_time_or_nothing(value: str) -> None:
    wait_s = retry_after({"retry-after": value})
    assert wait_s is None or 0 <= wait_s < 1e12


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":' * 5000 + b"1" + b"}" * 5000,
        b'{"message":' + b"[" * 900 + b"]" * 900 + b"}",
        b"[" * 100_000,
        b'{"error":{"message":"\xff"}}',
        b'{"error":{"code":' + b"9" * 5000 + b"}}",
    ],
    ids=["errors", "message", "open lists", "not UTF-8", "a long number"],
)
def test_a_body_that_cannot_be_read_is_a_refusal_still(body: bytes) -> None:
    error = refusal(400, read_body(body), TO)
    assert (error.code, error.retryable) == ("bad_request", False)
    assert len(error.message) < 600


@settings(deadline=None)
@given(st.binary())
def test_any_body_is_read(body: bytes) -> None:
    refusal(400, read_body(body), TO).message.encode()


# Tools

REFUSES_TOOLS = [
    (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (500, "tools param requires --jinja flag"),
    (404, "No endpoints found that support tool use. Try disabling view."),
    (400, "`tool calling` is not supported with this model"),
    (400, "Function calling is not enabled for this model"),
    (400, "This model doesn't support tool use in streaming mode."),
    (400, "Unsupported parameter: 'tools'."),
    (400, "Unrecognized request argument supplied: tools"),
    (422, "The parameter `tools` is not supported."),
    (400, "deepseek-reasoner does not support Function Calling"),
    (400, "litellm.BadRequestError: OllamaException - m does not support tools. Received Model Group=m"),
    (501, "tools param requires --jinja flag"),
]
REFUSES_SOMETHING_ELSE = [
    (400, "Invalid schema for function 'mcp__db__query': 'oneOf' is not supported"),
    (400, "Invalid schema for function 'mcp__db__query': schema must not be empty"),
    (400, "Invalid schema for function 'mcp__a__b': In context=('properties', 'x'), 'minLength' is not permitted."),
    (400, "tools.14.custom.input_schema: JSON schema is not supported"),
    (400, "Unsupported parameter: 'tools[0].function.strict'"),
    (400, "Tools with additionalProperties are not supported"),
    (400, "The model does not support tools with nested schemas"),
    (400, "Tools are not supported together with response_format"),
    (400, "This model does not support parallel tool calls"),
    (400, "Only one tool can be called, parallel tool calls are not supported by this model"),
    (400, "Multiple tools are not supported when parallel_tool_calls is set"),
    (400, "This model only supports single tool-calls at once!"),
    (400, "images in tool messages are not supported"),
    (400, "messages: tool messages are not supported before user"),
    (400, "tool result too long, not allowed"),
    (400, "The model does not support tool_choice=required"),
    (500, "Error calling tool: upstream service not available"),
    (500, "The tool server is not available"),
    (500, "m does not support tools"),
    (503, "tools are not available"),
]


@pytest.mark.parametrize(("status", "said"), REFUSES_TOOLS)
def test_a_server_that_has_no_tools_is_understood(status: int, said: str) -> None:
    error = refusal(status, Complaint(message=said), TO)
    assert (error.code, error.retryable) == ("tools_unsupported", False)


@pytest.mark.parametrize(("status", "said"), REFUSES_SOMETHING_ELSE)
def test_a_refusal_of_one_tool_or_of_anything_about_it_is_no_lack_of_tools(status: int, said: str) -> None:
    error = refusal(status, Complaint(message=said), TO)
    code = "bad_request" if status == 400 else "server_error"
    assert (error.code, error.retryable) == (code, status >= 500)
