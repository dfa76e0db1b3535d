"""Counts the source files on the way of one prompt: those of which a function runs between the request and its end.

    python -m scripts.trace_prompt            how many there are in each room, and in all
    python -m scripts.trace_prompt --files    their names, too

A server in this process, with one stream attached, answers a prompt over its unix socket; the model is a scripted
endpoint in another process. Other prompts come first, so that nothing is imported or read for the first time.
"""

import argparse
import asyncio
import os
import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import FrameType

from benchmarks.harness import environ_of, scratch, scripted_endpoint
from benchmarks.wires import RUN_COMPLETE, Wire

import longboat
from longboat.config.settings import Settings
from longboat.server.main import open_server

PACKAGE = Path(longboat.__file__).parent
WARM_UP = 3


class Trace:
    """The files of this package that run while it is on, in whatever thread."""

    def __init__(self) -> None:
        self.is_on = False
        self._files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if self.is_on and event == "call":
            self._files.add(frame.f_code.co_filename)

    def rooms(self) -> dict[str, list[str]]:
        """The files by room; those beside the rooms are in `.`."""
        found = defaultdict(list)
        for file in sorted(map(Path, self._files)):
            if file.is_relative_to(PACKAGE):
                name = file.relative_to(PACKAGE)
                found[name.parts[0] if len(name.parts) > 1 else "."].append(str(name))
        return dict(found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.trace_prompt", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", action="store_true", help="name the files")
    is_listed: bool = parser.parse_args().files
    rooms = trace()
    for room, files in sorted(rooms.items()):
        print(f"{len(files):4}  {room}")
        for file in files if is_listed else ():
            print(f"      {file}")
    print(f"{sum(map(len, rooms.values())):4}  in all")


def trace() -> dict[str, list[str]]:
    found = Trace()
    threading.setprofile(found)  # for the threads that the server starts
    sys.setprofile(found)
    try:
        with scratch() as home, scripted_endpoint() as endpoint:
            (home / "work").mkdir()
            os.environ |= environ_of(home, f"{endpoint}/v1")
            asyncio.run(_serve(home, found))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found.rooms()


async def _serve(home: Path, found: Trace) -> None:
    socket = home / "run" / "longboat.sock"
    settings = Settings(data_dir=home / "data", runtime_dir=home / "run", socket=socket, token="none")
    async with open_server(settings):
        await asyncio.to_thread(_prompt, socket, home / "work", found)


def _prompt(socket: Path, directory: Path, found: Trace) -> None:
    with Wire(socket) as wire, Wire(socket) as stream:
        workspace = f"/v1/workspaces/{wire.ask('POST', '/v1/workspaces', {'path': str(directory)})['id']}"
        session_id = wire.ask("POST", f"{workspace}/sessions", {})["id"]
        stream.send(f"GET {workspace}/events?client_id=trace HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        stream.wait_for(b"event: snapshot")
        for number in range(WARM_UP + 1):
            found.is_on = number == WARM_UP
            wire.ask("POST", f"{workspace}/agent", {"session_id": session_id, "prompt": "Why is the sky blue?"})
            stream.wait_for(RUN_COMPLETE)
        found.is_on = False


if __name__ == "__main__":
    main()
