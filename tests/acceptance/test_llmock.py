"""Fail over against a model server that somebody else wrote: LLMock breaks its answers in the ways of real providers,
and judges how its client took that. `make mocks` installs it; without it these tests are skipped.
"""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from checks import check_ends, check_transcript
from mock_servers import free_port, started
from running_app import RunningApp, configure, launch

from longboat.wire.models import Outcome, Role

ROOT = Path(__file__).parents[2]
PROGRAM = shutil.which("llmock", path=os.pathsep.join((str(ROOT / ".venv-mocks" / "bin"), os.environ["PATH"])))

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(PROGRAM is None, reason="LLMock is not installed: make mocks"),
]

MODEL = {"id": "gpt-4o", "tools": "native"}
"""Its token counts leave tools out, which looks as if the server did not tell the model of them."""
ANSWER = "Twenty words are enough to be cut in the middle, and so this answer has at least as many as that."


@dataclass(frozen=True)
class Mock:
    http: httpx2.Client

    @property
    def base_url(self) -> str:
        return f"{self.http.base_url}".rstrip("/") + "/v1"

    def behave(self, *behaviors: dict[str, Any]) -> None:
        assert self.http.post("/_llmock/scenario", json={"behaviors": behaviors}).status_code == 201

    def attempts(self) -> int:
        return int(self.http.get("/_llmock/verdict").json()["attempts"])

    def faults_of_client(self) -> list[str]:
        """What LLMock says that we did wrong. It does not see that the last retry went to the other server."""
        findings = self.http.get("/_llmock/verdict").json()["findings"]
        errors = [each for each in findings if each["severity"] == "error"]
        return [f"{each['code']}: {each['title']}" for each in errors if each["code"] != "truncated_stream_accepted"]


@contextmanager
def mock_server(*options: str) -> Iterator[Mock]:
    assert PROGRAM is not None
    port = free_port()
    command = [PROGRAM, "serve", "--port", str(port), "--tool-mode", "off", "--log-level", "error", *options]
    with started(command, port=port, health="/_llmock/verdict") as http:
        yield Mock(http)


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Mock, Mock]]:
    with ExitStack() as open_servers:
        yield open_servers.enter_context(mock_server()), open_servers.enter_context(mock_server())


@asynccontextmanager
async def running_on(first: Mock, second: Mock, tmp_path: Path) -> AsyncIterator[RunningApp]:
    def section(mock: Mock) -> dict[str, Any]:
        return {"type": "openai-compatible", "base_url": mock.base_url, "models": [MODEL]}

    for mock in (first, second):
        mock.http.post("/_llmock/reset")
    providers = {"first": section(first), "second": section(second)}
    configure(providers=providers, models={"large": ["first/gpt-4o", "second/gpt-4o"]})
    # The waits are short and not 0: LLMock wants to see them.
    async with launch(tmp_path, None, config='{"titles": false, "retry": {"base_s": 0.05, "attempts": 3}}') as running:
        yield running


@pytest.mark.parametrize(
    ("fault", "attempts"),
    [
        ({"type": "fail", "status": 503}, 3),
        ({"type": "fail", "status": 429, "retry_after": 600}, 1),
        ({"type": "stream_fault", "kind": "disconnect", "after_chunks": 3}, 3),
        ({"type": "stream_fault", "kind": "truncate", "after_chunks": 3}, 3),
        ({"type": "stream_fault", "kind": "malformed", "after_chunks": 3}, 3),
    ],
    ids=["outage", "limited-for-long", "disconnect", "truncate", "malformed"],
)
async def test_the_second_provider_continues_and_the_first_has_no_complaint(
    tmp_path: Path, servers: tuple[Mock, Mock], fault: dict[str, Any], attempts: int
) -> None:
    first, second = servers
    async with running_on(first, second, tmp_path) as running:
        first.behave({"type": "reply", "text": ANSWER, "times": None}, {**fault, "times": None})
        second.behave({"type": "reply", "text": ANSWER})
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text, complete.error) == (Outcome.END_TURN, ANSWER, "")
        messages = list(await running.messages())
        check_transcript(messages)
        assert [message.provider for message in messages if message.role is Role.ASSISTANT] == ["second"]
        assert (first.attempts(), second.attempts()) == (attempts, 1)
        assert first.faults_of_client() + second.faults_of_client() == []
        await check_ends(running)


async def test_a_short_limit_is_waited_for(tmp_path: Path, servers: tuple[Mock, Mock]) -> None:
    first, second = servers
    async with running_on(first, second, tmp_path) as running:
        first.behave({"type": "fail", "status": 429, "retry_after": 0.3, "times": 2}, {"type": "reply", "text": ANSWER})
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == ANSWER
        assert (first.attempts(), second.attempts()) == (3, 0)
        assert first.faults_of_client() == []


async def test_a_bad_request_is_not_sent_around(tmp_path: Path, servers: tuple[Mock, Mock]) -> None:
    first, second = servers
    async with running_on(first, second, tmp_path) as running:
        first.behave({"type": "fail", "status": 400})
        await running.submit("go", "r1")
        assert (await running.completed("r1")).outcome is Outcome.ERROR
        assert (first.attempts(), second.attempts()) == (1, 0)


async def test_in_a_storm_every_turn_has_a_whole_answer(tmp_path: Path, servers: tuple[Mock, Mock]) -> None:
    """Whatever breaks at random at the first provider, the second one makes good."""
    storm = ("--error-rate", "503=0.3", "--error-rate", "429=0.2", "--response-style", "varied")
    streams = ("--stream-fault", "truncate=0.3", "--stream-fault", "disconnect=0.2")
    with mock_server(*storm, *streams) as first:
        second = servers[1]
        async with running_on(first, second, tmp_path) as running:
            for number in range(12):
                await running.submit(f"prompt {number}", f"r{number}")
                complete = await running.completed(f"r{number}")
                assert (complete.outcome, complete.error) == (Outcome.END_TURN, "")
                assert complete.text
            check_transcript(list(await running.messages()))
            assert first.faults_of_client() + second.faults_of_client() == []
            await check_ends(running)
