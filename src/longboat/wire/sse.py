"""Server-sent events, pure: a decoder that takes bytes as they arrive and returns complete frames."""

from dataclasses import dataclass

HEARTBEAT = b": heartbeat\n\n"


@dataclass(frozen=True, slots=True)
class Frame:
    """One dispatched event. `id` is the last id seen on the stream, as the SSE standard says."""

    event: str
    data: bytes
    id: str | None


class Decoder:
    """Feed it chunks; it returns the completed frames. Accepts LF, CRLF and CR line endings."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._event = ""
        self._data: list[bytes] = []
        self._id: str | None = None
        self.last_id: str | None = None
        """Where to resume after a break: the id of the last dispatched frame, never of an incomplete one."""

    def decode(self, chunk: bytes) -> list[Frame]:
        frames = []
        for line in self._lines.feed(chunk):
            frame = self._line(line)
            if frame is not None:
                frames.append(frame)
        return frames

    def _line(self, line: bytes) -> Frame | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._event = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace")
        return None

    def _dispatch(self) -> Frame | None:
        event, data = self._event, self._data
        self._event, self._data = "", []
        self.last_id = self._id
        if not data:
            return None
        return Frame(event or "message", b"\n".join(data), self.last_id)


class _Lines:
    """Splits bytes into lines. A line in many pieces is joined once, when its end has arrived.

    A CR ends its line at once; an LF that follows, perhaps in the next chunk, belongs to it. A line may have any
    length: a snapshot is one line, with every waiting prompt. The reader has chosen the server it reads from.
    """

    def __init__(self) -> None:
        self._open = bytearray()
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        if not chunk:
            return []
        after_cr, self._after_cr = self._after_cr, chunk.endswith(b"\r")
        if after_cr:
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *lines = chunk.split(b"\n")
        if self._open or not lines:
            self._open += first
        if not lines:
            return []
        if self._open:
            first = bytes(self._open)
        self._open = bytearray(lines.pop())
        return [first, *lines]
