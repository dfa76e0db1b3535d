"""The front matter of a Markdown file: YAML between two `---` lines, and the body below. Does not know its meaning.

Files written for other agents often have front matter that is almost YAML (`description: Use when: …`,
`argument-hint: [a] [b]`): a value that is not valid YAML is used as plain text.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from longboat.context.file_cache import BadFile

MAX_HEAD = 16_000
_MENDED = 16
"""Lines of a head that are taken as text when they are no YAML."""
_SCALAR = re.compile(r"([\w-]+):[ \t]+(\S.*)")
_PLACE = re.compile(r" - at `\$\.?(\w*).*`$")

Shape = TypeVar("Shape", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """`head` is None if the file has none. Its keys are in lower case with underscores, its scalars are text."""

    path: Path
    head: dict[str, Any] | None
    body: str
    lines: dict[str, int]
    """The line of each key."""

    def fields(self, shape: type[Shape]) -> Shape:
        """The head as `shape`; keys that it does not know are other agents' business."""
        try:
            return msgspec.convert(self.head or {}, shape, strict=False)
        except msgspec.ValidationError as error:
            place = _PLACE.search(str(error))
            key = place[1] if place else ""
            message = _PLACE.sub("", str(error))
            raise BadFile(self.path, f"{key}: {message[:1].lower()}{message[1:]}.", line=self.line(key)) from None

    def model(self, given: str | None) -> str | None:
        """The model that a head asks for, None for whichever the session has."""
        if given is None or given == "inherit":
            return None
        if given not in ("large", "small") and not re.fullmatch(r"[^\s/]+/\S+", given):
            message = f"model: {given!r} is not a model. Expected provider/model, large, small or inherit."
            raise BadFile(self.path, message, line=self.line("model"))
        if given.startswith(("local//", "local/~")):
            # These files are not reviewed before they are used, as longboat.json is.
            message = "model: only your prompt and longboat.json can name a model by its file. Give it a name there."
            raise BadFile(self.path, message, line=self.line("model"))
        return given

    def line(self, key: str) -> int:
        return self.lines.get(key, 1)


def parse(path: Path, text: str) -> Document:
    """Raises BadFile."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return Document(path=path, head=None, body=text.strip(), lines={})
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() in ("---", "...")), None)
    if end is None:
        raise BadFile(path, "the front matter that begins here is not closed with a --- line.", line=1)
    head = lines[1:end]
    if sum(map(len, head)) > MAX_HEAD:
        raise BadFile(path, f"the front matter has more than {MAX_HEAD} characters. Move text below it.", line=1)
    value = _value(path, head)
    if not isinstance(value, dict):
        raise BadFile(path, "expected `key: value` lines between the --- lines.", line=2)
    return Document(
        path=path,
        head={_plain(key): item for key, item in value.items() if item != ""},
        body="\n".join(lines[end + 1 :]).strip(),
        lines={_plain(match[1]): at + 2 for at, line in enumerate(head) if (match := re.match(r"([\w-]+):", line))},
    )


def _value(path: Path, head: list[str]) -> Any:
    import yaml  # not before there is some: a server starts without it

    head = list(head)
    first: BadFile | None = None
    for _ in range(_MENDED):
        try:
            # Builds nothing but text, lists and mappings: `no` and `1.0` are names and versions here.
            return yaml.load("\n".join(head), Loader=yaml.BaseLoader) or {}
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            at = mark.line if mark is not None else 0
            first = first or BadFile(path, f"not valid YAML: {error.problem or error.context}.", line=at + 2)
        except (yaml.YAMLError, RecursionError):
            raise BadFile(path, "not valid YAML between the --- lines.", line=2) from None
        if not _repair_line(head, at):
            break
    raise first or BadFile(path, "not valid YAML between the --- lines.", line=2)


def _repair_line(head: list[str], at: int) -> bool:
    """Quote the value on the line, unless it is quoted or there is none."""
    match = _SCALAR.fullmatch(head[at].rstrip()) if at < len(head) else None
    if match is None or match[2].startswith('"'):
        return False
    head[at] = f"{match[1]}: {json.dumps(match[2])}"
    return True


def _plain(key: str) -> str:
    return key.strip().lower().replace("-", "_")
