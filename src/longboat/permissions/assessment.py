"""Compares what a call would do with the rules: which rules deny it, and which parts no rule allows.

Owns the checks for paths, web addresses and whole tools; `shell/assessment.py` adds those for bash. Must not know the
order of verdicts, nor look at the disk: paths are already resolved.
"""

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from longboat.permissions.guarded_files import is_guarded, mentions_guarded
from longboat.permissions.rules import CommandPattern, Glob, PathPattern, Rule, Rules, UrlPattern, relative_to
from longboat.wire.asks import NEEDS_APPROVAL
from longboat.wire.tools import Governs, Lists, ToolTraits


class Risk(IntEnum):
    """How risky a gap is. Of several gaps, the riskiest is shown as the reason."""

    USUAL = 0
    DESTRUCTIVE = 1
    """A command that deletes, overwrites or publishes."""
    UNKNOWN = 2
    """Longboat cannot tell what it does."""
    GUARDED = 3
    """It may change a guarded file."""
    OUTSIDE = 4
    """It leaves the workspace."""
    DENIED = 5
    """A deny rule may turn out to cover it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A part of a call that no rule allows, and the rules that would allow it; empty if no rule can."""

    why: str
    narrow: str = ""
    wide: str = ""
    brief: str = ""
    """The reason in a few words, shown beside the part itself. If empty, `why` is shown."""
    risk: Risk = Risk.USUAL
    guarded: bool = False
    """It may change a guarded file, so no rule is offered for the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    tool: str
    argument: str
    paths: tuple[str, ...]
    rules: Rules
    grants: tuple[Rule, ...]
    directory: str

    @property
    def traits(self) -> ToolTraits:
        return self.rules.traits_of(self.tool)

    def denials(self) -> Iterator[Rule]:
        """The deny rules that cover this call."""
        traits = self.traits
        for rule in self.rules.deny:
            named = rule.concerns(self.tool, traits) and self._meets(rule)
            changed = traits.writes and rule.governs_changes
            read = rule.governs_reading and self._shows(rule)
            if named or read or (changed and any(self.on_path(rule, path) for path in self.places)):
                yield rule

    def _shows(self, rule: Rule) -> bool:
        """Whether it shows files that a rule hides. If all files are hidden, names alone may still be shown."""
        match self.traits.lists:
            case Lists.NOTHING:
                return False
            case Lists.NAMES:
                return rule.pattern is not None and self._meets(rule)
            case Lists.CONTENTS:
                return self._meets(rule)

    def gaps(self) -> Iterator[Gap]:
        """What no rule allows."""
        for path in self.places:
            yield from self.path_gaps(self.tool, path)
        if self.tool not in self.rules.tools and (named := self._guarded_argument()):
            yield guarded_gap(named)
        traits = self.traits
        if not traits.needs_rule or traits.changes_paths or any(map(self._meets, self.allowing(self.tool))):
            return
        yield self._gap()

    def _guarded_argument(self) -> str:
        """The text in the arguments of a tool that Longboat does not know, such as an MCP server's, that mentions a
        guarded file, unless a rule in the configuration does. Who knows what the tool does to it."""
        patterns = (rule.pattern for rule in self.rules.allow if rule.names(self.tool))
        fitting = (each for each in patterns if isinstance(each, Glob) and each.fits(self.argument))
        if any(mentions_guarded(piece) for pattern in fitting for piece in pattern.pieces):
            return ""
        return next(filter(mentions_guarded, _lines_in(self.argument)), "")

    def doubts(self) -> Iterator[Gap]:
        """What a deny rule may turn out to cover. An allow rule does not help here."""
        return iter(())

    def rule_for_all(self) -> str:
        """The rule that allows exactly this call if its parts cannot be named; empty if there is none."""
        return ""

    @property
    def places(self) -> tuple[str, ...]:
        """The paths that it touches: as resolved, and as named."""
        named = (self.absolute(self.argument),) if self.traits.about_paths else ()
        return tuple(dict.fromkeys((*named, *map(posixpath.normpath, self.paths))))

    def allowing(self, tool: str, *, guarded: bool = False) -> Iterator[Rule]:
        """The rules that may allow a call of `tool`. No grant allows a change to a `guarded` file."""
        traits = self.rules.traits_of(tool)
        return (rule for rule in self._allowing(guarded) if rule.concerns(tool, traits))

    def _allowing(self, guarded: bool) -> tuple[Rule, ...]:
        return self.rules.allow if guarded else (*self.rules.allow, *self.grants)

    def _meets(self, rule: Rule) -> bool:
        """Whether the argument is what the rule names."""
        match rule.pattern:
            case None:
                return True
            case PathPattern():
                return any(self.on_path(rule, path) for path in self.places)
            case UrlPattern() | Glob():
                return rule.pattern.fits(self.argument)
            case CommandPattern():
                return False

    def absolute(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.directory, path))

    def on_path(self, rule: Rule, path: str) -> bool:
        return rule.pattern is None or (
            isinstance(rule.pattern, PathPattern) and rule.pattern.fits(path, self.directory)
        )

    def path_gaps(self, tool: str, path: str) -> Iterator[Gap]:
        """Whether `tool` may touch this path. A path outside the workspace and a guarded file need a rule that names
        them."""
        traits = self.rules.traits_of(tool)
        inside = relative_to(path, self.directory)
        guarded = traits.writes and is_guarded(path)
        if inside is not None and not guarded and not traits.changes_paths:
            return
        as_change = traits.writes and traits.governs is Governs.NOTHING
        as_edit = (rule for rule in self._allowing(guarded) if as_change and rule.governs_changes)
        for rule in (*self.allowing(tool, guarded=guarded), *as_edit):
            if self.on_path(rule, path) and (
                (inside is not None or _is_absolute(rule)) and (not guarded or _names_guarded(rule))
            ):
                return
        name = self.rules.tool_for(Governs.EDITING) if as_change else tool
        verb = "Writing" if traits.governs is Governs.WRITING else "Editing"
        yield path_gap(name, path, inside, guarded=guarded, verb=verb)

    def _gap(self) -> Gap:
        why = f"Calling {self.tool} {self.argument}".rstrip() + " needs your approval."
        if address := re.match(r"https?://[^/?#\\@\s]+", self.argument):
            narrow = "" if "*" in self.argument else f"{self.tool}({self.argument})"
            return Gap(why=why, narrow=narrow, wide=f"{self.tool}({address.group()}/*)")
        return Gap(why=why, narrow=self.tool)


def _lines_in(arguments: str) -> Iterator[str]:
    """The strings in a JSON value that may be a path or a command. Longer texts are contents."""
    try:
        todo = [json.loads(arguments)]
    except (ValueError, RecursionError):
        return
    while todo:
        match todo.pop():
            case str(text) if "\n" not in text:
                yield text
            case list(items):
                todo += items
            case dict(fields):
                todo += [*fields.keys(), *fields.values()]


def _is_absolute(rule: Rule) -> bool:
    return isinstance(rule.pattern, PathPattern) and rule.pattern.absolute


def _names_guarded(rule: Rule) -> bool:
    return isinstance(rule.pattern, PathPattern) and is_guarded(rule.pattern.source)


def path_gap(tool: str, path: str, inside: str | None, *, guarded: bool, verb: str) -> Gap:
    if guarded:
        return guarded_gap(path if inside is None else inside)
    shown = re.sub(r"([*?\\])", r"\\\1", path if inside is None else inside)
    narrow = f"{tool}({shown})"
    if inside is None:
        why = f"{path} is outside the workspace."
        return Gap(why=why, narrow=narrow, brief="outside the workspace", risk=Risk.OUTSIDE)
    parent = posixpath.dirname(shown)
    return Gap(
        why=f"{verb} {inside} needs your approval.",
        narrow=narrow,
        wide=f"{tool}({parent}/**)" if parent else f"{tool}(*)",
        brief=NEEDS_APPROVAL,
    )


def guarded_gap(name: str, why: str = "") -> Gap:
    """`name` is a guarded file, or “.” for the whole workspace; `why` is a riskier reason to show instead, if any."""
    told = f"This could change {name[:200]}, which controls what is allowed to run."
    if name == ".":
        told = "This could change anything in the workspace, including the files that control what is allowed to run."
    risk = Risk.OUTSIDE if why else Risk.GUARDED
    return Gap(why=why or told, brief="" if why else "could change what is allowed to run", risk=risk, guarded=True)
