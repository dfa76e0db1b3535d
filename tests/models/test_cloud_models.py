"""Azure and Bedrock, asked at a loopback address: the path, how a key is shown, what is said of a refusal (A6)."""

from pathlib import Path
from typing import Any

import pytest
from running_app import configure, launch

from longboat.testing import CallTool, Refuse, Say, Think
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.models import Outcome, RunComplete
from longboat.wire.requests import Approve
from secrecy import SECRETS, provider
from wires import wires

KEY = SECRETS["provider key"]
LOOK = CallTool("ls", '{"path": "."}')


async def run(tmp_path: Path, model: str, **providers: Any) -> RunComplete:
    configure(providers=providers)
    async with launch(tmp_path, None) as running:
        await running.submit("look", "r1", model=model, approve=Approve.ALL)
        return await running.completed("r1")


@pytest.mark.parametrize("path", ["", "/", "/openai/v1", "/openai/v1/"])
async def test_azure_is_asked_on_its_openai_path_with_its_own_header(tmp_path: Path, path: str) -> None:
    """A6: however the address is written; a whole turn with reasoning and a call."""
    async with wires([Think("hm"), LOOK], [Say("seen")]) as server:
        azure = provider(f"{server.url}{path}", type="azure", models=[{"id": "my-gpt", "context_window": 100_000}])
        complete = await run(tmp_path, "work/my-gpt", work=azure)
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "seen")
    assert [asked.path for asked in server.asked] == ["/openai/v1/responses"] * 2
    for asked in server.asked:
        assert asked.headers["api-key"] == KEY
        assert asked.headers["x-secret"] == SECRETS["provider header"]
        assert (asked.body["model"], asked.body["store"], asked.body["stream"]) == ("my-gpt", False, True)
    kinds = [item.get("type") for item in server.asked[1].body["input"]]
    assert kinds.count("function_call") == kinds.count("function_call_output") == 1


async def test_claude_on_bedrock_is_asked_on_anthropics_wire(tmp_path: Path) -> None:
    """A6: a whole turn with reasoning and a call."""
    name = "us.anthropic.claude-sonnet-5-5"
    async with wires([Think("hm"), LOOK], [Say("seen")]) as server:
        bedrock = provider(server.url, type="bedrock", models=[{"id": name, "context_window": 100_000}])
        complete = await run(tmp_path, f"aws/{name}", aws=bedrock)
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "seen")
    assert {asked.path.partition("?")[0] for asked in server.asked} == {"/anthropic/v1/messages"}
    for asked in server.asked:
        assert asked.headers["x-api-key"] == KEY
        assert asked.headers["x-secret"] == SECRETS["provider header"]
        assert asked.body["model"] == name
    last = server.asked[1].body["messages"][-1]["content"]
    assert [block["type"] for block in last] == ["tool_result"]


@pytest.mark.parametrize("path", ["", "/v1"])
async def test_other_models_on_bedrock_are_asked_on_the_chat_wire(tmp_path: Path, path: str) -> None:
    """A6."""
    async with ScriptedEndpoint() as endpoint:
        endpoint.add([LOOK], [Say("seen")])
        bedrock = provider(f"{endpoint.url}{path}", type="bedrock")
        complete = await run(tmp_path, "aws/openai.gpt-oss-120b", aws=bedrock)
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "seen")
    assert [exchange.path for exchange in endpoint.requests] == ["/v1/chat/completions"] * 2
    for exchange in endpoint.requests:
        assert exchange.headers["authorization"] == f"Bearer {KEY}"
        assert exchange.headers["x-secret"] == SECRETS["provider header"]


REFUSALS = {
    "key": (Refuse(401, message=f"Access denied: invalid subscription key {KEY}"), "invalid subscription key"),
    "deployment": (
        Refuse(404, message="The API deployment my-gpt does not exist.", code="DeploymentNotFound"),
        "exist",
    ),
}


@pytest.mark.parametrize("kind", list(REFUSALS))
@pytest.mark.parametrize(
    ("cloud", "model"), [("azure", "my-gpt"), ("bedrock", "anthropic.claude-sonnet-5-5")], ids=["azure", "bedrock"]
)
async def test_a_refusal_is_told_with_its_words_and_without_the_key(
    tmp_path: Path, kind: str, cloud: str, model: str
) -> None:
    """A6: what the cloud says is what a person needs; the harness listens for the key."""
    refusal, words = REFUSALS[kind]
    async with wires([refusal]) as server:
        complete = await run(tmp_path, f"mine/{model}", mine=provider(server.url, type=cloud, models=[{"id": model}]))
    assert complete.outcome is Outcome.ERROR
    assert words in complete.error
    assert len(server.asked) == 1, "it does not help to ask again"


@pytest.mark.parametrize(
    ("cloud", "missing"),
    [("azure", "AZURE_OPENAI_API_KEY"), ("bedrock", "AWS_BEARER_TOKEN_BEDROCK")],
)
async def test_a_cloud_without_its_variables_is_told_what_is_missing(tmp_path: Path, cloud: str, missing: str) -> None:
    """A6: nothing is asked, and the sentence names the variable."""
    complete = await run(tmp_path, f"{cloud}/some-model")
    assert complete.outcome is Outcome.ERROR
    assert f"or set {missing}" in complete.error
