"""Who keeps a workspace open (B3): attached clients, recently disconnected ones, and its creator."""

import asyncio
from collections.abc import Callable


class Claims:
    """Each client's streams, and the timers. `on_detach` is called when a client is gone, `on_free` when all are."""

    def __init__(
        self, *, hold_s: float, grace_s: float, on_detach: Callable[[str], None], on_free: Callable[[], None]
    ) -> None:
        self._hold_s = hold_s
        self._grace_s = grace_s
        self._on_detach = on_detach
        self._on_free = on_free
        self._streams: dict[str, set[object]] = {}
        self._leaving: dict[str, asyncio.TimerHandle] = {}
        self._hold: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def held(self) -> bool:
        return bool(self._streams) or self._hold is not None

    @property
    def streams(self) -> int:
        return sum(map(len, self._streams.values()))

    def hold(self) -> None:
        """Keep the workspace until the first stream may have come."""
        if self._hold is not None:
            self._hold.cancel()
        self._hold = asyncio.get_running_loop().call_later(self._hold_s, self._unhold)

    def attach(self, client_id: str, stream: object) -> bool:
        """A stream opened. True if the client was not attached before."""
        if client_id in self._leaving:
            self._leaving.pop(client_id).cancel()
        new = client_id not in self._streams
        self._streams.setdefault(client_id, set()).add(stream)
        if self._hold is not None:
            self._hold.cancel()
            self._hold = None
        return new

    def detach(self, client_id: str, stream: object) -> None:
        """A stream ended; the claim stays for the grace time."""
        streams = self._streams.get(client_id, set())
        if self._closed or stream not in streams:
            return  # closed or released meanwhile: the streams that the client has now are others
        streams.remove(stream)
        if not streams:
            timer = asyncio.get_running_loop().call_later(self._grace_s, self.release, client_id)
            self._leaving[client_id] = timer

    def release(self, client_id: str) -> None:
        """The client gives its claim back, now."""
        if client_id in self._leaving:
            self._leaving.pop(client_id).cancel()
        if self._streams.pop(client_id, None) is not None:
            self._on_detach(client_id)
        if not self.held:
            self._on_free()

    def close(self) -> None:
        self._closed = True
        for timer in self._leaving.values():
            timer.cancel()
        if self._hold is not None:
            self._hold.cancel()

    def _unhold(self) -> None:
        self._hold = None
        if not self.held:
            self._on_free()
