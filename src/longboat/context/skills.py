"""Skills: instructions for particular tasks, listed by name and description, read when they are needed (A5).

A skill is a directory with a SKILL.md, whose other files it may speak of.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from longboat.context import front_matter
from longboat.context.places import Places
from longboat.context.shelf import BadFile, Found, Shelf, cut, load_nearest, shown

FILE_NAME = "SKILL.md"
NAMES = (".agents/skills", ".claude/skills")
"""Where they lie, in a project and in the user's home."""
MAX_DESCRIPTION = 1_024
MAX_BODY = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    name: str
    description: str
    path: Path
    """Its SKILL.md."""
    body: str

    @property
    def text(self) -> str:
        """What the model reads of it."""
        return f"Skill {self.name}. Its files lie in {shown(self.path.parent)}.\n\n{self.body}"


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    description: str | None = None


def load(places: Places, shelf: Shelf) -> Found[Skill]:
    """The nearest of each name."""
    folders = places.folders("skills", *NAMES, own=NAMES)
    return load_nearest(folders, shelf, _skill, file_of=lambda name: f"{name}/{FILE_NAME}")


def _skill(path: Path, text: str) -> Skill:
    document = front_matter.parse(path, text)
    head = document.fields(_Head)
    description = " ".join((head.description or "").split())
    if not description:
        raise BadFile(path, "the skill has no description: say in its head what it is for and when to use it.", line=1)
    return Skill(
        name=_name(head.name) or path.parent.name,
        description=cut(description, MAX_DESCRIPTION, shown(path)),
        path=path,
        body=cut(document.body, MAX_BODY, shown(path)),
    )


def _name(given: str | None) -> str:
    return " ".join((given or "").split())[:64]
