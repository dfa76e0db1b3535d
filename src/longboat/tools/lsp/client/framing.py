"""The framing of language server messages: headers, an empty line, a body of `Content-Length` bytes. Pure.

Lines that are not headers are skipped: some servers and their start scripts print other text to standard output.
"""

import re

MAX_HEADER = 32_768
"""Bytes that may come before a body."""
MAX_BODY = 64 * 2**20

_LENGTH = re.compile(rb"content-length: *(\d{1,12})\s*$", re.IGNORECASE)


class FramingError(ValueError):
    """The stream is not what a language server sends."""


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Decoder:
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None
        self._header = 0
        self._scanned = 0

    def decode(self, data: bytes) -> list[bytes]:
        """The bodies that are complete now. Raises FramingError; the decoder is of no use then."""
        self._buffer += data
        bodies = []
        while (body := self._next()) is not None:
            bodies.append(body)
        return bodies

    def _next(self) -> bytes | None:
        while self._length is None or self._header:
            if not self._read_line():
                return None
        if len(self._buffer) < self._length:
            return None
        body = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        self._length = None
        return body

    def _read_line(self) -> bool:
        """Take one line of a header, if it is there."""
        end = self._buffer.find(b"\n", self._scanned)
        self._scanned = 0 if end >= 0 else len(self._buffer)
        if self._header + len(self._buffer[: end + 1] if end >= 0 else self._buffer) > MAX_HEADER:
            raise FramingError("it writes something other than messages to its standard output")
        if end < 0:
            return False
        line = bytes(self._buffer[:end]).rstrip(b"\r")
        del self._buffer[: end + 1]
        self._header += end + 1
        if found := _LENGTH.search(line):
            self._length = int(found[1])
            if self._length > MAX_BODY:
                raise FramingError(f"it announced a message of {self._length:,} bytes")
        elif not line and self._length is not None:
            self._header = 0
        return True
