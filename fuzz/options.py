"""Command lines of real programs by chance, from the options that each program's own help names.

Owns which programs, where their options are found, and the odd places and values that are tried. Must not know which
options the reader takes for harmless: it asks, so as to use those more often.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

Argv = tuple[str, ...]

_GIT = (
    *("blame", "branch", "cat-file", "describe", "diff", "log", "ls-files", "ls-tree", "merge-base", "reflog"),
    *("rev-list", "rev-parse", "show", "status", "remote", "stash", "tag", "grep", "shortlog", "for-each-ref"),
    *("diff-tree",),
)
_WITH_HISTORY = frozenset({"blame", "diff", "log", "reflog", "rev-list", "show"})
_OTHERS = (
    *("rg", "find", "sed", "awk", "sort", "tar", "grep", "egrep", "fgrep", "ls", "diff", "du", "file", "uniq", "wc"),
    *("md5sum", "sha256sum", "date", "tree", "basename", "cat", "cmp", "comm", "cut", "dirname", "fold", "head"),
    *("nl", "paste", "readlink", "realpath", "rev", "stat", "tac", "tail", "which", "id", "nproc", "printf", "seq"),
    *("tr", "uname", "whoami", "echo", "test"),
)
_OPTION = re.compile(r"(?<![\w-])(--[A-Za-z][\w-]*|-[A-Za-z0-9](?![\w-]))")
_LONG_WITH_ONE_DASH = re.compile(r"(?<![\w-])(-[A-Za-z][\w-]*)")
_IN_BINARY = re.compile(rb"\0(--[a-z][a-z0-9-]+)=?(?=\0)")
_ENDLESS = frozenset({"-f", "-F", "--follow", "--retry", "--pid"})
"""Of `tail`: it would wait for more."""

_VALUES = (
    *("--", "--", "-", "a", "b", "src", "src/a.py", "1", "0", "p", "./evil.sh", "HEAD", "HEAD~1", "v1", "HEAD:a"),
    *("x", "1,2:a", ":f:src/a.py", "%H", "%G?", "%+G?", "%-GG", "% GS", "%(signature)", "%(trailers)", "never"),
    *("always", "*", "--output=p", "--outp=p", "-op", "-o", "--pre=./evil.sh", "--pre", "--hostname-bin=./evil.sh"),
    *("-z", "-Op", "-w", "--compress-program=./evil.sh", "--files0-from=a", "-T.", "--ext-diff", "--textconv"),
    *("--show-signature", "-i", "-exec", "touch", ";", "{}", "+", "-delete", "-fprint", "-fprintf", "-fls", "-ok"),
    *("-okdir", "-execdir", "-p", "w p", "1w p", "1e", "1e touch p", "s/a/b/w p", "1p", "1,2p;3p", "$p"),
    *("--to-command=./evil.sh", "-I./evil.sh", "--checkpoint=1", "--checkpoint-action=exec=./evil.sh"),
    *('BEGIN{system("touch p")}', '{print > "p"}', "@a", "="),
)
_DANGERS: dict[str, tuple[str, ...]] = {
    "git": ("--output=p", "--ext-diff", "--textconv", "--show-signature", "--format=%G?"),
    "rg": ("--pre=./evil.sh", "--hostname-bin=./evil.sh", "--search-zip"),
    "sort": ("--output=p", "-op", "--compress-program=./evil.sh"),
    "find": ("-delete", "-fprint", "-fls"),
    "sed": ("-i", "--in-place", "1w p"),
    "tree": ("-o", "-op"),
    "tar": ("--to-command=./evil.sh", "-xf", "-I./evil.sh"),
}
"""What must never be allowed: tried behind every option that is."""


@dataclass(frozen=True, slots=True)
class Program:
    start: Argv
    """Its name, and for git the subcommand."""
    options: tuple[str, ...]

    @property
    def dangers(self) -> tuple[str, ...]:
        return _DANGERS.get(self.start[0], ("--output=p", "p"))


@cache
def programs() -> tuple[Program, ...]:
    """Those that are installed."""
    starts: list[Argv] = [("git", name) for name in _GIT] if shutil.which("git") else []
    starts += [(name,) for name in _OTHERS if shutil.which(name)]
    return tuple(Program(start, _options_of(start)) for start in starts)


def _options_of(start: Argv) -> tuple[str, ...]:
    match start:
        case ("git", _):
            found = _OPTION.findall(_said_by(*start, "-h"))
            found += _said_by(*start, "--git-completion-helper-all").split()
            if start[1] in _WITH_HISTORY:
                # The options for choosing commits and drawing differences are in no help that the program itself has.
                found = [*found, *_in_binary("git"), "-L", "-S", "-G", "-O", "-n", "-p", "-U"]
        case ("find",):
            found = _LONG_WITH_ONE_DASH.findall(_said_by("find", "--help"))
        case ("tail",):
            found = [each for each in _OPTION.findall(_said_by("tail", "--help")) if each not in _ENDLESS]
        case _:
            found = _OPTION.findall(_said_by(*start, "--help"))
    return tuple(dict.fromkeys(each.removesuffix("=") for each in found))


@cache
def _in_binary(name: str) -> tuple[str, ...]:
    content = Path(shutil.which(name) or name).read_bytes()
    return tuple(sorted({each.decode() for each in _IN_BINARY.findall(content)}))


def _said_by(*argv: str) -> str:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=20)
    return done.stdout + done.stderr


class KnownOptions:
    """Those that the reader allows in some form: only with these can anything be wrong."""

    def __init__(self, allows: Callable[[Sequence[str]], bool]) -> None:
        self._allows = allows
        self._found: dict[Argv, tuple[str, ...]] = {}

    def of(self, program: Program) -> tuple[str, ...]:
        if program.start not in self._found:
            self._found[program.start] = tuple(
                each
                for each in program.options
                if self._allows((*program.start, each, "1"))
                or self._allows((*program.start, f"{each}=1" if each.startswith("--") else each))
            )
        return self._found[program.start]


def sweep(program: Program, known: KnownOptions) -> Iterator[Argv]:
    """Every option that is known, by itself and before whatever must not be allowed."""
    for danger in program.dangers:
        yield (*program.start, "--", "a", danger)
    for option in known.of(program):
        start = (*program.start, option)
        yield start
        yield (*start, "p")
        yield (*program.start, f"{option}=p")
        yield (*program.start, f"{option}p")
        for danger in program.dangers:
            yield (*start, danger)
            yield (*start, "--", danger)
            yield (*start, "--", danger, "src")
            yield (*start, "--", "a", danger)
            yield (*start, "1", danger, "src")


class ArgvSource:
    """An endless source of command lines."""

    def __init__(self, chance: Random, known: KnownOptions) -> None:
        self._chance = chance
        self._known = known

    def argv(self) -> Argv:
        program = self._chance.choice(programs())
        known = self._known.of(program)
        words = list(program.start)
        if program.start == ("find",) and self._chance.random() < 0.7:
            words.append(self._chance.choice((".", "src")))
        while len(words) == len(program.start) or self._chance.random() < 0.6:
            words += self._item(known if known and self._chance.random() < 0.85 else program.options)
            if self._chance.random() < 0.2:
                words += (*self._chance.choice(((), ("--",), ("1",))), self._chance.choice(program.dangers))
        return tuple(words)

    def _item(self, options: tuple[str, ...]) -> Iterator[str]:
        if not options or self._chance.random() < 0.25:
            yield self._value(options)
            return
        option = self._chance.choice(options)
        match self._chance.randrange(8):
            case 0 | 1:
                yield option
            case 2 | 3:
                yield option
                yield self._value(options)
            case 4:
                yield f"{option}={self._value(options)}"
            case 5:
                yield option + self._value(options)
            case 6:
                yield option[: self._chance.randint(2, len(option))] + self._chance.choice(("", "=p", "=./evil.sh"))
            case _:
                letters = [each[1] for each in options if len(each) == 2] or ["n"]
                yield "-" + "".join(self._chance.choice(letters) for _ in range(self._chance.randint(2, 4)))

    def _value(self, options: tuple[str, ...]) -> str:
        if options and self._chance.random() < 0.15:
            return self._chance.choice(options)
        return self._chance.choice(_VALUES)
