"""Server-sent events, pure: a decoder that takes bytes as they come and gives whole frames."""

from dataclasses import dataclass

HEARTBEAT = b": heartbeat\n\n"


@dataclass(frozen=True, slots=True)
class Frame:
    """One dispatched event. `id` is the last id seen on the stream, as the SSE standard has it."""

    event: str
    data: bytes
    id: str | None


class Decoder:
    """Feed it chunks; it returns the frames that became whole. Accepts LF, CRLF and CR line ends."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._event = ""
        self._data: list[bytes] = []
        self._id: str | None = None
        self.last_id: str | None = None
        """Where to go on after a break: the id of what was dispatched, never that of a frame cut off half-way."""

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
    """Cuts bytes into lines. A CR at the end of a chunk waits for the LF that may follow it."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        data = self._rest + chunk
        held = b""
        if data.endswith(b"\r"):
            data, held = data[:-1], b"\r"
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        self._rest = rest + held
        return lines
