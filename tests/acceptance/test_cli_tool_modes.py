"""`longboat run` with models that have no native tools, and with answers that are none."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_home import Endpoint, Home

from longboat.models.protocol import StopReason
from longboat.testing import Refuse, Say, Stop, words

pytestmark = pytest.mark.acceptance

CALLS = {"calls": [{"tool": "view", "args": {"path": name}} for name in ("a.txt", "b.txt")]}
STEP = json.dumps({"thought": "I must read both.", **CALLS})
ANSWER = json.dumps({"thought": "I have read both.", "answer": "An oar and a sail."})
PRINTED = '```json\n{"name": "view", "arguments": {"path": "a.txt"}}\n```'


@pytest.fixture
def cwd(home: Home, endpoint: Endpoint, request: pytest.FixtureRequest) -> Path:
    endpoint.reset()
    directory = home.workspace(request.node.name)
    (directory / "a.txt").write_text("an oar")
    (directory / "b.txt").write_text("a sail")
    return directory


def last_request(endpoint: Endpoint) -> dict[str, Any]:
    body: dict[str, Any] = endpoint._ask("/control/requests")["items"][-1]["body"]
    return body


def test_a_model_without_tools_works_in_steps(home: Home, endpoint: Endpoint, cwd: Path) -> None:
    """The failed first way costs one request, once: the second run asks for steps at once, and tells nothing."""
    endpoint.script(None, [Refuse(400, "m does not support tools")], [Say(STEP)], [Say(ANSWER)], [Say(ANSWER)])
    done = home.longboat("run", "-m", "mine/no-tools", "What is in the files?", cwd=cwd)
    assert (done.code, done.out) == (0, "An oar and a sail.\n")
    assert "The server does not support tools for mine/no-tools." in done.err
    results = last_request(endpoint)["messages"][-1]
    assert results["role"] == "user"
    assert ("an oar" in results["content"], "a sail" in results["content"]) == (True, True)
    again = home.longboat("run", "-m", "mine/no-tools", "And now?", cwd=cwd)
    assert (again.code, again.out) == (0, "An oar and a sail.\n")
    assert "does not support tools" not in again.err


def test_a_printed_call_is_made_and_not_shown(home: Home, endpoint: Endpoint, cwd: Path) -> None:
    endpoint.script(None, words(PRINTED), [Say(ANSWER)])
    done = home.longboat("run", "-m", "mine/prints", "What is in a.txt?", cwd=cwd)
    assert (done.code, done.out) == (0, "An oar and a sail.\n")
    assert "mine/prints printed a tool call as text." in done.err
    assert "an oar" in last_request(endpoint)["messages"][-1]["content"]


def test_a_call_that_nobody_can_read_fails_the_run(home: Home, endpoint: Endpoint, cwd: Path) -> None:
    refused = [Refuse(400, "m does not support tools")]
    no_schema = [Refuse(400, "response_format is not supported")]
    endpoint.script(None, refused, no_schema, no_schema, [Say("<tool_call>view a.txt</tool_call>")])
    done = home.longboat("run", "-m", "mine/babbles", "What is in a.txt?", cwd=cwd)
    assert (done.code, done.out) == (1, "")
    assert "The model cannot use tools" in done.err


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([[Say("")], [Say("")]], "There is no answer"),
        ([[Stop(StopReason.CONTENT_FILTER)]], "content filter"),
        ([[Say("I will look. ")] * 1_000], "the model repeats itself"),
    ],
)
def test_no_answer_is_a_failure(home: Home, endpoint: Endpoint, cwd: Path, steps: list[list[Any]], said: str) -> None:
    endpoint.script(None, *steps)
    done = home.longboat("run", "What is in a.txt?", cwd=cwd)
    assert done.code == 1
    assert said in done.err
