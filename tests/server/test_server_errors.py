"""Every refusal is `{code, message}` with a stable code and a message that says what to do (http.md, Errors)."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from server_harness import refusal, serve_in

from longboat import errors
from longboat.server.errors import STATUS
from longboat.server.errors import refusal as refusal_of


@pytest.fixture
async def served(tmp_path):
    async with serve_in(tmp_path) as served:
        yield served


@pytest.fixture
async def workspace(served, tmp_path):
    return await served.workspace(tmp_path / "project")


def test_every_error_that_a_client_can_cause_has_a_status():
    elsewhere = {
        errors.DataDirError,
        errors.LimitReached,
        errors.ListenError,
        errors.ModelError,
        errors.ServerUnreachable,
    }
    assert set(errors.LongboatError.__subclasses__()) - elsewhere == set(STATUS)


def test_an_error_without_a_status_tells_nothing():
    for error in (errors.DataDirError("/secret/path"), ValueError("sk-secret"), errors.ModelError("sk-secret")):
        answer = refusal_of(error)
        assert (answer.status, answer.code) == (500, "internal_error")
        assert "secret" not in answer.message


@pytest.mark.parametrize(
    "body",
    [b"{", b'{"path":}', b'"', b"nonsense", b'{"path":"/"} {}', b"\xff\xfe", b'{"path":"\xff"}', b'{"path":"\\ud800"}'],
)
async def test_malformed_json_is_bad_json(served, body):
    answer = await served.unix.post("/v1/workspaces", content=body)
    assert refusal(answer) == (400, "bad_json")


async def test_no_body_where_one_is_needed_is_bad_json(served):
    assert refusal(await served.unix.post("/v1/workspaces")) == (400, "bad_json")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"path": 5}, ["path", "`str`", "`int`"]),
        ({"path": None}, ["path", "`str`"]),
        ({}, ["path", "required"]),
        ([], ["`object`", "`array`"]),
        ("text", ["`object`", "`str`"]),
        ({"path": "/", "color": "red"}, ["unknown field", "`color`", "known fields: path, client_id"]),
        ({"path": "/", "client_id": 7}, ["client_id", "`str | null`"]),
    ],
)
async def test_a_wrong_body_names_the_field_and_what_was_expected(served, body, names):
    answer = await served.unix.post("/v1/workspaces", json=body)
    assert refusal(answer) == (400, "bad_input")
    for name in names:
        assert name in answer.json()["message"]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"delivery": "later"}, ["delivery", "'later'", "queue, steer"]),
        ({"approve": "none"}, ["approve", "all, ask"]),
        ({"attachments": [{"name": "a"}]}, ["attachments[0]", "`media_type`"]),
        ({"attachments": [{"name": "a", "media_type": "b", "x": 1}]}, ["attachments[0]", "unknown field `x`"]),
        ({"prompt": ["a"]}, ["prompt", "`str`"]),
    ],
)
async def test_a_wrong_prompt_names_the_field_and_what_was_expected(served, workspace, body, names):
    answer = await served.unix.post(f"{workspace}/agent", json=body)
    assert refusal(answer) == (400, "bad_input")
    for name in names:
        assert name in answer.json()["message"]


async def test_deeply_nested_json_is_refused_and_does_no_harm(served, workspace):
    deep = b'{"attachments":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    answer = await served.unix.post(f"{workspace}/agent", content=deep)
    assert answer.status_code == 400
    refusal(answer)


async def test_an_unknown_control_command_names_the_known_ones(served):
    answer = await served.unix.post("/v1/control", json={"command": "explode"})
    assert refusal(answer) == (400, "bad_input")
    assert "shutdown" in answer.json()["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
async def test_a_body_of_another_type_is_refused_with_what_to_send(served, kind):
    answer = await served.unix.post("/v1/workspaces", content=b'{"path":"/"}', headers={"content-type": kind})
    assert refusal(answer) == (400, "bad_content_type")
    assert "application/json" in answer.json()["message"]


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "application/merge-patch+json"]
)
async def test_json_types_are_taken(served, tmp_path, kind):
    body = json.dumps({"path": str(tmp_path)}).encode()
    answer = await served.unix.post("/v1/workspaces", content=body, headers={"content-type": kind})
    assert answer.status_code == 201


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("limit=0", ["limit", ">= 1"]),
        ("limit=501", ["limit", "<= 500"]),
        ("limit=many", ["limit", "`int`"]),
        ("limit=", ["limit", "`int`"]),
        ("limit=2.5", ["limit", "`int`"]),
        ("state=lost", ["state", "'lost'", "accepted, active, finished, folded, queued"]),
    ],
)
async def test_a_wrong_query_names_the_parameter_and_what_was_expected(served, workspace, query, names):
    answer = await served.unix.get(f"{workspace}/runs?{query}")
    assert refusal(answer) == (400, "bad_input")
    for name in names:
        assert name in answer.json()["message"]


@pytest.mark.parametrize("wait", ["-1", "60.1", "nan", "inf", "soon"])
async def test_a_wait_out_of_bounds_is_refused(served, workspace, wait):
    answer = await served.unix.get(f"{workspace}/runs/some?wait={wait}")
    assert refusal(answer) == (400, "bad_input")
    assert "wait" in answer.json()["message"]


BAD_IDS = ["", "a b", "ä", "a/b", "x" * 129, "a\n"]


@pytest.mark.parametrize("bad", BAD_IDS)
async def test_an_invalid_client_id_is_refused_wherever_one_is_given(served, workspace, tmp_path, bad):
    for answer in (
        await served.unix.post("/v1/workspaces", json={"path": str(tmp_path), "client_id": bad}),
        await served.unix.get(f"{workspace}/events", params={"client_id": bad}),
        await served.unix.delete(workspace, params={"client_id": bad}),
        await served.unix.post(f"{workspace}/agent", json={"session_id": "s", "prompt": "x", "client_id": bad}),
    ):
        assert refusal(answer) == (400, "bad_client_id")


async def test_a_missing_client_id_is_refused_where_one_is_needed(served, workspace):
    for answer in (await served.unix.get(f"{workspace}/events"), await served.unix.delete(workspace)):
        assert refusal(answer) == (400, "bad_client_id")


@pytest.mark.parametrize("bad", BAD_IDS)
async def test_an_invalid_run_id_is_refused(served, workspace, bad):
    session_id = await served.session(workspace)
    body = {"session_id": session_id, "prompt": "x", "run_id": bad}
    assert refusal(await served.unix.post(f"{workspace}/agent", json=body)) == (400, "bad_run_id")


async def test_a_prompt_needs_text_and_a_session_that_exists_t1(served, workspace):
    session_id = await served.session(workspace)
    post = served.unix.post
    assert refusal(await post(f"{workspace}/agent", json={"session_id": session_id})) == (400, "empty_prompt")
    assert refusal(await post(f"{workspace}/agent", json={"prompt": "x"})) == (400, "session_missing")
    unknown = {"prompt": "x", "session_id": "nope"}
    assert refusal(await post(f"{workspace}/agent", json=unknown)) == (404, "session_not_found")


async def test_a_path_that_is_no_directory_is_refused(served, tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (str(tmp_path / "nowhere"), str(tmp_path / "file"), "relative/path", "", "/\0", "/" + "a" * 5000):
        status, _ = refusal(await served.unix.post("/v1/workspaces", json={"path": path}))
        assert status == 400


async def test_unknown_ids_are_not_found(served, workspace):
    get, post = served.unix.get, served.unix.post
    assert refusal(await get("/v1/workspaces/nope")) == (404, "workspace_not_found")
    assert refusal(await get("/v1/workspaces/%00%ff")) == (404, "workspace_not_found")
    assert refusal(await get(f"{workspace}/sessions/nope")) == (404, "session_not_found")
    assert refusal(await get(f"{workspace}/sessions/nope/messages")) == (404, "session_not_found")
    assert refusal(await served.unix.delete(f"{workspace}/sessions/nope")) == (404, "session_not_found")
    assert refusal(await post(f"{workspace}/agent/sessions/nope/cancel")) == (404, "session_not_found")
    assert refusal(await get(f"{workspace}/runs/nope")) == (404, "run_not_found")
    assert refusal(await post(f"{workspace}/runs/nope/cancel")) == (404, "run_not_found")
    assert refusal(await served.unix.patch(f"{workspace}/runs/nope", json={"prompt": "x"})) == (404, "run_not_found")
    assert refusal(await get(f"{workspace}/events?client_id=a&session_id=nope")) == (404, "session_not_found")


async def test_an_unknown_path_and_a_wrong_method_are_told_in_our_shape(served):
    assert refusal(await served.unix.get("/v1/nothing")) == (404, "not_found")
    answer = await served.unix.put("/v1/workspaces", json={})
    assert refusal(answer) == (405, "method_not_allowed")
    assert "POST" in answer.headers["allow"]


async def test_a_body_over_the_limit_is_refused_by_its_announced_length_before_it_is_sent(served):
    head = b"POST /v1/workspaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 99999999999\r\n\r\n"
    answer = await served.raw(head)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "body_too_large"


async def test_a_body_over_the_limit_is_refused_when_it_comes_in_chunks_without_a_length(served):
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b'{"path":"' + b"a" * 65_536

    answer = await served.unix.post("/v1/workspaces", content=endless())
    assert refusal(answer) == (413, "body_too_large")
    assert "1 MB" in answer.json()["message"]


async def test_a_body_just_under_the_limit_is_read(served, workspace):
    body = b'{"title":"' + b"a" * ((1 << 20) - 12) + b'"}'
    assert len(body) == 1 << 20
    answer = await served.unix.post(f"{workspace}/sessions", content=body)
    assert refusal(answer) == (400, "bad_input")
    assert "title" in answer.json()["message"]


@asynccontextmanager
async def _records(level: int) -> AsyncIterator[asyncio.Queue[logging.LogRecord]]:
    """What longboat logs from this level up, as it comes."""
    queue: asyncio.Queue[logging.LogRecord] = asyncio.Queue()
    handler = logging.Handler(level)
    handler.emit = queue.put_nowait  # type: ignore[method-assign]
    logging.getLogger("longboat").addHandler(handler)
    try:
        yield queue
    finally:
        logging.getLogger("longboat").removeHandler(handler)


async def test_a_fault_of_ours_is_logged_with_its_traceback_and_tells_the_client_nothing(served, monkeypatch):
    def broken() -> None:
        raise RuntimeError("sk-secret at /home/me")

    monkeypatch.setattr(type(served.serving.app), "health", lambda self: broken())
    async with _records(logging.ERROR) as records:
        answer = await served.unix.get("/v1/health")
        record = records.get_nowait()
    assert refusal(answer) == (500, "internal_error")
    assert "secret" not in answer.text
    assert record.getMessage() == "GET /v1/health failed"
    assert record.exc_info is not None
    assert "sk-secret" in str(record.exc_info[1])


async def test_a_client_that_hangs_up_in_the_middle_of_its_body_is_no_fault_of_ours(served):
    async with _records(logging.WARNING) as records:
        reader, writer = await asyncio.open_unix_connection(served.socket)
        writer.write(b"POST /v1/workspaces HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await served.unix.get("/v1/health")).json()["status"] == "ok"
        assert records.empty()
    assert await reader.read() == b""
