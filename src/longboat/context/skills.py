"""Skills: instructions for particular tasks, listed by name and description, read when needed (A5).

A skill is a directory with a SKILL.md, which may refer to the other files there.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from longboat.context import front_matter
from longboat.context.file_cache import BadFile, FileCache, Found, cut, display_path, load_nearest
from longboat.context.locations import Locations

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
        return f"Skill {self.name}. Its files are in {display_path(self.path.parent)}.\n\n{self.body}"


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    description: str | None = None


def load(places: Locations, cache: FileCache) -> Found[Skill]:
    """The nearest of each name."""
    folders = places.folders("skills", *NAMES, own=NAMES)
    return load_nearest(folders, cache, _skill, file_of=lambda name: f"{name}/{FILE_NAME}")


def _skill(path: Path, text: str) -> Skill:
    document = front_matter.parse(path, text)
    head = document.fields(_Head)
    description = " ".join((head.description or "").split())
    if not description:
        raise BadFile(
            path, "the skill has no description. Say in the front matter what it is for and when to use it.", line=1
        )
    return Skill(
        name=_name(head.name) or path.parent.name,
        description=cut(description, MAX_DESCRIPTION, display_path(path)),
        path=path,
        body=cut(document.body, MAX_BODY, display_path(path)),
    )


def _name(given: str | None) -> str:
    return " ".join((given or "").split())[:64]
