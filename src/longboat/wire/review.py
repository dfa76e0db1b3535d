"""Shapes for reviewing changes: the files that a session changed, as they stand now, and the text of a file."""

from longboat.wire.events import Change
from longboat.wire.shape import Shape


class ChangedFile(Shape, frozen=True, kw_only=True):
    """What is left of a session's or a run's changes to one file. Edits by others are not part of it."""

    path: str
    change: Change
    additions: int
    deletions: int
    runs: tuple[str, ...]
    """The runs that changed it, oldest first."""
    by: tuple[str, ...] = ()
    """Whose prompts these were."""
    undone_by: tuple[str, ...] = ()
    """Who undid part of the changes and has not redone it."""
    others: bool = False
    """Someone else changed the file, too."""
    hunks: int = 0
    """How many there are in the whole diff; 0 for files that are not text."""
    diff: str = ""
    """Unified, usable with `git apply`; empty for files that are not text, and if it was not requested."""
    complete: bool = True
    """False if the diff was cut because it is too long."""
    digest: str
    """Identifies the change as it is now: pass it to undo it. Empty if it cannot be undone, because it was made
    elsewhere or the path no longer leads to a regular file."""


class UndoneChange(Shape, frozen=True, kw_only=True):
    """What a person undid in a file and can redo."""

    revert_id: str
    path: str
    what: str
    """Such as `1 of 2 hunks`, or `all changes`."""
    by: str
    """Who undid it; empty if they gave no name."""


class ChangesPage(Shape, frozen=True, kw_only=True):
    items: tuple[ChangedFile, ...]
    """One for each file, in the order in which they were first changed."""
    complete: bool
    """False if there are more files."""
    undone: tuple[UndoneChange, ...] = ()
    """Of a session: what people undid in these files and can redo as the files are now, newest first, at most 20."""


class Reverted(Shape, frozen=True, kw_only=True):
    """A file in which a person undid something, or redid it."""

    path: str
    run_id: str
    revert_id: str
    """Names what was undone: pass it to redo it."""
    additions: int
    deletions: int
    file: ChangedFile | None
    """What is left of the changes to it; null if nothing is left."""


class FileText(Shape, frozen=True, kw_only=True):
    """The text of a file of the workspace, or its beginning."""

    path: str
    text: str
    size: int
    """Of the file, in bytes."""
    complete: bool
    """False if the file is longer than the text."""
