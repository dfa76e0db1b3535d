"""The files that one server has open. Owns their versions; reads no file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longboat.tools.lsp.client.server_specs import language_of
from longboat.tools.lsp.client.shapes import Capabilities, SyncOptions

MAX_OPEN = 64
"""The one that was used longest ago is closed for another."""
_NO_CHANGES = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    text: str
    version: int
    sent_at: int
    """When it was sent, by the clock of the server's diagnostics."""


class Documents:
    def __init__(
        self, notify: Callable[[str, Any], None], capabilities: Capabilities, clock: Callable[[], int]
    ) -> None:
        self._notify = notify
        self._clock = clock
        self._open: dict[Path, Document] = {}
        self._version = 0
        sync = capabilities.text_document_sync
        options = sync if isinstance(sync, SyncOptions) else SyncOptions(change=sync)
        self._takes_changes = options.change != _NO_CHANGES
        self._save = options.save

    @property
    def paths(self) -> tuple[Path, ...]:
        """What is open, the longest unused first."""
        return tuple(self._open)

    def get(self, path: Path) -> Document | None:
        return self._open.get(path)

    def put(self, path: Path, text: str) -> Document:
        """Make the server know the file as `text`."""
        old = self._open.pop(path, None)
        if old is not None and old.text == text:
            self._open[path] = old
            return old
        # One count for all files, so that a file opened again never has a version that an old diagnostic carries.
        self._version += 1
        uri = path.as_uri()
        if old is not None and self._takes_changes:
            changed = {"textDocument": {"uri": uri, "version": self._version}, "contentChanges": [{"text": text}]}
            self._notify("textDocument/didChange", changed)
        else:
            if old is not None:
                self._notify("textDocument/didClose", {"textDocument": {"uri": uri}})
            opened = {"uri": uri, "languageId": language_of(path), "version": self._version, "text": text}
            self._notify("textDocument/didOpen", {"textDocument": opened})
        self._open[path] = Document(text=text, version=self._version, sent_at=self._clock())
        while len(self._open) > MAX_OPEN:
            self.close(next(iter(self._open)))
        return self._open[path]

    def saved(self, path: Path) -> None:
        """Tell that what is open is what is on disk: some servers check only then."""
        document = self._open.get(path)
        if document is None or self._save is None or self._save is False:
            return
        with_text = isinstance(self._save, dict) and self._save.get("includeText")
        text = {"text": document.text} if with_text else {}
        self._notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}, **text})

    def close(self, path: Path) -> None:
        if self._open.pop(path, None) is not None:
            self._notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
