"""A server's edit of several files, as changes to show and apply, all or none. Blocking."""

import os
from collections.abc import Callable
from pathlib import Path

from longboat.tools.context import ToolError
from longboat.tools.files.file_io import Change, read
from longboat.tools.files.paths import resolve
from longboat.tools.files.text import diff
from longboat.tools.lsp.client.documents import Document
from longboat.tools.lsp.client.file_text import decoded
from longboat.tools.lsp.client.positions import apply, path_of
from longboat.tools.lsp.client.shapes import TextEdit, WorkspaceEdit

MAX_FILES = 500

_OPERATIONS = {"create": "create", "rename": "move", "delete": "delete"}
_CHANGED = "{} was changed while the language server was working. Nothing was written. Try again."

OpenDocument = Callable[[Path], Document | None]


def changes_of(edit: WorkspaceEdit, directory: Path, opened: OpenDocument) -> list[Change]:
    """What the edit makes of each file on disk, sorted by path. `opened` knows what the server has open: everything
    else it read from disk itself."""
    by_path = _by_path(edit, opened)
    if len(by_path) > MAX_FILES:
        raise ToolError(f"This would change {len(by_path)} files, more than {MAX_FILES}. Use smaller steps.")
    changes = [_change(path, edits, directory, opened(path)) for path, edits in sorted(by_path.items())]
    return [change for change in changes if change.after != change.before]


def _by_path(edit: WorkspaceEdit, opened: OpenDocument) -> dict[Path, list[TextEdit]]:
    by_path: dict[Path, list[TextEdit]] = {}
    # The protocol prefers documentChanges where a server gives both.
    if edit.document_changes is None:
        for uri, edits in (edit.changes or {}).items():
            by_path.setdefault(_path(uri), []).extend(edits)
        return by_path
    for change in edit.document_changes:
        if change.kind is not None or change.text_document is None:
            verb = _OPERATIONS.get(change.kind or "", "change")
            raise ToolError(f"The language server wants to {verb} files. Do that with bash, and the rest with edit.")
        path = _path(change.text_document.uri)
        known = opened(path)
        if known is not None and change.text_document.version not in (None, known.version):
            raise ToolError(_CHANGED.format(path.name))
        by_path.setdefault(path, []).extend(change.edits)
    return by_path


def _path(uri: str) -> Path:
    if (path := path_of(uri)) is None:
        raise ToolError(f"The language server wants to change {uri[:200]!r}, which is not a file. Nothing was changed.")
    # Two names of one file would be two changes of it.
    return Path(os.path.realpath(path))


def _change(path: Path, edits: list[TextEdit], directory: Path, known: Document | None) -> Change:
    target = resolve(directory, str(path))
    before = read(target)
    text = decoded(before, target.shown)
    if known is not None and known.text != text.content:
        raise ToolError(_CHANGED.format(target.shown))
    try:
        content = apply(text.content, edits)
        after = text.encode(content)
    except UnicodeEncodeError:
        raise ToolError(
            f"{target.shown} is encoded as {text.encoding.upper()}, which lacks some of the characters."
        ) from None
    except ValueError as error:
        raise ToolError(f"The language server's edit of {target.shown} is invalid: {error}.") from None
    return Change(target=target, before=before, after=after, difference=diff(text.content, content, target.shown))
