"""A LiteLLM proxy between Longboat and a scripted endpoint: it cuts streams anew and wraps errors in words of its own.

By hand: its installation takes about a minute and 750 MB, so `make test` does without, and these tests are skipped
until `make mocks` has installed it.
"""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from checks import check_ends, check_transcript
from mock_servers import free_port, started
from running_app import RunningApp, configure, launch

from longboat.errors import ModelError
from longboat.testing import CallTool, Fail, Refuse, Say, Think, words
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.models import Message, Outcome, ReasoningPart, ToolCallPart, ToolResultPart
from secrecy import SECRETS

PROGRAM = Path(__file__).parents[2] / ".venv-litellm" / "bin" / "litellm"

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(not PROGRAM.exists(), reason="the LiteLLM proxy is not installed: make mocks"),
]

PROMPT = "What is in the cargo list?"
ANSWER = "There are forty barrels of tar in it."
LOOK = CallTool("view", {"path": "cargo.txt"})


UPSTREAM_PORT = free_port()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a proxy whose model `m` is that of the endpoint on `UPSTREAM_PORT`."""
    upstream = {"model": "openai/scripted", "api_base": f"http://127.0.0.1:{UPSTREAM_PORT}/v1", "api_key": "none"}
    config = tmp_path_factory.mktemp("litellm") / "config.yaml"  # JSON is YAML
    settings = {
        "model_list": [{"model_name": "m", "litellm_params": upstream}],
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "router_settings": {"disable_cooldowns": True},  # else it answers for the endpoint after a few errors
    }
    config.write_text(json.dumps(settings))
    port = free_port()
    # Without the second it asks GitHub for prices.
    environ = {"LITELLM_MASTER_KEY": SECRETS["provider key"], "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [str(PROGRAM), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    with started(command, port=port, health="/health/liveliness", within_s=60, environ=environ):
        yield f"http://127.0.0.1:{port}/v1"


@pytest.fixture
async def endpoint() -> AsyncIterator[ScriptedEndpoint]:
    async with ScriptedEndpoint(port=UPSTREAM_PORT) as running:
        yield running


@pytest.fixture
async def running(proxy: str, endpoint: ScriptedEndpoint, tmp_path: Path) -> AsyncIterator[RunningApp]:
    section = {"type": "openai-compatible", "base_url": proxy, "api_key": "$LB_TEST_KEY", "models": [{"id": "m"}]}
    configure(providers={"proxy": section}, models={"large": "proxy/m"})
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "cargo.txt").write_text("40 barrels of tar")
    async with launch(tmp_path, None) as running:
        yield running


def parts_of(messages: list[Message], kind: type) -> list[Any]:
    return [part for message in messages for part in message.parts if isinstance(part, kind)]


async def test_thoughts_calls_and_words_come_through(running: RunningApp, endpoint: ScriptedEndpoint) -> None:
    endpoint.add([Think("A file can be read."), Say("I look."), LOOK], words(ANSWER))
    await running.submit(PROMPT, "r1")
    complete = await running.completed("r1")
    assert (complete.outcome, complete.text, complete.error) == (Outcome.END_TURN, ANSWER, "")
    messages = list(await running.messages())
    check_transcript(messages)
    assert [part.text for part in parts_of(messages, ReasoningPart)] == ["A file can be read."]
    (call,), (result,) = parts_of(messages, ToolCallPart), parts_of(messages, ToolResultPart)
    assert (call.name, json.loads(call.input)) == ("view", {"path": "cargo.txt"})
    assert "40 barrels of tar" in result.content
    await check_ends(running)


@pytest.mark.parametrize(
    ("step", "requests", "said"),
    [
        ([Refuse(400, "The field is wrong.")], 1, "The field is wrong."),
        ([Refuse(401, "Wrong key.", code="invalid_api_key")], 1, "Wrong key."),
        ([Refuse(429, "Slow down.", retry_after="0")], 3, "Slow down."),
        ([Refuse(500, "Out of order.")], 3, "Out of order."),
        ([Refuse(502, body="<html>Bad Gateway</html>")], 3, ""),
        ([Say("Half an ans"), Fail(ModelError("It broke.", retryable=True))], 3, "It broke."),
    ],
    ids=["bad-request", "key", "limited", "outage", "page", "broken-stream"],
)
async def test_errors_come_through_with_their_words(
    running: RunningApp, endpoint: ScriptedEndpoint, step: list[Any], requests: int, said: str
) -> None:
    endpoint.add(step, repeat=True)
    await running.submit(PROMPT, "r1")
    complete = await running.completed("r1")
    assert complete.outcome is Outcome.ERROR
    assert said in complete.error
    assert len(endpoint.requests) == requests
    await check_ends(running)


async def test_where_tools_are_refused_the_model_works_in_steps(
    running: RunningApp, endpoint: ScriptedEndpoint
) -> None:
    call = {"thought": "I look.", "calls": [{"tool": "view", "args": {"path": "cargo.txt"}}]}
    answer = {"thought": "I know.", "answer": ANSWER}
    endpoint.add([Refuse(400, "m does not support tools")], words(json.dumps(call)), words(json.dumps(answer)))
    await running.submit(PROMPT, "r1")
    assert (await running.completed("r1")).text == ANSWER
    assert ["tools" in exchange.body for exchange in endpoint.requests] == [True, False, False]
    assert endpoint.requests[1].body["response_format"]["type"] == "json_schema"
