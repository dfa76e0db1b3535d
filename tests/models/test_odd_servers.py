"""What other people's servers do that OpenAI's does not. Each case names a server that does it."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from model_events import answer_events

from longboat import __version__
from longboat.errors import ModelError
from longboat.models.openai_chat import OpenAIChatModel
from longboat.models.openai_refusal import Addressee, read_body, refusal
from longboat.models.openai_stream import StreamReader
from longboat.models.protocol import (
    Finished,
    ModelEvent,
    ModelRequest,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.testing import Raw, Refuse, Say
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.models import Message, Part, Role, TextPart, ToolCallPart, ToolResultPart

TO = Addressee(provider="mine", model="m", url="http://here/v1", has_key=True)


def message(role: Role, *parts: Part) -> Message:
    return Message(id="i", session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="")


PROMPT = message(Role.USER, TextPart(text="hi"))
CALL = message(Role.ASSISTANT, ToolCallPart(id="one", name="ls", input="{}", finished=True))
RESULT = message(Role.TOOL, ToolResultPart(tool_call_id="one", content='"content":null'))


@pytest.fixture
async def endpoint() -> AsyncIterator[ScriptedEndpoint]:
    async with ScriptedEndpoint() as served:
        yield served


async def ask(base_url: str, *messages: Message, system: str = "", **settings: Any) -> list[ModelEvent]:
    model = OpenAIChatModel(provider="mine", name="m", base_url=base_url, **settings)
    try:
        async with model.stream(ModelRequest(system=system, messages=messages or (PROMPT,))) as events:
            return [event async for event in answer_events(events)]
    finally:
        await model.aclose()


# What comes back


def read(*chunks: Any, kind: str = "data") -> list[ModelEvent]:
    reader = StreamReader(TO)
    lines = b"".join(f"{kind}: ".encode() + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks)
    return [*reader.feed(lines), *reader.finish()]


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": finish_reason}]}


def test_text_generation_inference_sends_a_call_without_a_list() -> None:
    def call(name: str | None, arguments: str) -> dict[str, Any]:
        function = {"name": name, "arguments": arguments}
        return delta(tool_calls={"index": 0, "id": "", "type": "function", "function": function})

    _, *rest = read(call("ls", '{"pa'), call(None, 'th":1}'), delta("eos_token"))
    assert rest == [ToolCallDelta(0, '{"pa'), ToolCallDelta(0, 'th":1}'), Finished(StopReason.TOOL_USE)]


def test_a_call_id_may_be_a_number() -> None:
    start, *_ = read(delta("stop", tool_calls=[{"id": 7, "function": {"name": "ls", "arguments": "{}"}}]))
    assert start == ToolCallStart(0, "7", "ls")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param("model_length", StopReason.MAX_TOKENS, id="Mistral"),
        pytest.param("model_context_window_exceeded", StopReason.MAX_TOKENS, id="Z.ai"),
        pytest.param("MAX_TOKENS", StopReason.MAX_TOKENS, id="gateways to Gemini"),
        pytest.param("sensitive", StopReason.CONTENT_FILTER, id="Z.ai's filter"),
        pytest.param("content_filter: RECITATION", StopReason.CONTENT_FILTER, id="Gemini"),
        pytest.param("SAFETY", StopReason.CONTENT_FILTER, id="gateways to Gemini's filter"),
        pytest.param("eos_token", StopReason.END_TURN, id="text-generation-inference"),
    ],
)
def test_other_words_for_the_end_of_an_answer(said: str, reason: StopReason) -> None:
    assert read(delta(said, content="a")) == [TextDelta("a"), Finished(reason)]


@pytest.mark.parametrize("said", ["insufficient_system_resource", "network_error", "abort", "error"])
def test_an_answer_that_the_server_gave_up_is_asked_for_again(said: str) -> None:
    """DeepSeek, Z.ai, SGLang and OpenRouter."""
    with pytest.raises(ModelError, match=f"the answer was complete \\({said}\\)") as caught:
        read(delta(said, content="a"))
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("chunk", "kind", "code"),
    [
        pytest.param({"object": "error", "message": "boom", "code": 400}, "data", "bad_request", id="vLLM"),
        pytest.param({"error": {"message": "boom", "code": 400}}, "error", "bad_request", id="llama.cpp"),
        pytest.param({"code": 400, "message": "boom"}, "error", "bad_request", id="older llama.cpp"),
        pytest.param({"errors": [{"message": "boom"}]}, "data", "server_error", id="Cloudflare"),
    ],
)
def test_errors_in_a_stream_in_other_forms(chunk: Any, kind: str, code: str) -> None:
    with pytest.raises(ModelError, match="boom") as caught:
        read(chunk, kind=kind)
    assert caught.value.code == code


def test_cloudflare_names_its_errors_in_a_list() -> None:
    body = b'{"result":null,"success":false,"errors":[{"code":5006,"message":"Error: Type mismatch"}],"messages":[]}'
    assert refusal(400, read_body(body), TO).message == "mine answered 400: Error: Type mismatch"


@pytest.mark.parametrize("status", [200, 400])
async def test_groq_is_asked_again_if_it_could_not_read_the_models_call(
    endpoint: ScriptedEndpoint, status: int
) -> None:
    said = {
        "error": {"message": "Failed to call a function.", "code": "tool_use_failed", "type": "invalid_request_error"}
    }
    text = msgspec.json.encode(said).decode()
    endpoint.add([Raw(f"data: {text}\n\n")] if status == 200 else [Refuse(400, body=text)])
    with pytest.raises(ModelError, match="Failed to call a function") as caught:
        await ask(endpoint.base_url)
    assert (caught.value.code, caught.value.retryable) == ("server_error", True)


# What is sent


@pytest.mark.parametrize("name", ["User-Agent", "user-agent"])
async def test_requests_name_their_sender_unless_the_configuration_does(endpoint: ScriptedEndpoint, name: str) -> None:
    """Cloudflare and other firewalls refuse requests without a name."""
    await ask(endpoint.base_url)
    await ask(endpoint.base_url, headers={name: "mine"})
    assert [exchange.headers["user-agent"] for exchange in endpoint.requests] == [f"longboat/{__version__}", "mine"]


@pytest.mark.parametrize("ending", ["", "/", "/chat/completions", "/chat/completions/"])
async def test_a_base_url_may_be_that_of_the_chat_itself(endpoint: ScriptedEndpoint, ending: str) -> None:
    await ask(endpoint.base_url + ending)
    assert endpoint.requests[0].path == "/v1/chat/completions"


async def test_a_base_url_may_have_a_query(endpoint: ScriptedEndpoint) -> None:
    """Azure's older addresses end in `?api-version=…`."""
    assert (await ask(f"{endpoint.base_url}/?api-version=2024"))[0] == TextDelta("echo:")


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(Refuse(400, "'stream' is not supported"), id="GPT4All"),
        pytest.param(Refuse(500, "Cannot use tools with stream"), id="older llama.cpp"),
        pytest.param(Refuse(400, "Streaming is not supported for this model"), id="gateways"),
        pytest.param(Refuse(422, "stream must be false"), id="home-made servers"),
    ],
)
async def test_a_server_that_refuses_to_stream_is_asked_without(said: Refuse) -> None:
    async with ScriptedEndpoint() as endpoint:
        endpoint.add([said], [Say("Hello")])
        assert (await ask(endpoint.base_url))[0] == TextDelta("Hello")
        asked, again = (exchange.body for exchange in endpoint.requests)
    assert {"stream", "stream_options"} <= asked.keys()
    assert not {"stream", "stream_options"} & again.keys()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("invalid message content type: <nil>", id="Ollama"),
        pytest.param("Invalid 'content': 'content' field must be a string or an array of objects.", id="LM Studio"),
        pytest.param("Error: oneOf at '/' not met: Type mismatch of '/messages/1/content'", id="Cloudflare"),
        pytest.param("messages.1.content: Input should be a valid string", id="pydantic"),
    ],
)
async def test_a_server_that_wants_text_beside_calls_gets_an_empty_one(endpoint: ScriptedEndpoint, said: str) -> None:
    endpoint.add([Refuse(400, said)], [Say("a")])
    assert (await ask(endpoint.base_url, PROMPT, CALL, RESULT))[0] == TextDelta("a")
    assert [exchange.body["messages"][1]["content"] for exchange in endpoint.requests] == [None, ""]


async def test_a_complaint_about_other_content_is_not_tried_again(endpoint: ScriptedEndpoint) -> None:
    endpoint.add([Refuse(400, "messages.1.content: Input should be a valid string")])
    with pytest.raises(ModelError, match="valid string"):
        await ask(endpoint.base_url, PROMPT, message(Role.USER, TextPart(text='"content":null')))
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("System role not supported", id="Gemma 2"),
        pytest.param("Unsupported value: 'messages[0].role' does not support 'system' with this model.", id="o1-mini"),
        pytest.param("Conversation roles must alternate user/assistant/user/assistant/...", id="Mistral 7B"),
    ],
)
async def test_a_model_without_a_system_prompt_gets_it_with_the_first_prompt(
    endpoint: ScriptedEndpoint, said: str
) -> None:
    endpoint.add([Refuse(400, said)], [Say("a")])
    assert (await ask(endpoint.base_url, PROMPT, CALL, RESULT, system="Be brief."))[0] == TextDelta("a")
    first, second = (exchange.body["messages"] for exchange in endpoint.requests)
    assert [each["role"] for each in first] == ["system", "user", "assistant", "tool"]
    assert second == [{"role": "user", "content": "Be brief.\n\nhi"}, *first[2:]]
