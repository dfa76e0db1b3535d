"""Follows an event stream that passes by: where its frames end, and which cursor a reader could continue from. Pure."""

import re

_CURSOR = re.compile(rb'"cursor":"([^"]+)"')


class Follower:
    """Passes on whole frames alone: after a break, the next node continues with a frame of its own."""

    def __init__(self) -> None:
        self.cursor: str | None = None
        """The cursor of the last frame that was passed on."""
        self._tail: list[bytes] = []
        """The pieces of a frame that is not complete. They are joined once, when its end has arrived."""

    def feed(self, chunk: bytes) -> bytes:
        """The frames that are complete by now."""
        end = chunk.rfind(b"\n\n") + 2
        if end == 1:  # a frame may end between two pieces
            end = 1 if chunk.startswith(b"\n") and self._tail and self._tail[-1].endswith(b"\n") else 0
        whole = b"".join((*self._tail, chunk[:end])) if end else b""
        if end:
            self._tail.clear()
            self._note(whole)
        if end < len(chunk):
            self._tail.append(chunk[end:])
        return whole

    def drop_tail(self) -> None:
        """The stream broke: the rest of its last frame will not come."""
        self._tail.clear()

    def _note(self, frames: bytes) -> None:
        """Payloads are JSON, so an empty line can only be the end of a frame."""
        last = frames.rfind(b"\n\nid: ") + 2
        numbered = last if last > 1 else (0 if frames.startswith(b"id: ") else -1)
        snapshot = frames.rfind(b"event: snapshot\n")
        if snapshot > numbered:
            found = _CURSOR.search(frames, snapshot)
            if found is not None:
                self.cursor = found[1].decode()
        elif numbered >= 0:
            self.cursor = frames[numbered + 4 : frames.index(b"\n", numbered)].decode()
