"""Where trials happen: a server with a home and data of its own, and the commands that every task may use.

Must not know tasks. The person's own configuration is read (it has the providers and keys), their sessions are not.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from longboat.client import Client
from longboat.config.load import user_config_file
from longboat.wire.discovery import data_dir

START_LIMIT_S = 60
STOP_LIMIT_S = 20
ROOT = Path(__file__).parents[1]


class StartFailed(Exception):
    """The server did not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    client: Client
    work: Path
    """A directory for the repositories."""
    command_environ: dict[str, str]
    """For the commands that the agent runs: `python`, `pytest`, git and the system's own."""


def scripted_config(base_url: str) -> dict[str, object]:
    """A configuration whose only model is at this address."""
    provider = {"type": "openai-compatible", "base_url": base_url, "api_key": "x", "models": [{"id": "model"}]}
    return {"providers": {"scripted": provider}, "models": {"large": "scripted/model", "small": "scripted/model"}}


@asynccontextmanager
async def open_site(config: dict[str, object] | None) -> AsyncIterator[Site]:
    """A server that answers. Without a configuration: the person's own. All of it ends with the block."""
    home = Path(tempfile.mkdtemp(prefix="evals-", dir="/tmp"))  # short enough for a socket
    try:
        server = await _start(home, _server_environ(home, config))
        try:
            async with Client(socket=home / "run" / "longboat.sock", client_id="evals") as client:
                yield Site(client=client, work=home / "work", command_environ=_command_environ(home))
        finally:
            await _stop(server)
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _start(home: Path, environ: dict[str, str]) -> Process:
    log = home / "server.log"
    with log.open("wb") as sink:
        server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "longboat", "serve"), cwd=home, env=environ, stdin=DEVNULL, stdout=PIPE, stderr=sink
        )
    assert server.stdout is not None
    try:
        async with asyncio.timeout(START_LIMIT_S):
            line = await server.stdout.readline()
    except BaseException:
        await _stop(server)
        raise
    if b"is ready" not in line:
        await _stop(server)
        raise StartFailed(log.read_text(errors="replace").strip() or f"exit code {server.returncode}")
    return server


async def _stop(server: Process) -> None:
    if server.returncode is None:
        server.terminate()
    try:
        async with asyncio.timeout(STOP_LIMIT_S):
            await server.wait()
    except TimeoutError:
        server.kill()
        await server.wait()


def _server_environ(home: Path, config: dict[str, object] | None) -> dict[str, str]:
    (home / "work").mkdir()
    (home / "data").mkdir(mode=0o700)
    own = user_config_file(os.environ, Path.home()).parents[1]
    if config is not None:
        own = home / "config"
        file = own / "longboat" / "longboat.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({**config, "titles": False, "server": {"drain_s": 0}}), encoding="utf-8")
    # Downloaded weights are large: the local model finds those that are there.
    weights = data_dir(os.environ, Path.home()) / "models"
    if weights.is_dir():
        (home / "data" / "models").symlink_to(weights.resolve())
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LONGBOAT_", "XDG_"))}
    return kept | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(own),
        "LONGBOAT_RUNTIME_DIR": str(home / "run"),
        "LONGBOAT_DATA_DIR": str(home / "data"),
    }


def _command_environ(home: Path) -> dict[str, str]:
    """Longboat keeps its own virtual environment from commands, but tasks need a Python that has pytest."""
    programs = home / "bin"
    programs.mkdir()
    for name, words in (("python", ""), ("python3", ""), ("pytest", " -m pytest")):
        file = programs / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        file.chmod(0o755)
    return {
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home / "work"),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
