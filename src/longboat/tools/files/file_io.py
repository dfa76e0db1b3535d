"""Reads and replaces whole files, with size limits and atomically. Records for undo are the context's job (A3, A4).

A write goes to a temporary file beside its target and is renamed over it, so no one ever sees a partial file. Just
before that the target is read again; if someone has changed it in the meantime, nothing is written.
"""

import asyncio
import os
import stat
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from longboat.permissions.verdict import Need
from longboat.tasks import Tasks
from longboat.tools.context import ToolContext, ToolError
from longboat.tools.files.paths import Target, missing, resolve, unreadable
from longboat.tools.files.text import truncate_lines

MAX_BYTES = 20 * 2**20
"""Larger files are read in ranges and not edited."""
MAX_DETAIL = 100_000
"""Characters of a difference that a person who is asked is shown."""
MAX_RESULT = 8_000
"""Characters of a difference that the model is shown."""
SETTLE_S = 3.0
"""How long a canceled call waits until a change that has begun is made and recorded (T4)."""

T = TypeVar("T")
REPLACING = threading.Lock()
"""Held from the last look at a file to its replacement: of two calls that edit one file, the second sees the first."""


def open_file(target: Target) -> int:
    """A descriptor of a regular file. Never blocks and follows no symlink; raises ToolError if it is not one."""
    try:
        descriptor = os.open(target.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise missing(target) from None
    except OSError as error:
        raise unreadable(target, error) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise ToolError(f"{target.shown} is a directory. Use ls.")
    raise ToolError(f"{target.shown} is not a regular file (but a device, pipe or socket).")


def read(target: Target) -> bytes:
    """All of a file that may be edited."""
    with os.fdopen(open_file(target), "rb") as file:
        try:
            content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise unreadable(target, error) from None
    if len(content) > MAX_BYTES:
        raise ToolError(f"{target.shown} is larger than {MAX_BYTES >> 20} MB. Use bash to change it.")
    return content


def read_if_there(target: Target) -> bytes | None:
    return read(target) if os.path.lexists(target.path) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file's content before (None: it does not exist) and after a change, and the diff for people."""

    target: Target
    before: bytes | None
    after: bytes
    difference: str


async def change_file(context: ToolContext, change: Change, *, tool: str, title: str) -> list[str]:
    """Ask, make the change, and record it. Returns the paragraphs for the model: the difference and diagnostics.

    A cancel before the write leaves the file alone; one that comes later lets the write be recorded first.
    """
    target = change.target
    if len(change.after) > MAX_BYTES:
        raise ToolError(f"The new content is larger than {MAX_BYTES >> 20} MB. Split it into smaller files.")
    need = Need(
        tool=tool,
        action="edit",
        argument=target.shown,
        paths=(str(target.path),),
        title=title,
        detail=truncate_lines(change.difference, MAX_DETAIL),
    )
    await context.permit(need)
    said = await apply(context, change)
    return [part for part in (truncate_lines(change.difference, MAX_RESULT), said) if part]


async def apply(context: ToolContext, change: Change) -> str:
    """What `change_file` does once it may: for a tool that has asked already. Returns what the context says of it."""
    return await _finish_despite_cancel(_commit(context, change))


async def apply_all(context: ToolContext, changes: Sequence[Change]) -> list[str]:
    """Make several changes of files that are there: all of them, or none. Returns what the context says of each."""
    return await _finish_despite_cancel(_commit_all(context, changes))


async def _commit_all(context: ToolContext, changes: Sequence[Change]) -> list[str]:
    async with _expected(context, changes) as keys:
        await asyncio.to_thread(_replace_all, context, changes)
    return await asyncio.gather(*(_note(context, key, change) for key, change in zip(keys, changes, strict=True)))


async def _commit(context: ToolContext, change: Change) -> str:
    async with _expected(context, [change]) as (key,):
        await asyncio.to_thread(_replace, context, change)
    return await _note(context, key, change)


async def _note(context: ToolContext, key: str, change: Change) -> str:
    return await context.note_change(key, change.target.path, change.before, change.after)


@asynccontextmanager
async def _expected(context: ToolContext, changes: Sequence[Change]) -> AsyncIterator[list[str]]:
    """Undo knows of the changes before they are made, so that no crash in between hides one from it (A4)."""
    keys = [await context.expect_change(each.target.path, each.before, each.after) for each in changes]
    try:
        yield keys
    except ToolError:
        for key in keys:
            await context.forget_change(key)
        raise


async def _finish_despite_cancel(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which a cancel does not cut short: it gets `SETTLE_S` to end."""
    async with Tasks() as tasks:
        task = tasks.spawn(work, name="change files", awaited=True)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + SETTLE_S
            while not task.done() and loop.time() < deadline:
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({task}, timeout=deadline - loop.time())
            raise


def _replace(context: ToolContext, change: Change) -> None:
    target, path, before = change.target, change.target.path, change.before
    try:
        if before is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not os.access(path, os.W_OK):
            raise ToolError(f"{target.shown} is read-only. Nothing was written.")
        temporary = path.with_name(f".longboat-{token_hex(8)}")
        try:
            write_new(temporary, change.after, like=None if before is None else path)
            with REPLACING:
                _check_unchanged(context.directory, target, before)
                if not context.may_change():
                    raise ToolError(f"This server no longer owns the workspace. {target.shown} was not written.")
                os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ToolError(f"{target.shown} cannot be written: {error.strerror or error}.") from None


def _replace_all(context: ToolContext, changes: Sequence[Change]) -> None:
    made: list[Change] = []
    try:
        for change in changes:
            _replace(context, change)
            made.append(change)
    except ToolError:
        for change in made:
            back = Change(target=change.target, before=change.after, after=change.before or b"", difference="")
            with suppress(ToolError):  # changed by someone else since: theirs stays
                _replace(context, back)
        raise


def write_new(path: Path, content: bytes, *, like: Path | None) -> None:
    """A new file with the mode and, where we may, the owner of `like`; else with what the umask leaves."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
        file.write(content)
        if like is not None:
            old = like.stat()
            with suppress(PermissionError):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
        file.flush()
        os.fsync(file.fileno())


def _check_unchanged(directory: Path, target: Target, before: bytes | None) -> None:
    moved = resolve(directory, target.given).path != target.path
    if moved or read_if_there(target) != before:
        raise ToolError(f"Someone else just changed {target.shown}. Nothing was written. View it again.")
