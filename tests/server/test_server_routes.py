"""The routes of http.md that need no model: what they answer, over the unix socket and over TCP."""

import inspect
import json
import re
from collections.abc import Iterator

import pytest
from litestar.handlers import HTTPRouteHandler
from server_harness import TOKEN, checked_client, refusal, serve_in

import longboat
from longboat.fleet.asgi_requests import is_repeatable
from longboat.server.routes import HANDLERS
from longboat.server.routes.request import W
from longboat.wire.events import EVENTS

_W = "/v1/workspaces/{workspace_id}"
_S = _W + "/agent/sessions/{session_id}"

ROUTES = {
    "GET /login",
    "GET /v1/docs",
    "GET /v1/health",
    "GET /v1/metrics",
    "GET /v1/nodes",
    "GET /v1/openapi.json",
    "GET /v1/ready",
    "GET /v1/version",
    "POST /v1/control",
    "POST /v1/web",
    "POST /v1/render",
    "POST /login",
    "GET /v1/workspaces/{workspace_id}/models",
    "POST /v1/workspaces/{workspace_id}/sessions/{session_id}/shell",
    "GET /v1/workspaces/{workspace_id}/sessions/{session_id}/todos",
    "DELETE /v1/clients/{client_id}",
    "GET /v1/workspaces",
    "POST /v1/workspaces",
    f"GET {_W}",
    f"DELETE {_W}",
    f"POST {_W}/move",
    f"GET {_W}/events",
    f"GET {_W}/sessions",
    f"POST {_W}/sessions",
    *(f"{method} {_W}/sessions/{{session_id}}" for method in ("GET", "PATCH", "DELETE")),
    f"GET {_W}/sessions/{{session_id}}/messages",
    f"GET {_W}/sessions/{{session_id}}/usage",
    f"GET {_W}/sessions/{{session_id}}/timeline",
    f"POST {_W}/sessions/{{session_id}}/undo",
    f"POST {_W}/sessions/{{session_id}}/redo",
    f"POST {_W}/sessions/{{session_id}}/revert",
    f"POST {_W}/sessions/{{session_id}}/reverts/{{revert_id}}/redo",
    f"POST {_W}/sessions/import",
    *(f"POST {_W}/sessions/{{session_id}}/{what}" for what in ("fork", "summarize")),
    f"GET {_W}/sessions/{{session_id}}/export",
    *(f"GET {_W}/{what}" for what in ("files", "file", "search", "changes", "diff", "stats", "welcome")),
    "GET /v1/stats",
    "GET /v1/inbox",
    "GET /v1/inbox/events",
    "POST /v1/inbox/seen",
    "GET /v1/push",
    "POST /v1/push/subscriptions",
    "DELETE /v1/push/subscriptions",
    "GET /v1/search",
    "GET /v1/providers",
    "POST /v1/providers/{provider}/check",
    "PUT /v1/providers/{provider}",
    "DELETE /v1/providers/{provider}",
    f"GET {_W}/permissions",
    f"POST {_W}/permissions/{{permission_id}}",
    f"GET {_W}/questions",
    f"POST {_W}/questions/{{question_id}}",
    f"GET {_W}/jobs",
    f"GET {_W}/jobs/{{job_id}}",
    f"POST {_W}/jobs/{{job_id}}/kill",
    f"GET {_W}/mcp",
    f"POST {_W}/mcp/{{name}}/login",
    f"GET {_W}/lsp",
    f"GET {_W}/skills",
    f"GET {_W}/agent",
    f"POST {_W}/agent",
    f"GET {_W}/runs",
    f"GET {_W}/runs/{{run_id}}",
    f"GET {_W}/runs/{{run_id}}/requests",
    f"GET {_W}/runs/{{run_id}}/requests/{{number}}",
    f"PATCH {_W}/runs/{{run_id}}",
    f"POST {_W}/runs/{{run_id}}/cancel",
    f"GET {_S}",
    f"POST {_S}/cancel",
    f"GET {_S}/prompts/queued",
    f"POST {_S}/prompts/clear",
}


@pytest.fixture
async def served(tmp_path):
    async with serve_in(tmp_path) as served:
        yield served


@pytest.fixture
async def workspace(served, tmp_path):
    return await served.workspace(tmp_path / "project")


async def test_health_and_version(served):
    assert (await served.unix.get("/v1/health")).json() == {"status": "ok", "detail": ""}
    assert (await served.tcp.get("/v1/version")).json() == {"version": longboat.__version__, "protocol": 1}


async def test_a_server_is_ready_until_it_leaves(served):
    assert (await served.unix.get("/v1/ready")).json() == {"status": "ok", "detail": ""}
    served.serving.app.leaving = True
    assert refusal(await served.unix.get("/v1/ready")) == (503, "server_leaving")
    assert (await served.unix.get("/v1/health")).json()["status"] == "leaving"


async def test_joining_a_directory_twice_gives_one_workspace(served, tmp_path):
    first = await served.unix.post("/v1/workspaces", json={"path": str(tmp_path)})
    again = await served.tcp.post("/v1/workspaces", json={"path": str(tmp_path), "client_id": "me"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    listed = (await served.unix.get("/v1/workspaces")).json()
    assert [item["id"] for item in listed["items"]] == [first.json()["id"]]
    assert listed["next"] is None


async def test_a_workspace_tells_of_itself_and_releases_a_claim(served, workspace, tmp_path):
    shown = (await served.unix.get(workspace)).json()
    assert shown["path"] == str(tmp_path / "project")
    assert not shown["busy"]
    released = await served.unix.request("DELETE", workspace, params={"client_id": "me"})
    assert released.status_code == 200
    assert released.json()["clients"] == []
    dropped = await served.unix.delete("/v1/clients/me")
    assert (dropped.status_code, dropped.content) == (204, b"")


async def test_the_life_of_a_session(served, workspace):
    sessions = f"{workspace}/sessions"
    made = await served.unix.post(sessions, json={"title": "One"})
    assert made.status_code == 201
    one = f"{sessions}/{made.json()['id']}"
    assert (await served.unix.get(one)).json() == made.json()
    renamed = await served.unix.patch(one, json={"title": "Two"})
    assert renamed.json()["title"] == "Two"
    assert [item["id"] for item in (await served.unix.get(sessions)).json()["items"]] == [made.json()["id"]]
    assert (await served.unix.get(f"{one}/messages")).json() == {"items": [], "next": None}
    gone = await served.unix.delete(one)
    assert (gone.status_code, gone.content) == (204, b"")
    assert refusal(await served.unix.get(one)) == (404, "session_not_found")


async def test_a_session_can_be_made_without_a_body(served, workspace):
    made = await served.unix.post(f"{workspace}/sessions")
    assert made.status_code == 201


async def test_pages_hold_at_most_limit_items_and_next_leads_on(served, workspace):
    made = [await served.session(workspace) for _ in range(3)]
    first = (await served.unix.get(f"{workspace}/sessions?limit=2")).json()
    assert [item["id"] for item in first["items"]] == made[:0:-1]
    rest = (await served.unix.get(f"{workspace}/sessions", params={"limit": 2, "after": first["next"]})).json()
    assert [item["id"] for item in rest["items"]] == made[:1]
    assert rest["next"] is None


async def test_an_accepted_prompt_answers_202_with_the_place_of_its_run_b1(served, workspace):
    session_id = await served.session(workspace)
    body = {"session_id": session_id, "prompt": "hello", "run_id": "my:run-1", "client_id": "me"}
    accepted = await served.unix.post(f"{workspace}/agent", json=body)
    assert accepted.status_code == 202
    assert accepted.json()["run_id"] == "my:run-1"
    assert accepted.headers["location"] == f"{workspace}/runs/my:run-1"
    run = (await served.unix.get(accepted.headers["location"], params={"wait": 30}, timeout=40)).json()
    # No model can answer here: the run still ends, and says why (E3).
    assert (run["state"], run["outcome"]) == ("finished", "error")
    assert run["client_id"] == "me"
    assert run["error"]
    listed = (await served.unix.get(f"{workspace}/runs?state=finished&session_id={session_id}")).json()
    assert [item["run_id"] for item in listed["items"]] == ["my:run-1"]
    assert (await served.unix.post(f"{workspace}/runs/my:run-1/cancel")).json() == run
    edited = await served.unix.patch(f"{workspace}/runs/my:run-1", json={"prompt": "other"})
    assert refusal(edited) == (409, "run_not_editable")


async def test_an_idle_session_has_nothing_to_cancel_or_clear_l2(served, workspace):
    session = f"{workspace}/agent/sessions/{await served.session(workspace)}"
    assert (await served.unix.post(f"{session}/cancel")).json() == {"canceled": []}
    assert (await served.unix.post(f"{session}/prompts/clear")).json() == {"canceled": []}
    assert (await served.unix.get(f"{session}/prompts/queued")).json() == {"items": [], "next": None}
    status = (await served.unix.get(session)).json()
    assert (status["busy"], status["active_run_id"], status["queued"]) == (False, None, 0)
    assert not (await served.unix.get(f"{workspace}/agent")).json()["busy"]


async def test_control_stops_the_server(served):
    answer = await served.unix.post("/v1/control", json={"command": "shutdown", "if_idle": True})
    assert answer.status_code == 202
    assert answer.json()["status"] == "leaving"
    assert served.serving.app.stop_requested.is_set()


async def test_metrics_are_prometheus_text(served, workspace):
    answer = await served.unix.get("/v1/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    values = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    assert values["longboat_workspaces_open"] == "1.0"
    assert float(values["process_resident_memory_bytes"]) > 0


async def test_the_api_description_covers_every_route_and_only_refers_to_what_it_holds(served):
    document = (await served.unix.get("/v1/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    operations = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert operations == ROUTES
    refs = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert refs <= set(document["components"]["schemas"])
    submit = document["paths"]["/v1/workspaces/{workspace_id}/agent"]["post"]
    assert submit["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Submit"}
    assert submit["responses"]["202"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Accepted"
    }
    runs = document["paths"]["/v1/workspaces/{workspace_id}/runs"]["get"]["parameters"]
    assert {item["name"] for item in runs} == {"workspace_id", "state", "session_id", "limit", "after"}
    limit = next(item for item in runs if item["name"] == "limit")
    assert (limit["schema"]["minimum"], limit["schema"]["maximum"]) == (1, 500)
    assert {event["type"] for event in document["x-events"]} == {*EVENTS, "snapshot", "resync"}


async def test_the_page_for_people_is_whole_and_loads_nothing(served):
    answer = await served.unix.get("/v1/docs")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    page = answer.text
    assert not re.search(r"<script|src=|https?://|\sstyle=", page)
    assert "/v1/workspaces/{workspace_id}/agent" in page
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(re.findall(r'id="([^"]+)"', page))


NEEDS_THE_OWNER = {
    *("/agent", "/models", "/jobs", "/jobs/{job_id}", "/mcp", "/lsp", "/skills"),
    *("/files", "/file", "/search", "/changes", "/diff", "/welcome", "/sessions/{session_id}/export"),
}
"""What only the owner of a workspace can tell: its tools, its directory, its undo history."""


def handlers_of_a_workspace(method: str) -> Iterator[tuple[str, str]]:
    """The path of each handler below a workspace, and its source."""
    for handler in HANDLERS:
        if isinstance(handler, HTTPRouteHandler) and method in handler.http_methods:
            for path in handler.paths:
                if path == W or path.startswith(f"{W}/"):
                    yield path.removeprefix(W).replace(":str", ""), inspect.getsource(handler.fn)


def test_each_get_of_a_workspace_needs_no_owner_or_is_listed_here() -> None:
    """A node that cannot reach the owner answers the others from the store (G5)."""
    found = dict(handlers_of_a_workspace("GET"))
    assert len(found) > 25
    assert {path for path, source in found.items() if "workspace_of(" in source} == NEEDS_THE_OWNER


def test_a_post_that_takes_a_key_may_be_repeated_by_nodes() -> None:
    """Two others need no key: a run is canceled once, and a workspace is moved once."""
    found = dict(handlers_of_a_workspace("POST"))
    keyed = {path for path in found if is_repeatable({"method": "POST", "path": f"/v1/workspaces/w{path}"})}
    assert keyed == {path for path, source in found.items() if "key_of(" in source} | {"/runs/{run_id}/cancel", "/move"}


PAGES = {"/", "/stats", "/nodes", "/login"}
"""For people: without the token they are a form that asks for it."""


async def test_every_route_over_tcp_needs_the_token_but_health_ready_and_login(served):
    document = (await served.unix.get("/v1/openapi.json")).json()
    async with checked_client(served) as stranger:
        for path, methods in document["paths"].items():
            for method in methods:
                answer = await stranger.request(method.upper(), path.replace("{", "").replace("}", ""))
                if path in ("/v1/health", "/v1/ready"):
                    assert answer.status_code == 200
                elif answer.headers["content-type"].startswith("text/html"):
                    assert (answer.status_code, path in PAGES) == (401, True), path
                else:
                    assert refusal(answer) == (401, "unauthorized"), path
                    assert answer.headers["www-authenticate"] == "Bearer"
        assert refusal(await stranger.get("/v1/unknown")) == (401, "unauthorized")


@pytest.mark.parametrize("token", ["wrong", TOKEN + "x", TOKEN[:-1]])
async def test_a_wrong_token_is_refused_over_tcp(served, token):
    answer = await served.tcp.get("/v1/workspaces", headers={"authorization": f"Bearer {token}"})
    assert refusal(answer) == (401, "unauthorized")
    assert refusal(await served.tcp.get("/login", params={"token": token})) == (401, "unauthorized")


async def test_a_foreign_host_and_a_foreign_origin_are_refused_over_tcp_even_for_health(served):
    for path in ("/v1/health", "/v1/workspaces"):
        answer = await served.tcp.get(path, headers={"host": "evil.example.com"})
        assert refusal(answer) == (421, "foreign_host")
        answer = await served.tcp.get(path, headers={"origin": "http://evil.example.com"})
        assert refusal(answer) == (403, "foreign_origin")
        assert (await served.tcp.get(path, headers={"host": "box.example.com"})).status_code == 200


async def test_a_browser_logs_in_with_the_token_and_keeps_a_cookie(served):
    async with checked_client(served) as browser:
        answer = await browser.get("/login", params={"token": TOKEN})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        assert TOKEN not in cookie
        assert answer.headers["referrer-policy"] == "no-referrer"
        landed = await browser.get("/", follow_redirects=True)
        assert landed.status_code == 200
        assert landed.url.path == "/"


async def test_no_answer_holds_the_token(served, workspace):
    document = (await served.unix.get("/v1/openapi.json")).json()
    for path, methods in document["paths"].items():
        if "get" in methods and not path.endswith("/events"):
            place = path.replace("/v1/workspaces/{workspace_id}", workspace)
            assert TOKEN not in (await served.unix.get(place)).text


async def test_a_job_that_is_not_there_is_not_found(served, workspace):
    assert refusal(await served.unix.get(f"{workspace}/jobs/job-1")) == (404, "job_not_found")
    assert refusal(await served.unix.post(f"{workspace}/jobs/job-1/kill")) == (404, "job_not_found")
    assert refusal(await served.unix.get(f"{workspace}/jobs/job-1", params={"after": "-1"})) == (400, "bad_input")
