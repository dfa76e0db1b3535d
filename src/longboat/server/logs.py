"""Logs: one JSON line per record on stderr, with run_id and session_id where a record carries them. A person at a
terminal gets plain lines.

Apart from `main.py`, its only user: how a record is written has nothing to do with how the server starts and ends.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

_EXTRAS = ("workspace_id", "session_id", "run_id", "client_id")


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in _EXTRAS:
            if (value := getattr(record, name, None)) is not None:
                line[name] = str(value)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)  # not msgspec: it refuses the odd bytes that a file name may hold


def log_to_stderr(level: int = logging.INFO) -> None:
    """Send all records of this process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
    handler.setFormatter(plain if sys.stderr is not None and sys.stderr.isatty() else JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # They tell of each start, stop and odd connection, which we tell ourselves or not at all.
    for chatty in ("asyncio", "httpx2", "httpcore2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # Its warnings are each of one request, and anyone can send as many of those as the disk would hold.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
