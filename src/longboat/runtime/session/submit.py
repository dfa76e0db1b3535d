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
from longboat.wire.ids import check_own_id, first_key, new_id
from longboat.wire.models import Attachment, Delivery, Run, RunState
from longboat.wire.requests import Approve, EditRun, RunShell, Submit, Summarize

SUMMARY_ASKED = "Summarize this conversation."
"""The text that people see for a request for a summary."""

_CALL = re.compile(r"/([\w.-]+(?::[\w.-]+)*)(?:\s+(.*))?", re.DOTALL)
"""`/name arguments`. A path does not match, because its first part ends with a slash."""


_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def run_from_prompt(request: Submit, *, traceparent: str | None = None, key: str | None = None) -> RunRecord:
    """Make the run of this prompt; its session assigns the seq. A malformed `traceparent` is ignored, as its standard
    requires. `key`: tells a repeated request without a run_id from a new one."""
    _check(request)
    run = Run(
        run_id=request.run_id or (_run_id_of(request, first_key(key)) if key else new_id()),
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


def _run_id_of(request: Submit, key: str) -> str:
    return f"key-{hashlib.sha256(f'{request.session_id} {key}'.encode()).hexdigest()[:32]}"


def _usual_delivery(request: Submit) -> Delivery:
    folds = request.run_id is None and request.schema is None and not request.plan
    return Delivery.STEER if folds else Delivery.QUEUE


def run_from_summarize(session_id: str, request: Summarize, *, key: str | None = None) -> RunRecord:
    """Make a run from a request for a summary. It waits for its own turn and is never folded."""
    record = run_from_prompt(
        Submit(
            session_id=session_id,
            prompt=SUMMARY_ASKED,
            run_id=request.run_id,
            delivery=Delivery.QUEUE,
            model=request.model,
            client_id=request.client_id,
        ),
        key=key,
    )
    # A separate kind: a prompt with the same words is not the same run.
    return replace(record, options=RunOptions(summarize=True), fingerprint=f"summary {record.fingerprint}")


def run_from_shell(session_id: str, request: RunShell, *, key: str | None = None) -> RunRecord:
    """Make a run from a person's shell command. Shown as typed; sending it is its approval."""
    record = run_from_prompt(
        Submit(
            session_id=session_id,
            prompt=f"!{request.command}" if request.command.strip() else "",
            run_id=request.run_id,
            delivery=Delivery.QUEUE,
            approve=Approve.ALL,
            client_id=request.client_id,
        ),
        key=key,
    )
    return replace(record, options=RunOptions(shell=request.command), fingerprint=f"shell {record.fingerprint}")


def command_name_in(prompt: str) -> str | None:
    """Return the name of the command that the prompt calls, if there is such a command."""
    call = _CALL.fullmatch(prompt)
    return call[1] if call is not None else None


def with_command_text(request: EditRun, command: Command) -> EditRun:
    """Replace a call of a command in an edit with the command's text. An accepted run cannot change its model or
    sub-agent, so commands that set one are refused."""
    if command.agent is not None or command.model is not None:
        message = f"/{command.name} sets its own model or sub-agent. Cancel this prompt and send a new one."
        raise BadInput(message, code="command_not_editable")
    call = _CALL.fullmatch(request.prompt or "")
    return msgspec.structs.replace(request, prompt=expand(command, call[2] or "" if call is not None else ""))


def with_command(record: RunRecord, command: Command, *, model: str | None) -> RunRecord:
    """Replace a call of a command with its text, which everyone then sees. The fingerprint stays that of the call: the
    same call is the same run, even if the command's file has changed since."""
    call = _CALL.fullmatch(record.run.prompt)
    arguments = call[2] or "" if call is not None else ""
    run = msgspec.structs.replace(record.run, prompt=expand(command, arguments))
    options = msgspec.structs.replace(record.options, agent=command.agent)
    return replace(record, run=run, model=record.model or model, options=options)


def queued_alone(record: RunRecord) -> RunRecord:
    """Give the run its own turn: it is never folded."""
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
    """Refuse to steer with a prompt that needs its own turn: one with a schema, or one that plans first and so may do
    less than others."""
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
        # The transcript would keep it, and a provider would refuse every later request.
        raise BadInput(f"Attachment {file.name!r} cannot be shown to a model: {wrong}.", code="bad_attachment")


def _fingerprint(request: Submit) -> str:
    """Identifies repeated submits of the same prompt."""
    content = msgspec.json.encode((request.prompt, request.attachments))
    return hashlib.sha256(content).hexdigest()
