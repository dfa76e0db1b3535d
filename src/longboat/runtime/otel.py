"""Traces of runs for OpenTelemetry, by its conventions for generative AI (extra `otel`).

Owns the spans that are open, and their attributes. Names, counts, times and outcomes are exported; what people, models
and tools say only if `content` is set. A thread of the SDK sends the spans: no run waits for it.
"""

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from longboat import __version__
from longboat.config.settings import OtelSection
from longboat.core.stream import encodable
from longboat.core.turn import plausible
from longboat.errors import ModelError
from longboat.models.protocol import Finished, Model, ModelRequest, StopReason
from longboat.runtime.turn.traces import Traces
from longboat.store.records import RunRecord
from longboat.wire.asks import Permission, Question
from longboat.wire.models import (
    FilePart,
    Message,
    Outcome,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

SEND_S = 10.0
"""How long one export may take."""
CLOSE_S = 1.0
"""How long the server's exit waits for the last export."""
MAX_SPANS = 2_048
"""How many spans wait for an export; further ones replace the oldest."""
MAX_LENGTH = 32_768
"""Characters of one attribute. With MAX_SPANS this bounds the memory that contents take."""
MAX_NAME = 200

Value = str | int | float | bool | Sequence[str]

PROVIDERS = {"azure": "azure.ai.openai", "bedrock": "aws.bedrock", "google": "gcp.gemini", "mistral": "mistral_ai"}
"""Providers that the conventions name differently."""

FINISH = {
    StopReason.END_TURN: "stop",
    StopReason.TOOL_USE: "tool_call",
    StopReason.MAX_TOKENS: "length",
    StopReason.CONTENT_FILTER: "content_filter",
}


def export_traces(section: OtelSection) -> "OtelTraces":
    """Traces that go to an OTLP receiver. What the section leaves open, the variables OTEL_* say."""
    name = os.environ.get("OTEL_SERVICE_NAME") or "longboat"
    provider = TracerProvider(
        resource=Resource.create({"service.name": name, "service.version": __version__}),
        span_limits=SpanLimits(max_span_attribute_length=MAX_LENGTH),
        shutdown_on_exit=False,  # that would wait for a receiver that hangs
    )
    endpoint = f"{section.endpoint.rstrip('/')}/v1/traces" if section.endpoint else None
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=SEND_S)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=MAX_SPANS))
    return OtelTraces(provider, content=section.content)


@dataclass(slots=True)
class _OpenRun:
    span: Span
    input_tokens: int = 0
    output_tokens: int = 0


class OtelTraces(Traces):
    def __init__(self, provider: TracerProvider, *, content: bool = False) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("longboat", __version__)
        self._content = content
        self._runs: dict[str, _OpenRun] = {}
        self._calls: dict[tuple[str, str], Span] = {}
        """By run and call: sub-agents and asks belong to the call that waits for them."""

    def begin_run(self, record: RunRecord, call_id: str | None) -> None:
        run, agent = record.run, record.options.agent or "longboat"
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.conversation.id": run.session_id,
            "longboat.run.id": run.run_id,
        }
        parent = self._caller(run.parent_run_id, call_id) if run.parent_run_id is not None else None
        context = _under(parent)
        if parent is None and record.options.traceparent is not None:
            carrier = {"traceparent": record.options.traceparent}
            context = TraceContextTextMapPropagator().extract(carrier, context=context)
        span = self._tracer.start_span(_name("invoke_agent", agent), context=context, attributes=_clean(attributes))
        self._runs[run.run_id] = _OpenRun(span)

    def end_run(self, run_id: str, outcome: Outcome, code: str) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        run.span.set_attribute("longboat.outcome", outcome.value)
        run.span.set_attribute("gen_ai.usage.input_tokens", run.input_tokens)
        run.span.set_attribute("gen_ai.usage.output_tokens", run.output_tokens)
        if outcome is Outcome.ERROR:
            _fail(run.span, code)
        run.span.end()

    @contextmanager
    def step(self, run_id: str, model: Model, request: ModelRequest) -> Iterator[Callable[[Finished, Message], None]]:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": PROVIDERS.get(model.provider, model.provider),
            "gen_ai.request.model": model.name,
        }
        if self._content:
            attributes["gen_ai.system_instructions"] = _json([{"type": "text", "content": request.system}])
            attributes["gen_ai.input.messages"] = _json([_message(each) for each in request.messages])
        name = _name("chat", model.name)
        with self._span(self._caller(run_id, None), name, attributes, kind=SpanKind.CLIENT) as span:

            def answered(finished: Finished, answer: Message) -> None:
                used, reason = plausible(finished.usage), FINISH[finished.reason]
                span.set_attribute("gen_ai.usage.input_tokens", used.input_tokens)
                span.set_attribute("gen_ai.usage.output_tokens", used.output_tokens)
                span.set_attribute("gen_ai.usage.cache_read.input_tokens", finished.cached_tokens)
                span.set_attribute("gen_ai.response.finish_reasons", [reason])
                if self._content:
                    said = _json([_message(answer) | {"finish_reason": reason}])
                    span.set_attribute("gen_ai.output.messages", said)
                if (run := self._runs.get(run_id)) is not None:
                    run.input_tokens += used.input_tokens
                    run.output_tokens += used.output_tokens

            yield answered

    @contextmanager
    def retry(self, run_id: str, attempt: int, error: ModelError) -> Iterator[None]:
        attributes: dict[str, Value] = {"longboat.retry.attempt": attempt, "longboat.retry.reason": error.code}
        with self._span(self._caller(run_id, None), "retry", attributes):
            yield

    @contextmanager
    def tool(self, run_id: str, call: ToolCallPart) -> Iterator[Callable[[ToolResultPart], None]]:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.id,
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = call.input
        with self._span(self._caller(run_id, None), _name("execute_tool", call.name), attributes) as span:

            def returned(result: ToolResultPart) -> None:
                if self._content:
                    span.set_attribute("gen_ai.tool.call.result", encodable(result.content))
                if result.is_error:
                    _fail(span, "tool_error")

            self._calls[run_id, call.id] = span
            try:
                yield returned
            finally:
                self._calls.pop((run_id, call.id), None)

    @contextmanager
    def ask(self, ask: Permission | Question) -> Iterator[Callable[[Permission | Question], None]]:
        kind = "permission" if isinstance(ask, Permission) else "question"
        attributes: dict[str, Value] = {"longboat.ask.kind": kind}
        if isinstance(ask, Permission):
            attributes["gen_ai.tool.name"] = ask.tool
        if self._content:
            attributes["longboat.ask.text"] = ask.title if isinstance(ask, Permission) else ask.text
        with self._span(self._caller(ask.run_id, ask.tool_call_id), f"ask {kind}", attributes) as span:

            def answered(given: Permission | Question) -> None:
                if isinstance(given, Permission) and given.answer is not None:
                    span.set_attribute("longboat.ask.answer", given.answer.value)

            yield answered

    def close(self) -> None:
        # The SDK would wait for half a minute: beyond our own bound, its thread is left behind and ends with us.
        closing = threading.Thread(target=self._provider.shutdown, name="last traces", daemon=True)
        closing.start()
        closing.join(CLOSE_S)

    def _caller(self, run_id: str, call_id: str | None) -> Span | None:
        """The span of a call, or else of its run."""
        if call_id is not None and (call := self._calls.get((run_id, call_id))) is not None:
            return call
        run = self._runs.get(run_id)
        return run.span if run is not None else None

    @contextmanager
    def _span(
        self, parent: Span | None, name: str, attributes: Mapping[str, Value], *, kind: SpanKind = SpanKind.INTERNAL
    ) -> Iterator[Span]:
        span = self._tracer.start_span(name, context=_under(parent), kind=kind, attributes=_clean(attributes))
        try:
            yield span
        except asyncio.CancelledError:
            span.set_attribute("longboat.outcome", Outcome.CANCELED.value)
            raise
        except Exception as error:
            # Without its message: that may quote what someone said.
            _fail(span, error.code if isinstance(error, ModelError) else type(error).__name__)
            raise
        finally:
            span.end()


def _under(parent: Span | None) -> Context:
    """Explicitly: sub-agents and asks run in tasks whose own context is another one."""
    return Context() if parent is None else set_span_in_context(parent, Context())


def _fail(span: Span, code: str) -> None:
    span.set_attribute("error.type", code or "_OTHER")
    span.set_status(StatusCode.ERROR)


def _name(operation: str, subject: str) -> str:
    return encodable(f"{operation} {subject}")[:MAX_NAME]


def _clean(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {key: encodable(value) if isinstance(value, str) else value for key, value in attributes.items()}


def _json(value: object) -> str:
    return json.dumps(value)  # in ASCII: a name may contain half a surrogate pair, at which msgspec fails


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role.value, "parts": [part for each in message.parts if (part := _part(each))]}


def _part(part: Part) -> dict[str, Any] | None:
    match part:
        case TextPart():
            return {"type": "text", "content": part.text}
        case ReasoningPart():
            return {"type": "reasoning", "content": part.text}
        case ToolCallPart():
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.input}
        case ToolResultPart():
            return {"type": "tool_call_response", "id": part.tool_call_id, "response": part.content}
        case FilePart():
            return {"type": "file", "name": part.name, "mime_type": part.media_type}
        case _:
            return None
