"""Permissions (A2): what a call needs, and the verdict of the rules on it. Pure.

Owns the order deny → allow → grants → ask, and what an answer would allow from then on. Must not know how people are
asked, nor look at the disk.
"""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from longboat.permissions.assessment import Assessment
from longboat.permissions.danger import danger_of_call
from longboat.permissions.rules import PathPattern, Rule, RuleInvalid, Rules, parse_rule, parse_rules
from longboat.permissions.shell.assessment import ShellAssessment
from longboat.permissions.shell.paths import NamedPath, moves_of
from longboat.permissions.shell.script import parse
from longboat.permissions.shell.summary import describe_parts
from longboat.wire.asks import CommandPart

__all__ = [
    "Allow",
    "Ask",
    "Deny",
    "NamedPath",
    "Need",
    "Offer",
    "PathPattern",
    "Rule",
    "RuleInvalid",
    "Rules",
    "Verdict",
    "danger",
    "grant_for",
    "hidden_by",
    "judge",
    "may_be_denied",
    "named_paths",
    "parse_rule",
    "parse_rules",
    "parts_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a tool call would do, for the rules and for the person who is asked.

    `argument` is what rules match: a path relative to the workspace (absolute outside it) for file tools, a URL for the
    web, a command for a shell. `paths` are all absolute paths it touches, `only_read` those of them that a command
    only reads. `directory` is where a command runs, if not in the workspace's root; `doubt` says why even reading the
    git repository may run something. `outside` asks to run the command without the read-only wall around harmless
    commands; `has_wall` says whether there is one. `detail` is shown to the person: a diff, the whole command.
    `foreign` says that what the tool does is only the claim of a program that is not Longboat's.
    """

    tool: str
    action: str
    argument: str = ""
    paths: tuple[str, ...] = ()
    only_read: tuple[str, ...] = ()
    directory: str = ""
    doubt: str = ""
    outside: bool = False
    has_wall: bool = True
    foreign: bool = False
    title: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Allow:
    """The call is allowed."""

    harmless: bool = field(default=False, compare=False)
    """Neither a rule nor a person allowed it: it is a shell command that only reads. It runs behind the wall."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The rule that denies it, as written."""

    rule: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Why a person must decide: a sentence for that person."""

    why: str


Verdict = Allow | Deny | Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The rules that the answers “for this session” and “always” would add: exactly this call, or a wider form. With
    either the same call is not asked again. Empty if only “once” can be offered, as for guarded files."""

    narrow: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()


def judge(need: Need, *, rules: Rules, grants: tuple[Rule, ...] = (), directory: str) -> Verdict:
    """`directory` is the workspace's root, resolved, as are the paths of the need."""
    assessment = _assess(need, rules, grants, directory)
    if rule := next(assessment.denials(), None):
        return Deny(rule.text)
    if gap := max(assessment.gaps(), key=lambda gap: gap.risk, default=None):
        return Ask(gap.why)
    return Allow(harmless=isinstance(assessment, ShellAssessment) and _is_harmless(assessment))


def _is_harmless(assessment: ShellAssessment) -> bool:
    """Whether a command that is allowed needs no rule for any of its parts, and has none for all of them."""
    by_itself = replace(assessment, rules=replace(assessment.rules, allow=()), grants=())
    by_rules = replace(assessment, unwalled=True)
    return next(by_itself.gaps(), None) is None and next(by_rules.gaps(), None) is not None


def grant_for(need: Need, *, rules: Rules, grants: tuple[Rule, ...] = (), directory: str) -> Offer:
    """The rules to offer the person besides “once”."""
    assessment = _assess(need, rules, grants, directory)
    if next(assessment.denials(), None):
        return Offer()
    gaps = tuple(assessment.gaps())
    if any(gap.guarded for gap in gaps):
        return Offer()
    narrow = tuple(dict.fromkeys(gap.narrow for gap in gaps))
    wide = tuple(dict.fromkeys(gap.wide or gap.narrow for gap in gaps))
    return Offer(
        narrow=_for_all(need, assessment) if "" in narrow else narrow,
        wide=() if "" in wide or wide == narrow else wide,
    )


def _for_all(need: Need, assessment: Assessment) -> tuple[str, ...]:
    """For a call with a part that no rule can name: the rule for the whole call, and the other rules it needs."""
    if not (rule := assessment.rule_for_all()):
        return ()
    more = _assess(
        need, assessment.rules, (*assessment.grants, parse_rule(rule, assessment.rules.tools)), assessment.directory
    ).gaps()
    narrow = tuple(dict.fromkeys((*(gap.narrow for gap in more), rule)))
    return () if "" in narrow else narrow


def parts_of(
    need: Need, *, rules: Rules, grants: tuple[Rule, ...] = (), directory: str
) -> tuple[tuple[CommandPart, ...], int]:
    """The parts of a shell command that needs approval, and how many were left out."""
    assessment = _assess(need, rules, grants, directory)
    return describe_parts(assessment) if isinstance(assessment, ShellAssessment) else ((), 0)


def danger(need: Need, *, rules: Rules, directory: str) -> str:
    """Why the call is dangerous, in one sentence; empty if it is not."""
    return danger_of_call(_assess(need, rules, (), directory))


def may_be_denied(need: Need, *, rules: Rules, directory: str) -> str:
    """Why it is uncertain whether a rule denies this; empty if it is certain. For runs that ask no one."""
    doubt = next(_assess(need, rules, (), directory).doubts(), None)
    return doubt.why if doubt else ""


def named_paths(command: str, *, directory: str, start: str = "", outside: bool = False) -> tuple[NamedPath, ...]:
    """The paths inside the workspace that a shell command may name, if it runs in `start`; `outside`: and all others.
    The caller resolves them on disk and puts those that lead out through a link into `Need.paths`, so that they need
    approval."""
    need = Need(tool="", action="run", argument=command, directory=start)
    return _assess_shell(need, Rules(), (), directory).named(outside=outside)


def hidden_by(rules: Rules, *, directory: str) -> Callable[[str], bool]:
    """A test whether a rule hides an absolute path, for tools that show many files at once."""
    root = posixpath.normpath(directory)
    patterns = [rule.pattern for rule in rules.deny if rule.governs_reading and isinstance(rule.pattern, PathPattern)]
    return lambda path: any(pattern.fits(path, root) for pattern in patterns)


def _assess(need: Need, rules: Rules, grants: tuple[Rule, ...], directory: str) -> Assessment:
    if rules.traits_of(need.tool).command:
        return _assess_shell(need, rules, grants, directory)
    return Assessment(
        tool=need.tool,
        argument=need.argument,
        paths=need.paths,
        rules=rules,
        grants=grants,
        directory=posixpath.normpath(directory),
    )


def _assess_shell(need: Need, rules: Rules, grants: tuple[Rule, ...], directory: str) -> ShellAssessment:
    root = posixpath.normpath(directory)
    script = parse(need.argument)
    return ShellAssessment(
        tool=need.tool,
        argument=need.argument,
        paths=need.paths,
        rules=rules,
        grants=grants,
        directory=root,
        script=script,
        start=posixpath.normpath(posixpath.join(root, need.directory)),
        moves=moves_of(script),
        doubt=need.doubt,
        unwalled=need.outside,
        has_wall=need.has_wall,
        only_read=frozenset(need.only_read),
    )
