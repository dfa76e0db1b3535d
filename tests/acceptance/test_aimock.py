"""Model servers in the shapes of OpenAI, Ollama and Anthropic, as somebody else understands them: aimock, from npm.
`make mocks` installs it; without it these tests are skipped.
"""

import json
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from checks import check_ends, check_transcript
from mock_servers import free_port, started
from running_app import RunningApp, configure, launch

from longboat.models.running_servers import OLLAMA_WINDOW, USUAL, look
from longboat.wire.models import AgentEventType, Message, Outcome, ReasoningPart, Role, ToolCallPart, ToolResultPart
from parts import how, missing

PROGRAM = Path(__file__).parents[2] / ".mocks-npm" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(missing("npm"), reason=f"{how('npm')}, then: make mocks"),
    pytest.mark.skipif(not PROGRAM.exists(), reason="aimock is not installed: make mocks"),
]

PROMPT = "What is in the cargo list?"
ANSWER = "There are forty barrels of tar and a crate of oranges in it, and nothing else worth mentioning."
THOUGHT = "The list is a file, and files can be read."
CALL = {"name": "view", "arguments": {"path": "cargo.txt"}, "id": "call_cargo"}
PATHS = {"openai-compatible": "/v1", "openai": "/v1", "anthropic-compatible": ""}
"""Of the APIs at the mock."""
OLLAMA, _ = USUAL


@dataclass(frozen=True)
class Mock:
    http: httpx2.Client

    @property
    def url(self) -> str:
        return f"{self.http.base_url}".rstrip("/")

    def answer(self, *fixtures: dict[str, Any]) -> None:
        """The first that matches a request answers it."""
        assert self.http.post("/__aimock/reset").status_code == 200
        added = self.http.post("/__aimock/fixtures", json={"fixtures": fixtures})
        assert added.status_code == 200, added.text

    def asked(self) -> list[dict[str, Any]]:
        """The bodies of the requests so far."""
        return [entry["body"] for entry in self.http.get("/__aimock/journal").json()]


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mock]:
    node, port = shutil.which("node"), free_port()
    assert node is not None, "npm comes with it"
    nothing = tmp_path_factory.mktemp("aimock") / "none.json"
    nothing.write_text('{"fixtures": []}')
    command = [node, str(PROGRAM), "--port", str(port), "--fixtures", str(nothing), "--log-level", "warn"]
    with started(command, port=port, health="/health") as http:
        yield Mock(http)


@asynccontextmanager
async def running_on(mock: Mock, tmp_path: Path, kind: str = "openai-compatible") -> AsyncIterator[RunningApp]:
    section = {"type": kind, "base_url": mock.url + PATHS[kind], "api_key": "$LB_TEST_KEY", "models": [{"id": "m"}]}
    configure(providers={"mock": section}, models={"large": "mock/m"})
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "cargo.txt").write_text("40 barrels of tar, 1 crate of oranges")
    async with launch(tmp_path, None) as running:
        yield running


def fixture(response: dict[str, Any], **match: Any) -> dict[str, Any]:
    return {"match": {"userMessage": PROMPT, **match}, "response": response}


def refuse(status: int, message: str) -> dict[str, Any]:
    return fixture({"error": {"message": message, "type": "some_error"}, "status": status, "retryAfter": 0})


def parts_of(messages: list[Message], kind: type) -> list[Any]:
    return [part for message in messages for part in message.parts if isinstance(part, kind)]


@pytest.mark.parametrize("kind", PATHS)
async def test_a_tool_is_called_and_the_answer_streams_in_every_api(tmp_path: Path, mock: Mock, kind: str) -> None:
    async with running_on(mock, tmp_path, kind) as running:
        mock.answer(fixture({"toolCalls": [CALL]}, hasToolResult=False), fixture({"content": ANSWER}))
        await running.submit(PROMPT, "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text, complete.error) == (Outcome.END_TURN, ANSWER, "")
        messages = list(await running.messages())
        check_transcript(messages)
        (call,), (result,) = parts_of(messages, ToolCallPart), parts_of(messages, ToolResultPart)
        assert (call.name, json.loads(call.input)) == ("view", {"path": "cargo.txt"})
        assert "40 barrels of tar" in result.content
        assert len(mock.asked()) == 2
        await check_ends(running)


async def test_reasoning_is_shown_and_goes_back_with_the_result_of_a_call(tmp_path: Path, mock: Mock) -> None:
    async with running_on(mock, tmp_path) as running:
        mock.answer(
            fixture({"toolCalls": [CALL], "reasoning": THOUGHT}, hasToolResult=False),
            fixture({"content": ANSWER, "reasoning": "Now I know."}),
        )
        await running.submit(PROMPT, "r1")
        assert (await running.completed("r1")).text == ANSWER
        thoughts = parts_of(list(await running.messages()), ReasoningPart)
        assert [part.text for part in thoughts] == [THOUGHT, "Now I know."]
        called = next(each for each in mock.asked()[1]["messages"] if each["role"] == "assistant")
        assert called["reasoning_content"] == THOUGHT


@pytest.mark.parametrize(
    ("refusal", "requests", "said"),
    [
        (refuse(400, "The field is wrong."), 1, "The field is wrong."),
        (refuse(401, "Incorrect API key provided."), 1, "Check providers.mock.api_key"),
        (refuse(404, "The model `m` does not exist."), 1, "Check the model id 'm'"),
        (refuse(429, "Rate limit reached."), 3, "Rate limit reached."),
        (refuse(503, "Overloaded."), 3, "Overloaded."),
    ],
    ids=["bad-request", "key", "model", "limited", "outage"],
)
async def test_a_refusal_ends_the_run_with_the_servers_words(
    tmp_path: Path, mock: Mock, refusal: dict[str, Any], requests: int, said: str
) -> None:
    async with running_on(mock, tmp_path) as running:
        mock.answer(refusal)
        await running.submit(PROMPT, "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, said in complete.error) == (Outcome.ERROR, True), complete.error
        assert len(mock.asked()) == requests
        await check_ends(running)


async def test_where_tools_are_refused_the_model_works_in_steps(tmp_path: Path, mock: Mock) -> None:
    call = {"thought": THOUGHT, "calls": [{"tool": "view", "args": {"path": "cargo.txt"}}]}
    answer = {"thought": "Now I know.", "answer": ANSWER}
    steps = {"responseFormat": "json_schema"}
    async with running_on(mock, tmp_path) as running:
        mock.answer(
            {"match": {"userMessage": "40 barrels", **steps}, "response": {"content": json.dumps(answer)}},
            fixture({"content": json.dumps(call)}, **steps),
            refuse(400, "registry.ollama.ai/library/m does not support tools"),
        )
        await running.submit(PROMPT, "r1")
        assert (await running.completed("r1")).text == ANSWER
        messages = list(await running.messages())
        check_transcript(messages)
        assert [part.name for part in parts_of(messages, ToolCallPart)] == ["view"]
        assert ["tools" in body for body in mock.asked()] == [True, False, False]
        notices = [event for event in running.watcher.of("agent_event") if event.type is AgentEventType.NOTICE]
        (told,) = [event.message for event in notices]
        assert told.startswith("The server does not support tools for mock/m.")


async def test_an_ollama_is_found_by_its_list_and_answers(tmp_path: Path, mock: Mock) -> None:
    port = int(mock.url.rpartition(":")[2])
    found = look([replace(OLLAMA, port=port)], within_s=5)
    assert found is not None
    name, section = found
    assert (name, section.base_url) == ("ollama", f"{mock.url}/v1")
    assert {entry.context_window for entry in section.models} == {OLLAMA_WINDOW}
    model = section.models[0].id
    configure(providers={"ollama": {"type": section.type, "base_url": section.base_url}}, models={"detect": False})
    async with launch(tmp_path, None) as running:
        mock.answer(fixture({"content": ANSWER, "reasoning": THOUGHT}, model=model))
        await running.submit(PROMPT, "r1", model=f"ollama/{model}")
        assert (await running.completed("r1")).text == ANSWER
        (message,) = [each for each in await running.messages() if each.role is Role.ASSISTANT]
        assert (message.provider, message.model) == ("ollama", model)
