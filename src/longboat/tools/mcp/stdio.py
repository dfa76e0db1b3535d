"""The transport to a server that we start: a program below a guard, with a line of JSON for each message.

The SDK's own would start it without a guard. Winds down as the specification says: close its input, wait, then end it.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import mcp_types as types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from longboat.errors import ConfigInvalid
from longboat.tools.mcp.settings import Target
from longboat.tools.mcp.transport import TransportState, watched
from longboat.tools.process.programs import PipedProgram, Programs

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

_CHUNK = 256 * 1024
_FLUSH_S = 0.5
"""How long the last messages may take."""
_EXIT_S = 1.0
"""How long a server may take to exit after its input was closed."""


@asynccontextmanager
async def open_stdio(
    target: Target, *, directory: Path, environ: Mapping[str, str], programs: Programs, witness: TransportState
) -> AsyncIterator["TransportStreams"]:
    env = {**get_default_environment(), **environ, **target.env}
    argv = (_executable(target, directory, env), *target.args)
    output = asyncio.StreamReader(limit=_CHUNK)
    piped = PipedProgram(asyncio.StreamReaderProtocol(output), witness.take)
    try:
        await piped.start(programs, argv, directory=directory, environ=env)
        async with _talk(piped, output) as streams:
            yield watched(streams, witness)
    finally:
        with anyio.CancelScope(shield=True):  # else it would be left running
            await piped.end()


@asynccontextmanager
async def _talk(piped: PipedProgram, output: asyncio.StreamReader) -> AsyncIterator["TransportStreams"]:
    heard, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, said = anyio.create_memory_object_stream[SessionMessage](0)
    written = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, output, heard)
        tasks.start_soon(_send, piped, said, heard, written)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True):
                # What it still prints is read and dropped: one that is stuck writing does not read its input.
                read.close()
                write.close()
                with anyio.move_on_after(_FLUSH_S):
                    await written.wait()
                piped.close_input()
                with anyio.move_on_after(_EXIT_S):
                    await piped.wait_exited()
            tasks.cancel_scope.cancel()


async def _receive(output: asyncio.StreamReader, heard: "MemoryObjectSendStream[SessionMessage | Exception]") -> None:
    """Hand on each line as a message, one at a time; read on while no one listens any more."""
    async with heard:
        async for line in _lines(output):
            try:
                await heard.send(_parse(line))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                break
    while await output.read(_CHUNK):
        pass


async def _lines(output: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """A line may be long: its pieces are joined once."""
    pieces: list[bytes] = []
    while data := await output.read(_CHUNK):
        *lines, rest = data.split(b"\n")
        for line in lines:
            yield b"".join((*pieces, line))
            pieces = []
        pieces.append(rest)


def _parse(line: bytes) -> SessionMessage | Exception:
    """What is no message is for the session to complain about."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _send(
    piped: PipedProgram,
    said: "MemoryObjectReceiveStream[SessionMessage]",
    heard: "MemoryObjectSendStream[SessionMessage | Exception]",
    written: anyio.Event,
) -> None:
    try:
        async with said:
            async for each in said:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                if piped.input_is_stuck or not piped.write(text.encode() + b"\n"):
                    await heard.aclose()  # it may be alive: the session sees an end, and no request hangs
                    return
    finally:
        written.set()


def _executable(target: Target, directory: Path, env: Mapping[str, str]) -> str:
    command = os.path.expanduser(target.command)
    if os.sep in command:
        command = str(directory / command)
    found = shutil.which(command, path=env.get("PATH"))
    if found is None:
        raise ConfigInvalid(f"mcp.{target.name}.command: the program {target.command!r} was not found")
    return found
