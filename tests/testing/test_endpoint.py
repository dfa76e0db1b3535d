"""The scripted OpenAI-compatible server, asked with a plain HTTP client."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from longboat.errors import ModelError
from longboat.models.protocol import StopReason
from longboat.testing import (
    Break,
    CallTool,
    Fail,
    Gate,
    Hang,
    HttpStep,
    Pause,
    Raw,
    Refuse,
    Say,
    Stop,
    Think,
    Use,
    encode_script,
    words,
)
from longboat.testing.endpoint import ScriptedEndpoint


@pytest.fixture
async def endpoint() -> AsyncIterator[ScriptedEndpoint]:
    async with ScriptedEndpoint() as served:
        yield served


@pytest.fixture
async def http(endpoint: ScriptedEndpoint) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=endpoint.url) as client:
        yield client


def ask(prompt: str) -> dict[str, Any]:
    return {"model": "m", "stream": True, "messages": [{"role": "user", "content": prompt}]}


async def complete(http: httpx2.AsyncClient, prompt: str = "hi") -> httpx2.Response:
    return await http.post("/v1/chat/completions", json=ask(prompt))


def chunks_of(response: httpx2.Response) -> list[Any]:
    assert response.status_code == 200
    datas = [line.removeprefix("data: ") for line in response.text.splitlines() if line]
    return [data if data == "[DONE]" else json.loads(data) for data in datas]


def deltas_of(response: httpx2.Response) -> list[dict[str, Any]]:
    chunks = [chunk for chunk in chunks_of(response) if chunk != "[DONE]" and chunk.get("choices")]
    return [chunk["choices"][0]["delta"] for chunk in chunks]


def text_of(response: httpx2.Response) -> str:
    return "".join(delta.get("content", "") for delta in deltas_of(response))


async def test_without_a_script_it_echoes_word_by_word(http: httpx2.AsyncClient) -> None:
    response = await complete(http, "two words")
    assert [delta.get("content") for delta in deltas_of(response)] == ["echo:", " two", " words", None]
    *_, end, usage, done = chunks_of(response)
    assert end["choices"][0]["finish_reason"] == "stop"
    assert usage["usage"] == {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    assert done == "[DONE]"


async def test_the_queue_answers_in_the_order_of_requests(endpoint: ScriptedEndpoint, http: httpx2.AsyncClient) -> None:
    endpoint.add([Say("one")], [Think("hm"), Say("two"), Use(input_tokens=9), Stop(StopReason.MAX_TOKENS)])
    assert text_of(await complete(http)) == "one"
    second = await complete(http)
    assert deltas_of(second) == [{"reasoning_content": "hm"}, {"content": "two"}, {}]
    assert chunks_of(second)[-3]["choices"][0]["finish_reason"] == "length"
    assert chunks_of(second)[-2]["usage"]["prompt_tokens"] == 9
    assert text_of(await complete(http, "x")) == "echo: x"


async def test_a_marker_in_the_last_prompt_selects_a_script(
    endpoint: ScriptedEndpoint, http: httpx2.AsyncClient
) -> None:
    endpoint.add([Say("queue")])
    endpoint.add([Say("a1")], [Say("a2")], name="a")
    endpoint.add([Say("b")], name="b", repeat=True)
    assert text_of(await complete(http, "do [[a]]")) == "a1"
    assert text_of(await complete(http, "[[b]]")) == "b"
    assert text_of(await complete(http, "[[b]]")) == "b"
    assert text_of(await complete(http, "[[b]] and then [[a]]")) == "a2"
    assert text_of(await complete(http, "none")) == "queue"
    exhausted = await complete(http, "[[a]]")
    assert (exhausted.status_code, exhausted.json()["error"]["message"]) == (
        400,
        "script 'a': all 2 steps of the script are used up",
    )
    unknown = await complete(http, "[[c]]")
    assert (unknown.status_code, unknown.json()["error"]["message"]) == (
        400,
        "no script 'c' was given to the scripted endpoint",
    )


async def test_a_burst_sends_so_many_chunks(http: httpx2.AsyncClient) -> None:
    for marker in ("[[burst:1000]]", "[[burst:1000:1]]"):
        response = await complete(http, marker)
        assert text_of(response) == "".join(f"word{number} " for number in range(1000))
        assert chunks_of(response)[-3]["choices"][0]["finish_reason"] == "stop"


async def test_tool_calls_come_in_pieces(endpoint: ScriptedEndpoint, http: httpx2.AsyncClient) -> None:
    endpoint.add([CallTool("look", {"at": 1})])
    response = await complete(http)
    first, *rest = [call for delta in deltas_of(response) for call in delta.get("tool_calls", [])]
    assert first == {
        "index": 0,
        "id": "call_1_0",
        "type": "function",
        "function": {"name": "look", "arguments": ""},
    }
    assert "".join(call["function"]["arguments"] for call in rest) == '{"at":1}'
    assert chunks_of(response)[-3]["choices"][0]["finish_reason"] == "tool_calls"


async def test_refusals_carry_status_code_and_retry_after(endpoint: ScriptedEndpoint, http: httpx2.AsyncClient) -> None:
    endpoint.add([Refuse(429, message="slow", code="rate", retry_after="7")], [Refuse(502, body="<html>")])
    limited = await complete(http)
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "7")
    assert limited.json() == {"error": {"message": "slow", "type": "scripted_error", "code": "rate"}}
    bad = await complete(http)
    assert (bad.status_code, bad.text) == (502, "<html>")


async def test_faults_inside_the_stream(endpoint: ScriptedEndpoint, http: httpx2.AsyncClient) -> None:
    endpoint.add(
        [Say("a"), Break()],
        [Say("a"), Break(drop=True)],
        [Raw("data: {garbage\n\n"), Break()],
        [Say("a"), Fail(ModelError("overloaded", code="503"))],
    )
    assert deltas_of(await complete(http)) == [{"content": "a"}]
    with pytest.raises(httpx2.RemoteProtocolError):
        await complete(http)
    assert (await complete(http)).text == "data: {garbage\n\n"
    assert chunks_of(await complete(http))[-1] == {"error": {"message": "overloaded", "code": "503"}}
    assert [exchange.state for exchange in endpoint.requests] == ["answered"] * 4


async def test_a_hang_lasts_until_the_client_leaves(endpoint: ScriptedEndpoint, http: httpx2.AsyncClient) -> None:
    endpoint.add([Say("a"), Hang()])
    async with http.stream("POST", "/v1/chat/completions", json=ask("hi")) as response:
        assert await anext(response.aiter_lines())
        assert endpoint.requests[0].state == "open"
    await endpoint.requests[0].ended.wait()
    assert endpoint.requests[0].state == "abandoned"


async def test_leaving_with_open_answers_is_quick() -> None:
    async with httpx2.AsyncClient() as client:
        async with ScriptedEndpoint() as endpoint:
            endpoint.add([Hang()])
            asking = asyncio.create_task(client.post(f"{endpoint.base_url}/chat/completions", json=ask("hi")))
            await endpoint.requests.wait(1)
        assert (await asking).status_code == 500


async def test_requests_are_recorded(endpoint: ScriptedEndpoint, http: httpx2.AsyncClient) -> None:
    await http.post("/v1/chat/completions", json=ask("hi"), headers={"Authorization": "Bearer k"})
    (exchange,) = endpoint.requests
    assert (exchange.path, exchange.body, exchange.prompt) == ("/v1/chat/completions", ask("hi"), "hi")
    assert exchange.headers["authorization"] == "Bearer k"


async def test_a_request_that_does_not_stream_gets_one_document(
    endpoint: ScriptedEndpoint, http: httpx2.AsyncClient
) -> None:
    endpoint.add(
        [Think("h"), Think("m"), Say("Hel"), Say("lo"), CallTool("ls", {"path": "."}, call_id="one"), Use(7, 3)]
    )
    endpoint.add([Say("a"), Fail(ModelError("boom", code="server_error"))])
    answer, failure = [await http.post("/v1/chat/completions", json=ask("hi") | {"stream": False}) for _ in range(2)]
    (choice,) = answer.json()["choices"]
    function = {"name": "ls", "arguments": '{"path":"."}'}
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "Hello",
        "reasoning_content": "hm",
        "tool_calls": [{"id": "one", "type": "function", "function": function}],
    }
    assert answer.json()["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert (failure.status_code, failure.json()["error"]["message"]) == (500, "boom")


async def test_what_it_does_not_know_is_refused(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/v1/models")).json()["data"][0]["id"] == "scripted"
    assert (await http.get("/v1/other")).status_code == 404
    assert (await http.get("/control/other")).status_code == 404
    bad = await http.post("/control/script", content=b'{"steps": [[{"type": "shout"}]]}')
    assert bad.status_code == 400
    assert "shout" in bad.json()["error"]["message"]


async def listening(*arguments: str) -> tuple[asyncio.subprocess.Process, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "longboat.testing.endpoint",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert line.startswith("listening on http://127.0.0.1:")
    return process, line.split()[-1].removesuffix("/v1")


async def test_another_process_is_scripted_gated_and_read_over_http(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_bytes(b"[" + encode_script([[Say("from the file")]]) + b"]")
    process, url = await listening("--script", str(script))
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        assert text_of(await complete(http)) == "from the file"

        steps: list[HttpStep] = [[Say("a"), Pause(Gate("middle")), Say("b")], [Fail(ModelError("no", code="x"))]]
        assert (await http.post("/control/script", content=encode_script(steps, name="gated"))).status_code == 200
        asking = asyncio.create_task(complete(http, "[[gated]]"))
        reached = (await http.get("/control/gate/middle?wait=60")).json()
        assert reached == {"name": "middle", "reached": True, "open": False}
        listed = (await http.get("/control/requests?count=2&wait=60")).json()["items"]
        assert [(item["state"], item["body"]["messages"][0]["content"]) for item in listed] == [
            ("answered", "hi"),
            ("open", "[[gated]]"),
        ]
        await http.post("/control/gate/middle")
        assert text_of(await asking) == "ab"
        assert (await http.get("/control/requests/1?wait=60")).json()["state"] == "answered"
        assert chunks_of(await complete(http, "[[gated]]")) == [{"error": {"message": "no", "code": "x"}}]

        await http.post("/control/reset")
        assert (await http.get("/control/requests")).json() == {"items": []}
        assert (await http.get("/control/gate/middle")).json()["open"] is False
    process.terminate()
    _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")


async def test_a_bad_script_file_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("{}")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "longboat.testing.endpoint", "--script", str(script), stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == 2
    assert f"{script}: Expected `array`, got `object`" in errors.decode()


def test_words_add_up_to_their_text() -> None:
    text = " a  b\nc "
    assert "".join(item.text for item in words(text)) == text
