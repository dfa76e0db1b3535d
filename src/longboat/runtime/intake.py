"""What a client submits becomes the record of a run, or is refused before anything is accepted (T1)."""

import base64
import hashlib

import msgspec

from longboat.core.turn import has_words
from longboat.errors import BadInput, EmptyPrompt, SessionMissing
from longboat.runtime.clock import now
from longboat.store.rows import RunRecord
from longboat.wire.ids import check_own_id, new_id
from longboat.wire.models import Attachment, Delivery, Run, RunState
from longboat.wire.requests import Submit


def take_in(request: Submit) -> RunRecord:
    """The run that this prompt would be; its session hands out the seq."""
    _check(request)
    run = Run(
        run_id=request.run_id or new_id(),
        seq=0,
        session_id=request.session_id,
        state=RunState.ACCEPTED,
        delivery=request.delivery or (Delivery.STEER if request.run_id is None else Delivery.QUEUE),
        prompt=request.prompt,
        accepted_at=now(),
        client_id=request.client_id,
    )
    return RunRecord(
        run=run,
        attachments=request.attachments,
        fingerprint=_fingerprint(request),
        model=request.model,
        approve=request.approve,
    )


def _check(request: Submit) -> None:
    if not request.session_id:
        raise SessionMissing
    if request.model is not None and "/" not in request.model:
        raise BadInput(f"model must be provider/model (got {request.model!r}).", code="bad_model")
    for file in request.attachments:
        _check_attachment(file)
    if not has_words(request.prompt, request.attachments):
        raise EmptyPrompt
    if request.run_id is not None:
        check_own_id(request.run_id, field="run_id")
    if request.client_id is not None:
        check_own_id(request.client_id, field="client_id")


def _check_attachment(file: Attachment) -> None:
    if (file.text is None) == (file.data is None):
        raise BadInput(f"Attachment {file.name!r} needs either text or data.", code="bad_attachment")
    try:
        base64.b64decode(file.data or "", validate=True)
    except ValueError as error:
        message = f"The data of attachment {file.name!r} is not base64: {error}."
        raise BadInput(message, code="bad_attachment") from None


def _fingerprint(request: Submit) -> str:
    """Tells whether a submit is the same again."""
    content = msgspec.json.encode((request.prompt, request.attachments))
    return hashlib.sha256(content).hexdigest()
