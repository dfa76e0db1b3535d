"""Traces for OpenTelemetry: what is in them, what is not, and that no run depends on who receives them."""

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from running_app import launch
from server_harness import serve_in

from longboat.config.settings import OtelSection, ServerSection
from longboat.errors import ModelError
from longboat.installation import install_command
from longboat.runtime import otel
from longboat.runtime.otel import OtelTraces
from longboat.testing import CallTool, Fail, Gate, Pause, Say, ScriptedModel, Use
from longboat.testing.scripted import last_prompt
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import Outcome, Role
from longboat.wire.requests import AnswerPermission, Approve

BUSY = ModelError("Overloaded by GERANIUM.", title="The provider is busy", code="overloaded", retryable=True)
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def memory(*, content: bool = False) -> tuple[OtelTraces, InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return OtelTraces(provider, content=content), exporter


def outline(spans: tuple[ReadableSpan, ...]) -> dict[str, str | None]:
    """Each span's name with its parent's. Names must differ."""
    names = {span.context.span_id: span.name for span in spans if span.context is not None}
    return {span.name: names[span.parent.span_id] if span.parent is not None else None for span in spans}


def attributes(exporter: InMemorySpanExporter, name: str) -> dict[str, Any]:
    (span,) = [span for span in exporter.get_finished_spans() if span.name == name]
    return dict(span.attributes or {})


def section(**fields: Any) -> ServerSection:
    return ServerSection(drain_s=1, otel=OtelSection(enabled=True, **fields))


@contextmanager
def receiver() -> Iterator[tuple[str, list[Span]]]:
    """An OTLP/HTTP receiver: its address, and the spans that came."""
    spans: list[Span] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["content-length"]))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                assert {"longboat"} == {
                    a.value.string_value for a in resource.resource.attributes if a.key == "service.name"
                }
                spans.extend(span for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", spans
        finally:
            server.shutdown()
            thread.join()


async def test_a_run_is_one_trace_with_its_steps_retries_tools_asks_and_sub_agents(tmp_path: Path) -> None:
    def answer(request: Any) -> Any:
        if last_prompt(request) == "look":
            return [Say("seen"), Use(input_tokens=3, output_tokens=1)]
        if request.messages[-1].role is not Role.TOOL:
            return [CallTool("agent", json.dumps({"prompt": "look"}), "c1")]
        calls = sum(message.role is Role.TOOL for message in request.messages)
        return [CallTool("bash", json.dumps({"command": "touch a"}), "c2")] if calls == 1 else [Say("done")]

    traces, exporter = memory()
    async with launch(tmp_path, ScriptedModel(answer, name="m"), traces=traces) as running:
        await running.submit("go", "r1")
        ask = (await running.watcher.until(lambda event: event.type == "permission_request")).payload
        await running.workspace.asks.answer_permission(ask.id, AnswerPermission(answer=PermissionAnswer.DENY))
        assert (await running.completed("r1")).text == "done"
        sub_agent = next(run for run in running.watcher.of("run") if run.parent_run_id == "r1")
    spans = exporter.get_finished_spans()
    roots = [span for span in spans if span.parent is None]
    agents = [span for span in spans if span.name == "invoke_agent longboat"]
    assert len(roots) == 1
    assert len({span.context.trace_id for span in spans if span.context is not None}) == 1
    child = next(span for span in agents if span.parent is not None)
    places = {span.context.span_id: span for span in spans if span.context is not None}
    assert child.parent is not None
    assert places[child.parent.span_id].name == "execute_tool agent"
    chats = [span for span in spans if span.name == "chat m"]
    parents = [places[span.parent.span_id] for span in chats if span.parent is not None]
    assert sorted(parent is child for parent in parents) == [False, False, False, True]
    assert outline(tuple(span for span in spans if span not in (child, *chats))) == {
        "invoke_agent longboat": None,
        "execute_tool agent": "invoke_agent longboat",
        "execute_tool bash": "invoke_agent longboat",
        "ask permission": "execute_tool bash",
    }
    assert attributes(exporter, "ask permission") == {
        "longboat.ask.kind": "permission",
        "longboat.ask.answer": "deny",
        "gen_ai.tool.name": "bash",
    }
    assert attributes(exporter, "execute_tool bash") == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "bash",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c2",
        "error.type": "tool_error",
    }
    assert dict(child.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "longboat",
        "gen_ai.conversation.id": sub_agent.session_id,
        "longboat.run.id": sub_agent.run_id,
        "longboat.outcome": "end_turn",
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 1,
    }


async def test_a_retry_is_a_span_between_two_requests_and_an_error_is_named_but_not_quoted(tmp_path: Path) -> None:
    traces, exporter = memory()
    model = ScriptedModel(
        [[Fail(BUSY)], [Say("ok"), Use(input_tokens=7, output_tokens=2)]], provider="google", name="m"
    )
    async with launch(tmp_path, model, traces=traces) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "ok"
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["chat m", "retry", "chat m", "invoke_agent longboat"]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "m"}
    assert [dict(span.attributes or {}) for span in spans[:3]] == [
        chat | {"error.type": "overloaded"},
        {"longboat.retry.attempt": 2, "longboat.retry.reason": "overloaded"},
        chat
        | {
            "gen_ai.usage.input_tokens": 7,
            "gen_ai.usage.output_tokens": 2,
            "gen_ai.usage.cache_read.input_tokens": 0,
            "gen_ai.response.finish_reasons": ("stop",),
        },
    ]
    assert "GERANIUM" not in "".join(span.to_json() for span in spans)


async def test_a_canceled_run_ends_its_spans(tmp_path: Path) -> None:
    traces, exporter = memory()
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Pause(gate)]], name="m"), traces=traces) as running:
        await running.submit("go", "r1")
        await gate.reached()
        await running.workspace.cancel_session(running.session_id)
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
    assert attributes(exporter, "chat m")["longboat.outcome"] == "canceled"
    assert attributes(exporter, "invoke_agent longboat")["longboat.outcome"] == "canceled"


@pytest.mark.parametrize("content", [False, True])
async def test_what_is_said_leaves_the_server_only_if_that_is_switched_on(tmp_path: Path, content: bool) -> None:
    traces, exporter = memory(content=content)
    steps = [[CallTool("bash", json.dumps({"command": "echo TULIP-$((1+1))"}), "c1")], [Say("a ROSE \ud83d")]]
    async with launch(tmp_path, ScriptedModel(steps), traces=traces) as running:
        await running.submit("the LILY", "r1", approve=Approve.ALL)
        await running.completed("r1")
    exported = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert [word in exported for word in ("LILY", "echo TULIP", "TULIP-2", "ROSE", "You are")] == [content] * 5


async def test_spans_reach_an_otlp_receiver_by_the_time_the_server_is_gone(tmp_path: Path) -> None:
    with receiver() as (url, spans):
        async with launch(tmp_path, ScriptedModel([[Say("ok")]], name="m"), server=section(endpoint=url)) as running:
            await running.submit("the LILY", "r1")
            await running.completed("r1")
        names = {span.name: span for span in spans}
    assert sorted(names) == ["chat m", "invoke_agent longboat"]
    assert names["chat m"].parent_span_id == names["invoke_agent longboat"].span_id
    assert names["chat m"].trace_id == names["invoke_agent longboat"].trace_id
    assert "LILY" not in str(spans)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [(f"00-{TRACE}-{PARENT}-01", True), ("nonsense", False), (f"00-{TRACE}-{PARENT}-01\tx", False), (None, False)],
)
async def test_the_trace_of_the_request_that_submits_a_prompt_goes_on(
    tmp_path: Path, sent: str | None, kept: bool
) -> None:
    with receiver() as (url, spans):
        async with serve_in(tmp_path, server=section(endpoint=url)) as served:
            workspace = await served.workspace(tmp_path / "project")
            prompt = {"session_id": await served.session(workspace), "prompt": "go", "run_id": "r1"}
            headers = {"traceparent": sent} if sent is not None else {}
            assert (await served.unix.post(f"{workspace}/agent", json=prompt, headers=headers)).status_code == 202
            await served.unix.get(f"{workspace}/runs/r1", params={"wait_s": 60})
        (span,) = spans
    expected = (TRACE, PARENT) if kept else (span.trace_id.hex(), "")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == expected
    assert (span.trace_id.hex() == TRACE) is kept


async def test_a_receiver_that_never_answers_holds_up_neither_runs_nor_the_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The export alone would wait for an hour."""
    monkeypatch.setattr(otel, "SEND_S", 3600)
    earlier = set(threading.enumerate())  # one of another test's receiver, which is not there, may still try
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        async with launch(tmp_path, ScriptedModel([[Say("ok")]]), server=section(endpoint=url)) as running:
            await running.submit("go", "r1")
            assert (await running.completed("r1")).text == "ok"
        (closing,) = [thread for thread in {*threading.enumerate()} - earlier if thread.name == "last traces"]
        assert closing.is_alive()  # nobody waited for it
        connection, _ = deaf.accept()
        with connection:
            assert connection.recv(4) == b"POST"
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            closing.join()


async def test_a_receiver_that_is_not_there_fails_no_run(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        url = f"http://127.0.0.1:{once.getsockname()[1]}"
    async with launch(tmp_path, ScriptedModel([[Say("ok")]]), server=section(endpoint=url)) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).outcome is Outcome.END_TURN


async def test_without_its_packages_the_log_says_how_to_install_them_and_runs_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "longboat.runtime.otel")
    async with launch(tmp_path, ScriptedModel([[Say("ok")]]), server=section()) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "ok"
    assert install_command("otel") in caplog.text
