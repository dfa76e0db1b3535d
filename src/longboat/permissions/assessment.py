"""What a call claims to do, held against the rules: which rules deny it, and what none allows.

Owns the judgement of paths, web addresses and whole tools; `shell_claims` adds bash. Must not know the order of
verdicts, nor look at the disk: paths come resolved.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from longboat.permissions.guarded_files import is_guarded
from longboat.permissions.rules import CommandPattern, Glob, PathPattern, Rule, Rules, UrlPattern, relative_to
from longboat.wire.tools import Governs, Lists, ToolTraits


class Risk(IntEnum):
    """How much a person should know of a gap: of several, the riskiest is the reason that is shown first."""

    USUAL = 0
    DESTRUCTIVE = 1
    """A command that deletes, overwrites or publishes."""
    UNKNOWN = 2
    """It cannot be told what it does."""
    GUARDED = 3
    """It may change a guarded file."""
    OUTSIDE = 4
    """It leaves the workspace."""
    DENIED = 5
    """It may turn out to be what a rule denies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Something that no rule allows, and the rules that would; empty where no rule can."""

    why: str
    narrow: str = ""
    wide: str = ""
    brief: str = ""
    """Why, beside the thing itself; empty: as `why`."""
    risk: Risk = Risk.USUAL
    guarded: bool = False
    """It may change a guarded file: nobody is offered a rule for the call."""


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
        """The deny rules that this meets."""
        traits = self.traits
        for rule in self.rules.deny:
            named = rule.concerns(self.tool, traits) and self._meets(rule)
            changed = traits.writes and rule.governs_changes
            read = rule.governs_reading and self._shows(rule)
            if named or read or (changed and any(self.on_path(rule, path) for path in self._places())):
                yield rule

    def _shows(self, rule: Rule) -> bool:
        """Whether it shows what nobody is to view. Where that is everything, names alone may still be seen."""
        match self.traits.lists:
            case Lists.NOTHING:
                return False
            case Lists.NAMES:
                return rule.pattern is not None and self._meets(rule)
            case Lists.CONTENTS:
                return self._meets(rule)

    def gaps(self) -> Iterator[Gap]:
        """What no rule allows."""
        for path in self._places():
            yield from self.path_gaps(self.tool, path)
        traits = self.traits
        if not traits.needs_rule or traits.changes_paths or any(map(self._meets, self.allowing(self.tool))):
            return
        yield self._gap()

    def doubts(self) -> Iterator[Gap]:
        """What a deny rule may turn out to meet. No rule that allows helps here."""
        return iter(())

    def rule_for_all(self) -> str:
        """The rule that allows exactly this where its parts cannot be named; empty where there is none."""
        return ""

    def _places(self) -> tuple[str, ...]:
        """The paths that it touches: as resolved, and as named."""
        named = (self.absolute(self.argument),) if self.traits.about_paths else ()
        return tuple(dict.fromkeys((*named, *map(posixpath.normpath, self.paths))))

    def allowing(self, tool: str, *, guarded: bool = False) -> Iterator[Rule]:
        """The rules that may allow something. For a `guarded` file no grant does."""
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
                return any(self.on_path(rule, path) for path in self._places())
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
        """Whether `tool` may touch this path: outside the workspace, and where a write would change what is allowed or
        run, only by a rule that names the place."""
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
        yield path_gap(name, path, inside, guarded=guarded)

    def _gap(self) -> Gap:
        why = f"No rule allows {self.tool} {self.argument}".rstrip() + "."
        if address := re.match(r"https?://[^/?#\\@\s]+", self.argument):
            narrow = "" if "*" in self.argument else f"{self.tool}({self.argument})"
            return Gap(why=why, narrow=narrow, wide=f"{self.tool}({address.group()}/*)")
        return Gap(why=why, narrow=self.tool)


def _is_absolute(rule: Rule) -> bool:
    return isinstance(rule.pattern, PathPattern) and rule.pattern.absolute


def _names_guarded(rule: Rule) -> bool:
    return isinstance(rule.pattern, PathPattern) and is_guarded(rule.pattern.source)


def path_gap(tool: str, path: str, inside: str | None, *, guarded: bool) -> Gap:
    if guarded:
        return guarded_gap(path if inside is None else inside)
    shown = re.sub(r"([*?\\])", r"\\\1", path if inside is None else inside)
    narrow = f"{tool}({shown})"
    if inside is None:
        why = f"{path} is outside the workspace."
        return Gap(why=why, narrow=narrow, brief="outside the workspace", risk=Risk.OUTSIDE)
    parent = posixpath.dirname(shown)
    return Gap(
        why=f"No rule allows {tool} on {inside}.",
        narrow=narrow,
        wide=f"{tool}({parent}/**)" if parent else f"{tool}(*)",
        brief="no rule allows it",
    )


def guarded_gap(name: str, why: str = "") -> Gap:
    """`name` is a guarded file, or “.” for the whole workspace; `why` is a riskier reason to show, if there is one."""
    told = f"It may change {name[:200]}, which decides what may run here."
    if name == ".":
        told = "It may change anything in the workspace, also the files that decide what may run here."
    risk = Risk.OUTSIDE if why else Risk.GUARDED
    return Gap(why=why or told, brief="" if why else "may change what may run here", risk=risk, guarded=True)
