"""Net file changes for people: for each file its content before and after, and a unified diff. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from longboat.tools.files.text import NotText, decode, diff, truncate_lines

MAX_DIFF = 200_000
"""Characters of one file's diff."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetChange:
    """Consecutive changes of one file: no one else changed it in between."""

    path: str
    before: bytes | None
    after: bytes | None


Changes = Iterable[tuple[str, bytes | None, bytes | None]]
"""Path, before, after."""


def stretches_by_path(changes: Changes) -> dict[str, list[NetChange]]:
    """The changes of each file drawn together, in the order of the files' first change. A file with more than one
    stretch was changed by someone else in between."""
    files: dict[str, list[NetChange]] = {}
    for path, before, after in changes:
        stretches = files.setdefault(path, [])
        first = stretches.pop().before if stretches and stretches[-1].after == before else before
        stretches.append(NetChange(path=path, before=first, after=after))
    return files


def net_changes(changes: Changes) -> list[NetChange]:
    """All stretches; what came to nothing is left out."""
    return [
        each for stretches in stretches_by_path(changes).values() for each in stretches if each.before != each.after
    ]


def unified_diff(stretch: NetChange, name: str, limit: int = MAX_DIFF) -> tuple[str, bool]:
    """The diff, and whether it is whole; none for what is no text."""
    try:
        before, after = decode(stretch.before or b"").content, decode(stretch.after or b"").content
    except NotText:
        return "", True
    text = diff(before, after, name, new=stretch.before is None)
    if stretch.after is None:
        text = text.replace(f"+++ b/{name}\n", "+++ /dev/null\n", 1)
    return truncate_lines(text, limit), len(text) <= limit
