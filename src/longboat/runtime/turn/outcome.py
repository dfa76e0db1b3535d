"""How turns end: the messages for a cancel, an interruption, an answer and a failure.

Owns these messages and the outcome (L13). Must not know what a turn does.
"""

import asyncio
import logging
from enum import Enum
from typing import assert_never

from longboat.core.history import text_of
from longboat.core.stream import encodable
from longboat.errors import ConfigInvalid, LimitReached, LongboatError, ModelError
from longboat.models.protocol import StopReason
from longboat.wire.models import FinishPart, FinishReason, Message, Outcome, Run

logger = logging.getLogger(__name__)

FAILED = "Longboat failed"

LOST = {
    Outcome.CANCELED: "The run was canceled before this call had a result.",
    Outcome.INTERRUPTED: "The server stopped before this call had a result. It may have had effects.",
    Outcome.ERROR: "The run failed before this call had a result.",
    Outcome.END_TURN: "This call was not made.",
}


class Stop(Enum):
    """Who ended a turn early."""

    CANCEL = "cancel"
    INTERRUPT = "interrupt"


_FINISH = {
    StopReason.END_TURN: FinishReason.END_TURN,
    StopReason.TOOL_USE: FinishReason.END_TURN,
    StopReason.MAX_TOKENS: FinishReason.MAX_TOKENS,
    StopReason.CONTENT_FILTER: FinishReason.CONTENT_FILTER,
}


def outcome_of_stop(why: Stop | None) -> tuple[Outcome, FinishPart]:
    """The outcome of a turn that did not complete."""
    match why:
        case Stop.CANCEL:
            return Outcome.CANCELED, FinishPart(reason=FinishReason.CANCELED)
        case Stop.INTERRUPT | None:
            detail = "The server stopped while this run was active. Send another prompt to continue."
            finish = FinishPart(reason=FinishReason.INTERRUPTED, title="Interrupted", detail=detail)
            return Outcome.INTERRUPTED, finish
        case _:
            assert_never(why)


CUT_OFF = {
    FinishReason.MAX_TOKENS: "The answer was cut off: the model reached its output limit.",
    FinishReason.CONTENT_FILTER: "The answer was cut off by the provider's content filter.",
}

_NO_ANSWER = {
    StopReason.MAX_TOKENS: (
        "The model reached its output limit before it said anything. Set a larger max_output_tokens for it, or a lower "
        "effort."
    ),
    StopReason.CONTENT_FILTER: "The provider's content filter blocked it. Ask in other words, or choose another model.",
}


def check_answer(answer: Message, reason: StopReason) -> None:
    """Raise ModelError if a turn would end without a word."""
    if text_of(answer).strip():
        return
    detail = _NO_ANSWER.get(
        reason, "The model returned an empty answer twice. Send the prompt again, or choose another model."
    )
    raise ModelError(detail, title="There is no answer", code="empty_answer")


def describe_finish(finish: FinishPart) -> str:
    """A finish as one line for people."""
    return f"{finish.title}: {finish.detail}" if finish.detail else finish.title


def judge_turn(task: "asyncio.Task[StopReason]", stop: Stop | None, run: Run) -> tuple[Outcome, FinishPart]:
    """The outcome: a turn that completed has completed, even if a cancel was requested (L13)."""
    if task.cancelled():
        return outcome_of_stop(stop)
    error = task.exception()
    if error is None:
        return Outcome.END_TURN, FinishPart(reason=_FINISH[task.result()])
    if stop is not None:
        return outcome_of_stop(stop)
    code = error.code if isinstance(error, LongboatError) else ""
    reason = FinishReason.ERROR
    match error:
        case LimitReached():
            reason, title, detail = FinishReason.LIMIT, "Stopped at a limit", error.message
        case ModelError():
            title, detail = error.title, error.message
        case ConfigInvalid():
            title, detail = "Invalid configuration", error.message
        case LongboatError():
            title, detail = "The turn could not continue", error.message
        case _:
            log_failure("turn failed", run, error)
            title, detail = FAILED, f"{type(error).__name__}. See the server's log for details."
    finish = FinishPart(reason=reason, title=encodable(title), detail=encodable(detail), code=code)
    return Outcome.ERROR, finish


def log_failure(what: str, run: Run, error: BaseException | None = None) -> None:
    logger.error(what, exc_info=error or True, extra={"run_id": run.run_id, "session_id": run.session_id})
