"""The TCP listener for a browser on this machine, opened on request.

Owns its port, which is stored in the data directory, so that an open page finds the server again after a restart. Only
loopback: for other machines use `longboat serve --host`.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from longboat import regular_files
from longboat.config.settings import Settings
from longboat.errors import ListenError
from longboat.server.listen import bind_tcp, url_of, write_private

HOST = "127.0.0.1"
PORT_FILE = "web-port"

log = logging.getLogger(__name__)


class BrowserPort:
    def __init__(
        self,
        settings: Settings,
        url: str | None,
        *,
        listen: Callable[[socket.socket], Awaitable[None]],
        tell: Callable[[str], None],
    ) -> None:
        """`url`: where the server listens on TCP already. `listen` answers HTTP on one more socket; `tell` makes the
        new address known."""
        self._settings = settings
        self._url = url
        self._listen = listen
        self._tell = tell
        self._opening = asyncio.Lock()

    async def open(self) -> str:
        """Where a browser reaches the server."""
        async with self._opening:
            if self._url is None:
                self._url = await self._open(_kept_port(self._file))
        return self._url

    async def reopen(self) -> None:
        """After a restart, for pages that are open. Where the port is another program's by now, they wait in vain."""
        if self._url is None and _kept_port(self._file):
            try:
                await self.open()
            except ListenError as error:
                log.warning("cannot serve the page on its previous port: %s", error.message)

    @property
    def _file(self) -> Path:
        return self._settings.data_dir / PORT_FILE

    async def _open(self, port: int) -> str:
        try:
            (bound,) = bind_tcp(HOST, port, token=self._settings.token)
        except ListenError:
            if not port:
                raise
            (bound,) = bind_tcp(HOST, 0, token=self._settings.token)
        await self._listen(bound)
        port = bound.getsockname()[1]
        with suppress(OSError):  # then only a restart is less comfortable
            write_private(self._file, str(port).encode())
        url = url_of(HOST, port)
        self._tell(url)
        return url


def _kept_port(file: Path) -> int:
    try:
        port = int(regular_files.read(file))
    except (OSError, ValueError):
        return 0
    return port if 0 < port < 65536 else 0
