"""Glob patterns: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, and `**` for any number of directories. Pure.

A pattern without a slash matches names at any depth; one with a slash matches whole paths, from the directory that is
searched. As in a shell, a wildcard at the beginning of a name does not match a dot unless that is asked for.
"""

import re
from dataclasses import dataclass

from longboat.tools.context import ToolError

MAX_ALTERNATIVES = 100
_SPECIAL = re.compile(r"[*?\[{\\]")
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Globs:
    """One pattern, with the alternatives in its braces expanded."""

    alternatives: tuple[tuple[str, ...], ...]
    regex: re.Pattern[str]

    @property
    def names(self) -> list[str]:
        """The patterns of the last part of a path: every path that matches has a name that matches one of these."""
        return [parts[-1] for parts in self.alternatives]

    @property
    def dotted(self) -> bool:
        """Hidden names are asked for by their dot."""
        return any(part.startswith(".") for parts in self.alternatives for part in parts)

    def match(self, path: str) -> bool:
        return self.regex.fullmatch(path) is not None


def split(pattern: str) -> tuple[str, str]:
    """The directory that the pattern begins with, up to its first wildcard, and the rest."""
    if not pattern.strip("/"):
        raise _empty()
    parts = pattern.split("/")
    plain = next((index for index, part in enumerate(parts) if _SPECIAL.search(part)), len(parts))
    plain = min(plain, len(parts) - 1)
    return "/".join(parts[:plain]) or ("/" if plain else ""), "/".join(parts[plain:]) or "**"


def compiled(pattern: str, *, anchored: bool = False, hidden: bool = False) -> Globs:
    """`anchored`: without a slash too, it is the whole path. `hidden`: wildcards match a dot at the beginning."""
    alternatives = [_parts(each, anchored=anchored) for each in _expanded(pattern)]
    try:
        regex = re.compile("|".join(f"(?:{_regex(parts, hidden=hidden)})" for parts in alternatives), re.DOTALL)
    except re.error as error:
        raise ToolError(f"The glob pattern {pattern!r} is invalid: {error}.") from None
    return Globs(alternatives=tuple(alternatives), regex=regex)


def _expanded(pattern: str) -> list[str]:
    done, waiting = [], [pattern]
    while waiting:
        each = waiting.pop()
        found = _BRACES.search(each)
        if found is None:
            done.append(each)
        else:
            waiting += [each[: found.start()] + option + each[found.end() :] for option in found[1].split(",")]
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ToolError(f"The glob pattern has more than {MAX_ALTERNATIVES} alternatives. Use a simpler one.")
    return done


def _parts(pattern: str, *, anchored: bool) -> tuple[str, ...]:
    whole = anchored or "/" in pattern.rstrip("/")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not parts:
        raise _empty()
    if ".." in parts:
        raise ToolError("A glob pattern cannot contain `..`. Pass the directory as path instead.")
    if pattern.endswith("/"):
        parts.append("**")
    return tuple(parts if whole else ["**", *parts])


def _empty() -> ToolError:
    return ToolError("The glob pattern is empty. Use something like *.py or src/**/*.ts.")


def _regex(parts: tuple[str, ...], *, hidden: bool) -> str:
    *directories, name = parts
    above = "".join("(?:[^/]+/)*" if part == "**" else f"{_segment(part)}/" for part in directories)
    visible = "" if hidden or name.startswith(".") else r"(?!\.)"
    return f"{above}(?:[^/]+/)*{visible}[^/]+" if name == "**" else f"{above}{visible}{_segment(name)}"


def _segment(part: str) -> str:
    pieces, at = [], 0
    while at < len(part):
        piece, at = _piece(part, at)
        pieces.append(piece)
    return "".join(pieces)


def _piece(part: str, at: int) -> tuple[str, int]:
    match part[at]:
        case "*":
            return "[^/]*", at + 1
        case "?":
            return "[^/]", at + 1
        case "\\" if at + 1 < len(part):
            return re.escape(part[at + 1]), at + 2
        case "[" if (end := part.find("]", at + 2 + (part[at + 1 : at + 2] in "!^"))) > 0:
            inner = part[at + 1 : end]
            negated = inner[0] in "!^"
            inner = re.sub(r"([\\\[&~|^])", r"\\\1", inner[1:] if negated else inner)
            return f"[{'^/' if negated else ''}{inner}]", end + 1
        case character:
            return re.escape(character), at + 1
