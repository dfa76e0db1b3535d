"""The description of the API, where it was wrong (D15). Schemathesis compares the rest: test_openapi_is_true.py."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from raw_http import HOST, answer_of, connected
from server_harness import Served, checked_client, refusal, serve_in

S = "/v1/workspaces/{workspace_id}/sessions"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serve_in(tmp_path) as served:
        yield served


@pytest.fixture
async def paths(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = (await served.unix.get("/v1/openapi.json")).json()["paths"]
    return found


async def test_options_and_405_name_all_methods_of_a_path(served: Served, paths: dict[str, Any]) -> None:
    for path, operations in paths.items():
        expected = {method.upper() for method in operations} | {"OPTIONS"}
        for method in ("OPTIONS", *sorted({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} - expected)):
            status = 204 if method == "OPTIONS" else 405
            answer = await served.unix.request(method, path)
            assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (status, expected), (method, path)


def schema_of(described: dict[str, Any], media_type: str = "application/json") -> dict[str, Any]:
    schema: dict[str, Any] = described["content"][media_type]["schema"]
    return schema


async def test_every_documented_refusal_is_an_error_body(paths: dict[str, Any]) -> None:
    for path, operations in paths.items():
        for method, operation in operations.items():
            for status, described in operation["responses"].items():
                if status == "default" or int(status) >= 400:
                    assert schema_of(described)["$ref"].endswith("/ErrorBody"), (method, path, status)
    answer = paths["/v1/workspaces/{workspace_id}/questions/{question_id}"]["post"]["responses"]
    assert sorted(answer) == ["200", "409", "default"]


@pytest.mark.parametrize("path", [S, S + "/{session_id}/fork", S + "/{session_id}/summarize"])
async def test_bodies_that_may_be_left_out_are_optional(paths: dict[str, Any], path: str) -> None:
    assert paths[path]["post"]["requestBody"]["required"] is False


async def test_other_bodies_are_required(served: Served, paths: dict[str, Any]) -> None:
    assert paths["/v1/workspaces"]["post"]["requestBody"]["required"] is True
    assert refusal(await served.unix.post("/v1/workspaces")) == (400, "bad_json")


async def test_an_export_is_json_or_markdown(paths: dict[str, Any]) -> None:
    described = paths[S + "/{session_id}/export"]["get"]["responses"]["200"]
    assert sorted(described["content"]) == ["application/json", "text/markdown"]


async def test_a_client_id_that_is_needed_is_required(paths: dict[str, Any]) -> None:
    for path, method in (("", "delete"), ("/events", "get")):
        parameters = paths["/v1/workspaces/{workspace_id}" + path][method]["parameters"]
        (needed,) = [item["name"] for item in parameters if item["in"] == "query" and item["required"]]
        assert needed == "client_id"


async def test_no_answer_is_sniffed(served: Served, tmp_path: Path) -> None:
    workspace = await served.workspace(tmp_path / "project")
    session = await served.session(workspace)
    for path in (
        *("/v1/health", "/v1/openapi.json", "/v1/docs", "/v1/metrics", "/", "/stats", "/v1/nothing", workspace),
        *(f"{workspace}/sessions/{session}/export", f"{workspace}/files?path=nothing", f"{workspace}/diff"),
    ):
        answer = await served.unix.get(path)
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"], path
    async with served.unix.stream("GET", f"{workspace}/events?client_id=me") as stream:
        assert stream.headers.get_list("x-content-type-options") == ["nosniff"]
    async with checked_client(served) as stranger:
        for path in ("/", "/v1/version", "/login"):
            answer = await stranger.get(path)
            assert (answer.status_code, answer.headers.get_list("x-content-type-options")) == (401, ["nosniff"]), path


@pytest.mark.parametrize("method", [b"HEAD", b"OPTIONS", b"TRACE", b"PROPFIND", b"PUT", b"CONNECT"])
async def test_a_stranger_learns_nothing_by_any_method(served: Served, method: bytes) -> None:
    answers = set()
    for path in (b"/v1/workspaces", b"/v1/nothing", b"/assets/x", b"*"):
        async with connected(served) as (reader, writer):
            writer.write(method + b" " + path + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            said = await reader.read()
        lines = said.split(b"\r\n")
        answers.add((lines[0], *(line for line in lines if line.lower().startswith((b"allow", b"location")))))
    assert answers <= {(b"HTTP/1.1 401 Unauthorized",), (b"HTTP/1.1 400 Bad Request",)}


async def test_an_unknown_method_is_bad_http(served: Served) -> None:
    async with connected(served) as (reader, writer):
        writer.write(b"SHOUT /v1/health HTTP/1.1\r\n" + HOST + b"\r\n")
        assert b"400 Bad Request" in await answer_of(reader)


async def test_a_transcript_is_paged_one_way_at_a_time(served: Served, tmp_path: Path) -> None:
    workspace = await served.workspace(tmp_path / "project")
    messages = f"{workspace}/sessions/{await served.session(workspace)}/messages"
    for query, status in (("after=1", 200), ("before=", 200), ("after=&before=1", 400), ("after=1&before=1", 400)):
        answer = await served.unix.get(f"{messages}?{query}")
        assert answer.status_code == status, query
