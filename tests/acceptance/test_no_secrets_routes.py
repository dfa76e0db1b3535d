"""Every route of the API is called in a workspace that has everything, and none tells a secret.

The harness listens (see `secrecy`): what is left here is to call them all, and to notice when there is a new one.
"""

import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from processes import Site, ended, open_site
from sessions import SessionClient

from longboat.testing import CallTool, Say
from secrecy import ENVIRON, SECRETS, check_files, check_for_secrets, mcp, provider

pytestmark = pytest.mark.acceptance

MCP_SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
W = "/v1/workspaces/{workspace_id}"
S = f"{W}/sessions/{{session_id}}"
A = f"{W}/agent/sessions/{{session_id}}"

CALLS: list[tuple[str, str, dict[str, Any]]] = [
    *(("GET", path, {}) for path in ("/v1/health", "/v1/ready", "/v1/version", "/v1/metrics")),
    *(("GET", path, {}) for path in ("/v1/openapi.json", "/v1/docs", "/")),
    ("GET", "/v1/nodes", {}),
    ("GET", "/login", {"params": {"token": SECRETS["server token"]}}),
    ("POST", "/login", {"data": {"token": SECRETS["server token"]}}),
    ("POST", "/login", {"data": {"token": "wrong"}}),
    ("POST", "/v1/render", {"json": {"items": [{"kind": "markdown", "text": "*hi*"}]}}),
    ("POST", "/v1/web", {}),
    ("GET", "/v1/stats", {}),
    ("GET", "/v1/inbox", {"params": {"client_id": "late"}}),
    ("GET", "/v1/inbox/events", {"params": {"client_id": "late"}}),
    ("POST", "/v1/inbox/seen", {"json": {"client_id": "late", "up_to": "1"}}),
    ("GET", "/v1/push", {}),
    ("POST", "/v1/push/subscriptions", {"json": {"client_id": "late", "endpoint": "x", "keys": {}}}),
    ("DELETE", "/v1/push/subscriptions", {"params": {"endpoint": "x"}}),
    ("GET", "/v1/search", {"params": {"q": "worked"}}),
    ("PUT", "/v1/providers/{provider}", {"json": {"api_key": SECRETS["stored key"]}}),
    ("GET", "/v1/providers", {}),
    ("POST", "/v1/providers/{provider}/check", {"json": {"api_key": SECRETS["stored key"], "base_url": "ftp://x"}}),
    ("GET", "/v1/workspaces", {}),
    *(("GET", f"{W}{path}", {}) for path in ("", "/sessions", "/agent", "/models", "/runs", "/permissions")),
    *(("GET", f"{W}{path}", {}) for path in ("/questions", "/mcp", "/lsp", "/skills", "/jobs", "/stats")),
    ("POST", f"{W}/move", {"json": {"node": "another"}}),
    ("GET", f"{W}/diff", {"params": {"run_id": "worked"}}),
    ("GET", f"{W}/changes", {"params": {"run_id": "worked"}}),
    ("GET", f"{W}/files", {}),
    ("GET", f"{W}/file", {"params": {"path": "a.txt"}}),
    ("GET", f"{W}/welcome", {}),
    ("GET", f"{W}/search", {"params": {"q": "LB_TEST"}}),
    *(("GET", f"{S}{path}", {}) for path in ("", "/messages", "/todos", "/usage", "/timeline", "/export")),
    *(("GET", f"{A}{path}", {}) for path in ("", "/prompts/queued")),
    ("GET", f"{W}/runs/{{run_id}}", {}),
    ("GET", f"{W}/runs/{{run_id}}/requests", {}),
    ("GET", f"{W}/runs/{{run_id}}/requests/{{number}}", {}),
    ("GET", f"{W}/jobs/{{job_id}}", {}),
    ("GET", f"{W}/events", {"params": {"client_id": "late"}}),
    ("POST", "/v1/workspaces", {"json": {"path": "/no/such/place", "env": ENVIRON}}),
    ("POST", f"{W}/sessions", {"json": {}}),
    ("POST", f"{W}/sessions/import", {"json": {"title": 1}}),
    ("POST", f"{W}/agent", {"json": {"session_id": "nobody", "prompt": "hi"}}),
    ("PATCH", S, {"json": {"title": "renamed"}}),
    *(("POST", f"{S}{path}", {}) for path in ("/fork", "/undo", "/redo", "/summarize")),
    ("POST", f"{S}/shell", {"json": {"command": "true"}}),
    ("POST", f"{S}/revert", {"json": {"path": "a.txt", "digest": "x"}}),
    ("POST", f"{S}/reverts/{{revert_id}}/redo", {}),
    ("POST", f"{W}/mcp/{{name}}/login", {"json": {}}),
    ("POST", f"{W}/jobs/{{job_id}}/kill", {}),
    ("POST", f"{W}/permissions/{{permission_id}}", {"json": {"answer": "always"}}),
    ("POST", f"{W}/questions/{{question_id}}", {"json": {"answer": ["none"]}}),
    ("PATCH", f"{W}/runs/{{run_id}}", {"json": {"prompt": "too late"}}),
    ("POST", f"{W}/runs/{{run_id}}/cancel", {}),
    *(("POST", f"{A}{path}", {}) for path in ("/prompts/clear", "/cancel")),
    ("DELETE", "/v1/providers/{provider}", {}),
    ("DELETE", S, {}),
    ("DELETE", "/v1/clients/{client_id}", {}),
    ("DELETE", W, {"params": {"client_id": "late"}}),
    ("POST", "/v1/control", {"json": {"command": "shutdown"}}),
]
"""In this order: what destroys something comes last."""

FINE = {
    *("/v1/health", "/v1/version", "/v1/metrics", "/v1/openapi.json", "/v1/docs", "/v1/stats", "/v1/workspaces"),
    "/v1/providers",
    *(W, f"{W}/sessions", f"{W}/agent", f"{W}/models", f"{W}/runs", f"{W}/permissions", f"{W}/questions", f"{W}/mcp"),
    *(
        f"{W}/lsp",
        f"{W}/skills",
        f"{W}/jobs",
        f"{W}/stats",
        f"{W}/files",
        f"{W}/file",
        f"{W}/search",
        f"{W}/changes",
        f"{W}/diff",
        f"{W}/welcome",
        S,
    ),
    *(
        f"{S}/messages",
        f"{S}/todos",
        f"{S}/usage",
        f"{S}/timeline",
        f"{S}/export",
        A,
        f"{A}/prompts/queued",
        f"{W}/runs/{{run_id}}",
        f"{W}/runs/{{run_id}}/requests",
        f"{W}/runs/{{run_id}}/requests/{{number}}",
    ),
    *(f"{W}/jobs/{{job_id}}", f"{W}/events", "/v1/search"),
}
"""A GET of these has something to show: a refusal would prove nothing."""


def call(name: str, /, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))


def _mcp(directory: Path) -> dict[str, Any]:
    """A server that works, one that says its secret and dies, one that cannot be reached, and two that are off."""
    env = {"TOKEN": "$LB_TEST_MCP"}
    works = {"command": sys.executable, "args": [str(MCP_SERVER), "stdio", str(directory)], "env": env}
    complains = {"command": "sh", "args": ["-c", "echo bad key $TOKEN >&2; exit 1"], "env": env}
    far = {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "$LB_TEST_MCP_HEADER"}}
    return mcp() | {"works": works, "complains": complains, "unreachable": far}


async def _populated(site: Site) -> dict[str, str]:
    """A workspace with todos, a job, changed files, a skill, MCP servers, a permission and a question that wait."""
    scratch = site.path / "scratch"
    scratch.mkdir()
    directory = site.project(
        providers={"mine": provider(site.model.base_url), "broken": provider(api_key="$NOT_SET_ANYWHERE")},
        mcp=_mcp(scratch),
    )
    skill = directory / ".agents" / "skills" / "sail" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: how to sail\n---\nHoist.\n")
    site.model.add(
        [call("todos", items=[{"text": "look"}]), call("longboat_info")],
        [call("bash", command="sleep 600", run_in_background=True), call("write", path="a.txt", content="a\n")],
        [Say("done")],
        name="work",
    )
    site.model.add([call("bash", command="touch x")], [Say("x")], name="permission")
    site.model.add([call("question", text="Which?")], [Say("x")], name="question")
    session = await site.session(directory)
    joined = await session.http.post(
        "/v1/workspaces", json={"path": str(directory), "client_id": "me", "env": ENVIRON | {"PATH": "/usr/bin:/bin"}}
    )
    assert joined.status_code == 200, joined.text
    await session.submit("[[work]]", "worked", approve="all", client_id="me")
    assert await session.outcome("worked") == "end_turn"
    other = await SessionClient.create(session.http, session.workspace)
    async with session.watch() as watch:
        await session.submit("[[permission]]", "asking")
        await session.submit("later", "queued", delivery="queue")
        await other.submit("[[question]]", "wondering")
        permission = (await watch.until(lambda event: event.type == "permission_request")).payload
        question = (await watch.until(lambda event: event.type == "question_request")).payload
    jobs = (await session.http.get(f"{session.workspace}/jobs")).json()
    return {
        "workspace_id": session.workspace.rpartition("/")[2],
        "session_id": session.session_id,
        "run_id": "asking",
        "number": "1",
        "job_id": jobs["items"][0]["id"],
        "revert_id": "nothing",
        "name": "unreachable",
        "permission_id": permission.id,
        "question_id": question.id,
        "client_id": "me",
        "provider": "anthropic",
    }


async def test_no_route_tells_a_secret_and_none_is_left_out() -> None:
    """http.md: what a key, a token, a header or an environment holds is told by no route, however it is asked."""
    async with open_site("tcp") as site:
        await site.serve()
        ids = await _populated(site)
        http = await site.client()
        paths = (await http.get("/v1/openapi.json")).json()["paths"]
        described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
        assert described - {(method, path) for method, path, _ in CALLS} == set(), "call the new routes here too"
        for method, path, options in CALLS:
            answer = await _ask(http, method, path.format(**ids), options)
            assert answer.status_code < 500, (method, path, answer.text)
            if method == "GET" and path in FINE:
                assert answer.status_code == 200, (path, answer.text)
        sent = [exchange.headers for exchange in site.model.requests]
        assert all(SECRETS["provider key"] in headers["authorization"] for headers in sent), "it was never used"
        for exchange in site.model.requests:
            check_for_secrets(json.dumps(exchange.body), "what the model is told")
        await site.server.wait()
        check_files(*site.data.glob("longboat.db*"))


async def _ask(http: httpx2.AsyncClient, method: str, path: str, options: dict[str, Any]) -> httpx2.Response:
    if not path.endswith("/events"):
        return await http.request(method, path, **options)
    async with http.stream(method, path, **options) as answer:
        async for chunk in answer.aiter_raw():
            return httpx2.Response(answer.status_code, content=chunk)  # the snapshot
    raise AssertionError("a stream without a snapshot")


async def test_no_command_tells_a_secret() -> None:
    """F1: neither does the shell show what the server has."""
    async with open_site() as site:
        await site.serve()
        directory = site.project(mcp=_mcp(site.path))
        assert (await ended(await site.longboat("run", "hello", cwd=directory))).code == 0
        shown = ["doctor", "models", "status", "runs", "session list", "config show", "mcp list", "skills", "stats"]
        for command in shown:
            await ended(await site.longboat(*command.split(), cwd=directory))
