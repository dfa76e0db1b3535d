"""Turns a client's prompt into the record of a run, or refuses it before anything is accepted (T1)."""

import base64
import hashlib
import re
from dataclasses import replace

import msgspec

from longboat.context.library import Command, expand
from longboat.core.turn import has_words
from longboat.errors import BadInput, EmptyPrompt, SessionMissing
from longboat.runtime.clock import now
from longboat.runtime.turn.answer_schema import check_schema
from longboat.store.records import RunOptions, RunRecord
from longboat.tools.files.images import MEDIA_TYPES, flaw
from longboat.wire.ids import check_own_id, new_id
from longboat.wire.models import Attachment, Delivery, Run, RunState
from longboat.wire.requests import Approve, EditRun, RunShell, Submit, Summarize

SUMMARY_ASKED = "Summarize this conversation."
"""What people read of a request for a summary."""

_CALL = re.compile(r"/([\w.-]+(?::[\w.-]+)*)(?:\s+(.*))?", re.DOTALL)
"""`/name arguments`. A path is none: its first part ends with a slash."""


_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def run_from_prompt(request: Submit, *, traceparent: str | None = None) -> RunRecord:
    """The run that this prompt would be; its session hands out the seq. A malformed `traceparent` is ignored, as its
    standard wants."""
    _check(request)
    run = Run(
        run_id=request.run_id or new_id(),
        seq=0,
        session_id=request.session_id,
        state=RunState.ACCEPTED,
        delivery=request.delivery or _usual_delivery(request),
        prompt=request.prompt,
        plan=request.plan,
        accepted_at=now(),
        client_id=request.client_id,
    )
    return RunRecord(
        run=run,
        attachments=request.attachments,
        fingerprint=_fingerprint(request),
        model=request.model,
        approve=request.approve,
        options=RunOptions(
            effort=request.effort,
            schema=request.schema,
            plan=request.plan,
            wait_for_answers=request.wait_for_answers,
            traceparent=traceparent if traceparent and _TRACEPARENT.fullmatch(traceparent) else None,
        ),
    )


def _usual_delivery(request: Submit) -> Delivery:
    folds = request.run_id is None and request.schema is None and not request.plan
    return Delivery.STEER if folds else Delivery.QUEUE


def run_from_summarize(session_id: str, request: Summarize) -> RunRecord:
    """A request for a summary as a run. It waits for its turn: no other turn can take it in."""
    record = run_from_prompt(
        Submit(
            session_id=session_id,
            prompt=SUMMARY_ASKED,
            run_id=request.run_id,
            delivery=Delivery.QUEUE,
            model=request.model,
            client_id=request.client_id,
        )
    )
    # Of its own kind: the same words as a prompt are not the same again.
    return replace(record, options=RunOptions(summarize=True), fingerprint=f"summary {record.fingerprint}")


def run_from_shell(session_id: str, request: RunShell) -> RunRecord:
    """A shell command of a person, as a run. Shown as typed; sending it is its approval."""
    record = run_from_prompt(
        Submit(
            session_id=session_id,
            prompt=f"!{request.command}" if request.command.strip() else "",
            run_id=request.run_id,
            delivery=Delivery.QUEUE,
            approve=Approve.ALL,
            client_id=request.client_id,
        )
    )
    return replace(record, options=RunOptions(shell=request.command), fingerprint=f"shell {record.fingerprint}")


def command_name_in(prompt: str) -> str | None:
    """The name of the command that the prompt calls, if there is one of that name."""
    call = _CALL.fullmatch(prompt)
    return call[1] if call is not None else None


def with_command_text(request: EditRun, command: Command) -> EditRun:
    """An edit whose prompt calls a command, with the command's text. What the command says of a model or a sub-agent
    cannot be changed in a run that was accepted."""
    if command.agent is not None or command.model is not None:
        message = f"/{command.name} sets its own model or sub-agent. Cancel this prompt and send a new one."
        raise BadInput(message, code="command_not_editable")
    call = _CALL.fullmatch(request.prompt or "")
    return msgspec.structs.replace(request, prompt=expand(command, call[2] or "" if call is not None else ""))


def with_command(record: RunRecord, command: Command, *, model: str | None) -> RunRecord:
    """The run with the command's text in place of the call, which everybody then sees. The fingerprint stays that of
    the call: the same again is the same run, even if the command's file has changed since."""
    call = _CALL.fullmatch(record.run.prompt)
    arguments = call[2] or "" if call is not None else ""
    run = msgspec.structs.replace(record.run, prompt=expand(command, arguments))
    options = msgspec.structs.replace(record.options, agent=command.agent)
    return replace(record, run=run, model=record.model or model, options=options)


def queued_alone(record: RunRecord) -> RunRecord:
    """The run with a turn of its own: no other takes it in."""
    return replace(record, run=msgspec.structs.replace(record.run, delivery=Delivery.QUEUE))


def _check(request: Submit) -> None:
    if not request.session_id:
        raise SessionMissing
    if request.model is not None and "/" not in request.model:
        raise BadInput(f"model must be provider/model (got {request.model!r}).", code="bad_model")
    if request.schema is not None:
        check_schema(request.schema)
    check_delivery(request.delivery, schema=request.schema is not None, plan=request.plan)
    for file in request.attachments:
        _check_attachment(file)
    if not has_words(request.prompt, request.attachments):
        raise EmptyPrompt
    if request.run_id is not None:
        check_own_id(request.run_id, field="run_id")
    if request.client_id is not None:
        check_own_id(request.client_id, field="client_id")


def check_delivery(delivery: Delivery | None, *, schema: bool, plan: bool) -> None:
    """A prompt with a schema is a turn of its own, and so is one that plans first: it may do less than others."""
    if delivery is Delivery.STEER and plan:
        message = "A prompt that plans first needs its own turn, so it cannot steer another run. Queue it."
        raise BadInput(message, code="plan_cannot_steer")
    if delivery is Delivery.STEER and schema:
        message = "A prompt with a schema needs its own answer, so it cannot steer another run. Queue it."
        raise BadInput(message, code="bad_schema")


def _check_attachment(file: Attachment) -> None:
    if (file.text is None) == (file.data is None):
        raise BadInput(f"Attachment {file.name!r} needs either text or data.", code="bad_attachment")
    try:
        base64.b64decode(file.data or "", validate=True)
    except ValueError as error:
        message = f"The data of attachment {file.name!r} is not base64: {error}."
        raise BadInput(message, code="bad_attachment") from None
    if file.data is not None and file.media_type in MEDIA_TYPES and (wrong := flaw(file.media_type, file.data)):
        # The transcript would keep it, and a provider refuse every request from then on.
        raise BadInput(f"Attachment {file.name!r} cannot be shown to a model: {wrong}.", code="bad_attachment")


def _fingerprint(request: Submit) -> str:
    """Tells whether a submit is the same again."""
    content = msgspec.json.encode((request.prompt, request.attachments))
    return hashlib.sha256(content).hexdigest()
