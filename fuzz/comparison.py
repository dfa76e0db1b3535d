"""What a text did, held against what the reader said that it would do.

Owns what is a finding. Must not know how texts are made.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import basename
from typing import Protocol

from fuzz.sandbox import Executed, Observed
from fuzz.vocabulary import DANGEROUS
from fuzz.workspace import HANDLER, UNKNOWN
from longboat.permissions.shell.offers import HARMLESS_NAMES
from longboat.permissions.shell.script import Script, Word, parse
from longboat.permissions.verdict import Allow, Need, Rules, judge
from longboat.tools.registry import built_in_traits

_SET_BY_BASH = frozenset({"_", "OLDPWD", "PWD", "SHLVL", HANDLER})
_OF_STDBUF = re.compile(r"_STDBUF_[IOE]=.*|LD_PRELOAD=.*/libstdbuf\.so")
_EXPECTED = re.compile(r"(?:.*/)?\.git/index\.lock|/tmp/sort\w{6}")
"""`git diff` and `git describe --dirty` write down which files have not changed, whatever they are told: the check for
hooks (`tools/process/git_config.py`) knows of it. `sort` makes a temporary file, elsewhere if `env` hides TMPDIR."""


_DANGEROUS_GIT = frozenset({"add", "commit", "push", "rm", "checkout", "fetch", "config", "-c", "-C"})
_VERSIONED = frozenset({"gcc", "make", "node", "python", "python3"})
"""They may be asked for their version, and nothing else."""


class Reader(Protocol):
    def allows(self, text: str) -> bool:
        """Whether the text runs unasked, without any rule."""
        ...

    def parse(self, text: str) -> Script: ...


@dataclass(frozen=True, slots=True)
class LongboatReader:
    directory: str

    def allows(self, text: str) -> bool:
        need = Need(tool="bash", action="run", argument=text)
        return isinstance(judge(need, rules=Rules(tools=built_in_traits()), directory=self.directory), Allow)

    def parse(self, text: str) -> Script:
        return parse(text)


@dataclass(frozen=True, slots=True)
class Surprise:
    """Something that the reader did not say."""

    kind: str
    detail: str

    @property
    def likeness(self) -> str:
        """The same for those that probably have the same cause."""
        return self.kind if self.kind == "sets" else f"{self.kind} {self.detail.partition(' ')[0]}"

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is there without the text."""

    environ: Mapping[str, str]
    run_at_login: frozenset[Sequence[str]]
    """What the profile of the system runs."""
    set_at_login: frozenset[tuple[str, str]]

    def sets(self, name: str, value: str) -> bool:
        return self.environ.get(name) == value or (name, value) in self.set_at_login


def surprises_of_text(script: Script, seen: Observed, around: Surroundings) -> Iterator[Surprise]:
    """The first program is the bash that reads the text."""
    commands = [command.words for command in (*script.commands, *script.shadows)]
    for each in seen.executed[1:]:
        argv = each.argv[1:] if basename(each.path) == UNKNOWN else each.argv
        said = argv in around.run_at_login or any(fits(words, argv) for words in commands)
        if not said or _is_dangerous(argv):
            yield Surprise("runs", " ".join(argv))
        yield from _changed_settings(each, argv, around)
    yield from _changes(seen)


def _is_dangerous(argv: Sequence[str]) -> bool:
    """Whether it should have been asked even if the reader saw it."""
    name = basename(argv[0] if argv else "")
    if name in _VERSIONED:
        return tuple(argv[1:]) != ("--version",)
    return name in DANGEROUS or (name == "git" and not _DANGEROUS_GIT.isdisjoint(argv[1:2]))


def _changes(seen: Observed) -> Iterator[Surprise]:
    for each in seen.changed:
        if not _EXPECTED.fullmatch(each.target):
            yield Surprise("changes", f"{each.call} {each.target}")


def _changed_settings(each: Executed, argv: Sequence[str], around: Surroundings) -> Iterator[Surprise]:
    """Whatever the text sets for a program must be known to be harmless: nothing else is allowed without a rule."""
    for name, value in each.environ.items():
        known = name in HARMLESS_NAMES or name in _SET_BY_BASH or _OF_STDBUF.fullmatch(f"{name}={value}")
        if not (known or around.sets(name, value)):
            yield Surprise("sets", f"{name} for {' '.join(argv)}")


def fits(words: Sequence[Word], ran: Sequence[str]) -> bool:
    """Whether bash may have made `ran` of these words. One that is not known may become any words."""
    places = {0}
    for word in words:
        if word.literal:
            places = {at + 1 for at in places if at < len(ran) and ran[at] == word.text}
        elif places:
            places = set(range(min(places), len(ran) + 1))
    return len(ran) in places


_OWN_PARTS = {"git": "git", "egrep": "grep", "fgrep": "grep"}
"""Programs that run another one as a part of themselves."""


def surprises_of_program(seen: Observed) -> Iterator[Surprise]:
    """Of a program that only looks: it runs no other one and changes nothing."""
    name = seen.executed[0].argv[0] if seen.executed else ""
    for each in seen.executed[1:]:
        if basename(each.argv[0] if each.argv else "") != _OWN_PARTS.get(name):
            yield Surprise("runs", " ".join(each.argv))
    yield from _changes(seen)
