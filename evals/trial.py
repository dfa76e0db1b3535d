"""One task, once: the prompt goes to the real server as `longboat run --yolo` would send it, then the judge looks.

Owns what is measured and how a failure is named.
"""

import asyncio
import shutil
import time
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from uuid import uuid4

import msgspec

from evals.judge import Judge, Wrong, copy_for, fingerprint
from evals.site import Site
from evals.task import Kind, Task
from longboat.errors import LongboatError
from longboat.wire.models import FinishPart, Message, Outcome, RunComplete
from longboat.wire.requests import Approve
from longboat.wire.statistics import CallOutcome, CallSpan

CANCEL_LIMIT_S = 30
NOBODY = "Nobody is here to answer. Decide yourself."


class Failure(StrEnum):
    """Why a trial was not solved: the first that applies."""

    PROVIDER = "provider error"
    """The model's server failed or refused."""
    TIMEOUT = "timeout"
    """The trial's time limit ended it."""
    LIMIT = "limit"
    """Longboat stopped it (steps, failures or repeats), or the model reached its output limit."""
    GAVE_UP = "gave up"
    """It called no tool where a change was needed, or said nothing where an answer was."""
    TOOL_ERRORS = "tool errors"
    """Nothing was changed, and half of its calls or more failed."""
    NO_EDIT = "no edit"
    """It called tools, but the repository is as it was."""
    WRONG = "wrong"
    """It changed something or answered, and the judge did not accept it."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one task, once."""

    task: str
    sample: int
    solved: bool
    failure: Failure | None = None
    why: str = ""
    """What the judge or the server said."""
    steps: int = 0
    """Requests to the model."""
    calls: int = 0
    failed_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended, and what it did on the way."""

    complete: RunComplete | None
    """None if the time limit ended it."""
    messages: tuple[Message, ...]
    calls: tuple[CallSpan, ...]

    @property
    def failed_calls(self) -> int:
        return sum(call.outcome is CallOutcome.FAILED for call in self.calls)

    @property
    def finish(self) -> FinishPart | None:
        parts = [part for message in self.messages for part in message.parts if isinstance(part, FinishPart)]
        return parts[-1] if parts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A trial to make."""

    task: Task
    sample: int
    model: str | None = None
    marker: str = ""
    """Selects the script of a scripted model."""
    limit_s: float = 600
    transcripts: Path | None = None
    """Where to keep what was said and called."""


async def run_trial(site: Site, order: Order) -> Trial:
    name = f"{order.task.name}-{order.sample}-{uuid4().hex[:6]}"
    directory = site.work / name
    await asyncio.to_thread(order.task.make, directory)
    before = await asyncio.to_thread(fingerprint, directory)
    began = time.monotonic()
    workspace = await site.client.join(directory, env=site.command_environ)
    try:
        # A title of its own: otherwise the small model is asked for one.
        session = await site.client.create_session(workspace.id, order.task.name)
        run_id = uuid4().hex
        complete = await _converse(site, order, workspace.id, session.id, run_id)
        seconds = time.monotonic() - began
        ended = Ended(
            complete=complete,
            messages=await _messages(site, workspace.id, session.id),
            calls=await _calls(site, workspace.id, session.id),
        )
        used = (await site.client.session_usage(workspace.id, session.id)).items
    finally:
        await site.client.release(workspace.id)
    changed = before != await asyncio.to_thread(fingerprint, directory)
    refused = await asyncio.to_thread(judge, order.task, directory, _answer(ended), changed=changed)
    failure, why = failure_of(order.task, ended, changed=changed, refused=refused)
    if order.transcripts is not None:
        _keep(order.transcripts / f"{order.task.name}-{order.sample}.json", ended.messages)
    await asyncio.to_thread(shutil.rmtree, directory)
    return Trial(
        task=order.task.name,
        sample=order.sample,
        solved=failure is None,
        failure=failure,
        why=why[:300],
        steps=sum(each.requests for each in used),
        calls=len(ended.calls),
        failed_calls=ended.failed_calls,
        input_tokens=sum(each.usage.input_tokens for each in used),
        output_tokens=sum(each.usage.output_tokens for each in used),
        seconds=round(seconds, 1),
    )


async def _converse(site: Site, order: Order, workspace_id: str, session_id: str, run_id: str) -> RunComplete | None:
    """Send the prompt and wait for the end, or for the time limit."""
    client = site.client
    try:
        async with asyncio.timeout(order.limit_s):
            events = client.run(
                f"{order.task.prompt}{order.marker}",
                workspace_id=workspace_id,
                session_id=session_id,
                run_id=run_id,
                model=order.model,
                approve=Approve.ALL,
            )
            async with aclosing(events):
                async for event in events:
                    if event.type == "question_request":
                        await client.answer_question(workspace_id, event.payload.id, NOBODY)
                    elif event.type == "run_complete" and isinstance(event.payload, RunComplete):
                        return event.payload
    except TimeoutError:
        await client.cancel_run(workspace_id, run_id)
        await client.get_run(workspace_id, run_id, wait_s=CANCEL_LIMIT_S)
        return None
    raise LongboatError("The stream ended before the run did.")


async def _messages(site: Site, workspace_id: str, session_id: str) -> tuple[Message, ...]:
    found: list[Message] = []
    after: str | None = None
    while True:
        page = await site.client.messages(workspace_id, session_id, after=after)
        found += page.items
        if page.next is None:
            return tuple(found)
        after = page.next


async def _calls(site: Site, workspace_id: str, session_id: str) -> tuple[CallSpan, ...]:
    timeline = await site.client.session_timeline(workspace_id, session_id)
    return tuple(call for run in timeline.items for call in run.calls)


def judge(task: Task, directory: Path, answer: str, *, changed: bool) -> str | None:
    """Why the attempt is refused; None if it is accepted."""
    copy = directory.with_name(f"{directory.name}-judged")
    copy_for(directory, copy)
    try:
        task.check(Judge(directory=copy, answer=answer, changed=changed))
    except Wrong as wrong:
        return str(wrong).replace(f"{copy}/", "") or "refused"
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return None


def failure_of(task: Task, ended: Ended, *, changed: bool, refused: str | None) -> tuple[Failure | None, str]:
    """A trial that did what was asked counts as solved, however it ended."""
    if refused is None:
        return None, ""
    if ended.complete is None:
        return Failure.TIMEOUT, refused
    stopped = ended.finish
    if stopped is not None and (stopped.reason in ("limit", "max_tokens") or stopped.title.startswith("Stopped")):
        return Failure.LIMIT, stopped.detail or stopped.title or refused
    if ended.complete.outcome is not Outcome.END_TURN:
        return Failure.PROVIDER, ended.complete.error or ended.complete.outcome
    return _failure_of_work(task, ended, changed=changed), refused


def _failure_of_work(task: Task, ended: Ended, *, changed: bool) -> Failure:
    """The model ended its turn by itself."""
    if task.kind is Kind.ANSWER:
        return Failure.WRONG if _answer(ended).strip() else Failure.GAVE_UP
    if changed:
        return Failure.WRONG
    if not ended.calls:
        return Failure.GAVE_UP
    return Failure.TOOL_ERRORS if ended.failed_calls * 2 >= len(ended.calls) else Failure.NO_EDIT


def _answer(ended: Ended) -> str:
    return ended.complete.text if ended.complete is not None else ""


def _keep(file: Path, messages: tuple[Message, ...]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(messages)))
