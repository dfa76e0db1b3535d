"""Hooks: the user's own programs, run before and after tools, at prompts and when a run has finished (A5).

A hook reads one JSON object on stdin (`HookCall`) and prints one (`HookReply`) or nothing. Exit code 2 denies, with
stderr as the reason. Any other failure is reported and never blocks. Processes it leaves running are ended with it.
An event that a hook could not decide because the server may not own the workspace any more is denied.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from longboat.context import process
from longboat.errors import ConfigInvalid

DENY_CODE = 2
MAX_TEXT = 20_000
"""Characters of a hook's reason or context."""
MAX_RESULT = 200_000
"""Characters of a tool's result that a hook is shown."""


NOT_CONFIRMED = "This server could not confirm that it still owns the workspace, so it stopped a hook."


class HookEvent(StrEnum):
    BEFORE_TOOL = "before_tool"
    """May deny or allow the call, or replace its input."""
    AFTER_TOOL = "after_tool"
    """May add to what the model reads; a denial's reason is added too."""
    PROMPT_SUBMITTED = "prompt_submitted"
    """May deny the prompt or add to it."""
    RUN_FINISHED = "run_finished"
    """Is only notified."""


class Hook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shell command. `matcher` names tools, with `*`, `?` and `|` between several; by default all match."""

    command: Annotated[str, msgspec.Meta(min_length=1)]
    matcher: Annotated[str, msgspec.Meta(pattern=r"^[\w*?| -]*$")] = "*"
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 60.0

    def matches(self, tool: str | None) -> bool:
        patterns = (pattern.strip() for pattern in (self.matcher or "*").split("|"))
        return tool is None or any(fnmatchcase(tool, pattern) for pattern in patterns)


class Hooks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `hooks` section of `longboat.json`."""

    before_tool: tuple[Hook, ...] = ()
    after_tool: tuple[Hook, ...] = ()
    prompt_submitted: tuple[Hook, ...] = ()
    run_finished: tuple[Hook, ...] = ()

    def of(self, event: HookEvent) -> tuple[Hook, ...]:
        hooks: tuple[Hook, ...] = getattr(self, event.value)
        return hooks


class HookCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The input of a hook."""

    event: HookEvent
    session_id: str
    run_id: str
    directory: str
    prompt: str | None = None
    tool: str | None = None
    call_id: str | None = None
    input: dict[str, Any] | None = None
    result: str | None = None
    is_error: bool | None = None
    outcome: str | None = None
    error: str | None = None


class HookReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The output of a hook."""

    decision: Literal["deny", "allow"] | None = None
    reason: str = ""
    input: dict[str, Any] | None = None
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResult:
    """The combined result of all hooks of one event."""

    decision: Literal["deny", "allow"] | None = None
    reason: str = ""
    input: dict[str, Any] | None = None
    """To be used instead of the tool's own; None: as it is."""
    context: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """For the people: hooks that failed."""


class _Failed(Exception):
    """A hook failed; the message says how."""


def read_hooks(section: Mapping[str, Any]) -> Hooks:
    """The hooks of one `longboat.json`. Raises ConfigInvalid: a guard that is misspelled must not be left out."""
    try:
        return msgspec.convert(section, Hooks)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        key = f"hooks{place.rstrip('`')}"
        if key.endswith(".matcher") and "regex" in message:
            message = "Expected tool names, with * and ? as wildcards and | between several"
        raise ConfigInvalid(f"{key}: {message[:1].lower()}{message[1:]}") from None


async def ask(
    hooks: Hooks, call: HookCall, *, environ: Mapping[str, str], start: process.StartProgram = process.start_unguarded
) -> HookResult:
    """Run the hooks of an event in order. Each sees the input that those before it made; the first denial ends it.

    `environ` is the environment for them: none of our keys and tokens. `start` puts them below a guard.
    """
    result = HookResult()
    for hook in hooks.of(call.event):
        if not hook.matches(call.tool):
            continue
        try:
            reply = await _run(hook, call, environ, start)
        except _Failed as failed:
            result = replace(result, problems=(*result.problems, f"Hook {_short(hook.command)!r} {failed}"))
            continue
        result = _with(result, reply)
        if result.decision == "deny":
            break
        if result.input is not None:
            call = msgspec.structs.replace(call, input=result.input)
    return result


def _with(result: HookResult, reply: HookReply) -> HookResult:
    context = (*result.context, reply.context[:MAX_TEXT]) if reply.context.strip() else result.context
    changed = reply.input is not None
    # Leave that was given before was for the input as it was then.
    decides = changed or reply.decision is not None
    return replace(
        result,
        decision=reply.decision if decides else result.decision,
        reason=_reason(reply) if decides else result.reason,
        input=reply.input if changed else result.input,
        context=context,
    )


def _reason(reply: HookReply) -> str:
    reason = reply.reason.strip()[:MAX_TEXT]
    return reason or ("A hook denied this without giving a reason." if reply.decision == "deny" else "")


async def _run(hook: Hook, call: HookCall, environ: Mapping[str, str], start: process.StartProgram) -> HookReply:
    if call.result is not None:
        call = msgspec.structs.replace(call, result=call.result[:MAX_RESULT])
    try:
        done = await process.run(
            ("/bin/sh", "-c", hook.command),
            directory=Path(call.directory),
            environ=environ,
            stdin=msgspec.json.encode(call),
            timeout_s=hook.timeout_s,
            start=start,
        )
    except process.NotConfirmed:
        return HookReply(decision="deny", reason=NOT_CONFIRMED)
    except (OSError, ValueError) as error:
        raise _Failed(f"could not be started: {error}") from None
    stderr = done.stderr.decode("utf-8", "replace").strip()
    if done.code == DENY_CODE:
        return HookReply(decision="deny", reason=stderr[:MAX_TEXT])
    if done.code is None:
        raise _Failed(f"took longer than {hook.timeout_s:g} s and was killed.")
    if done.is_cut:
        raise _Failed(f"printed more than {process.MAX_OUTPUT // 1024} KB.")
    if done.code != 0:
        raise _Failed(f"failed with exit code {done.code}: {_last_line(stderr) or 'no output'}")
    return _reply(done.stdout)


def _reply(stdout: bytes) -> HookReply:
    if not stdout.strip():
        return HookReply()
    try:
        return msgspec.json.decode(stdout, type=HookReply)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _Failed(f"printed an invalid reply: {error}. Print JSON or nothing; write notes to stderr.") from None


def _short(command: str) -> str:
    return command if len(command) <= 80 else f"{command[:79]}…"


def _last_line(text: str) -> str:
    return re.split(r"\s*\n\s*", text)[-1][:500]
