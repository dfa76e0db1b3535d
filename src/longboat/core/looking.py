"""Which shell commands only look. Each is here with the options that are known to be harmless, and no others.

Owns the built-in allowances for bash. In doubt a command is left out: being asked costs less than being wrong. Must not
know rules or where the workspace is: it says which words are paths, and the caller judges those.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from longboat.core.shell import Command, Kind, Word, plain_name
from longboat.core.shell_parts import names

_SED_PRINT = re.compile(r"[0-9]+(?:,(?:[0-9]+|\$))?p(?:;[0-9]+(?:,(?:[0-9]+|\$))?p)*")
_SEES_THROUGH = re.compile(r"-[A-Za-z0-9]*L|--de")
_FOLLOWS = re.compile(r"-[A-Za-z0-9]*[ORS]|--d")
"""Of grep; two of the letters are those of BSD."""
_GLOB_OF_FILES = re.compile(r"(?:\./)?[A-Za-z0-9_]")
_GLOB_BY_ENDING = re.compile(r"\*\.[A-Za-z0-9]+")
_GLOB_OF_GREP = re.compile(r"--(?:include|exclude|exclude-dir)=[A-Za-z0-9_.*?-]+")
_PATTERN_IN_OPTION = re.compile(r"-[A-Za-z0-9]*[ef]|--(?:reg|f|type-list)")


@dataclass(frozen=True, slots=True)
class Options:
    """The harmless options of a command: letters without a value, letters with one, long names, long names with one."""

    letters: str = ""
    valued: str = ""
    longs: frozenset[str] = frozenset()
    longs_valued: frozenset[str] = frozenset()
    numbers: bool = False
    """`-20` is an option too."""
    operands: int | None = None
    """How many there may be; None is any number."""


def _options(
    letters: str = "",
    valued: str = "",
    longs: str = "",
    longs_valued: str = "",
    *,
    numbers: bool = False,
    operands: int | None = None,
) -> Options:
    return Options(letters, valued, names(longs), names(longs_valued), numbers=numbers, operands=operands)


_ANY_OPTION = names(
    "basename cat cmp comm cut dirname fold head nl paste readlink realpath rev stat tac tail type which"
)
"""Neither writes nor runs anything, whatever the option. Every word may be a path."""

_TEXT = names(": echo false id nproc printf pwd seq sleep tr true uname whoami")
"""Neither reads, writes nor runs a file, whatever the words."""

_VERSIONED = frozenset({"gcc", "git", "make", "node", "python", "python3"})

_HISTORY = _options(
    "abcgimpqrswzEFWR",
    "nLSGU",
    """abbrev-commit all branches cached cherry-pick color check decorate exit-code find-renames first-parent follow
    full-index graph ignore-all-space ignore-space-change left-right merges minimal name-only name-status no-color
    no-decorate no-ext-diff no-merges no-patch no-renames no-textconv numstat oneline patch patch-with-stat pretty
    quiet raw relative remotes reverse shortstat staged stat summary tags word-diff""",
    """after abbrev author before color committer date decorate diff-filter find-renames format grep inter-hunk-context
    max-count pretty since skip stat unified until word-diff""",
    numbers=True,
)
_GIT = {
    "blame": _options("lswe", "L"),
    "branch": _options("arv", "", "all list no-color remotes show-current verbose", "sort format", operands=0),
    "cat-file": _options("tpse"),
    "describe": _options("", "", "all always contains dirty long tags", "abbrev match"),
    "diff": _HISTORY,
    "log": _HISTORY,
    "ls-files": _options("cdmosutvz", "", "cached deleted exclude-standard modified others stage unmerged"),
    "ls-tree": _options("drtlz", "", "full-name full-tree long name-only name-status"),
    "merge-base": _options("a", "", "all fork-point is-ancestor octopus"),
    "reflog": _options("", "n", "all oneline", "max-count", numbers=True, operands=0),
    "rev-list": _options("", "n", "all count first-parent merges no-merges reverse", "max-count since until"),
    "rev-parse": _options(
        "q",
        "",
        """abbrev-ref absolute-git-dir git-dir is-bare-repository is-inside-work-tree quiet short show-cdup show-prefix
        show-toplevel verify""",
        "short",
    ),
    "show": _HISTORY,
    "status": _options(
        "bsuvz",
        "",
        "ahead-behind branch ignored long no-renames porcelain short show-stash verbose",
        "porcelain ignored",
    ),
}
_CHECKSUM = _options("bz", "", "binary tag text zero")
_OPTIONS = {
    "md5sum": _CHECKSUM,
    "sha256sum": _CHECKSUM,
    "diff": _options("abBdEiNpqsuwyZ", "UC", "brief minimal no-color unified", "color unified"),
    "du": _options("abcDhHklmsSx0", "d", "all apparent-size human-readable summarize total", "max-depth"),
    "file": _options("bihL", "", "brief mime mime-encoding mime-type"),
    "sort": _options("bcCdfghiMmnRrsuVz", "kt", "ignore-case numeric-sort reverse unique version-sort"),
    "uniq": _options("cdDiuz", "", "count ignore-case repeated unique", operands=0),
    "wc": _options("cmlLw", "", "bytes chars lines max-line-length words"),
}
_TREE = _options("aCdfFghinNpqrsStuUv", "", "dirsfirst gitignore noreport")
_RG = _options(
    "acFHhIilNnoPpqSsUuvwx0",
    "ABCegmtTrjdM",
    """case-sensitive column count count-matches files files-with-matches files-without-match fixed-strings heading
    hidden ignore-case invert-match json line-number line-regexp max-columns-preview multiline no-filename
    no-heading no-ignore no-ignore-vcs no-line-number no-messages only-matching pcre2 pretty quiet smart-case
    stats text trim type-list unrestricted vimgrep with-filename word-regexp""",
    """after-context before-context color colors context glob iglob max-columns max-count max-depth max-filesize
    regexp replace sort sortr threads type type-not""",
)
_FIND_BARE = names(
    "-not ! -a -and -o -or ( ) -empty -executable -ls -mount -print -print0 -prune -quit -readable -writable -xdev"
)
_FIND_VALUED = names(
    """-amin -atime -cmin -ctime -group -iname -inum -ipath -iregex -links -maxdepth -mindepth -mmin -mtime -name -newer
    -newermt -path -perm -printf -regex -size -type -user -wholename"""
)

EXACT_FORMS = frozenset(
    {
        *("date", "false", "id", "nproc", "pwd", "true", "uname", "uname -a", "whoami"),
        *("ls", "ls -a", "ls -l", "ls -la", "ls -al"),
        *("git branch", "git branch -a", "git branch --show-current", "git remote", "git remote -v", "git tag"),
        *("git diff", "git diff --cached", "git diff --staged", "git diff --stat", "git show", "git show --stat"),
        *("git log", "git log --oneline", "git log --stat", "git rev-parse HEAD", "git stash list"),
        *("git status", "git status -s", "git status -sb", "git status --short"),
    }
)
"""Whole commands that are harmless even where no wall would hold one that was taken for harmless by mistake."""


def only_looks(command: Command) -> tuple[Word, ...] | None:
    """The words that may be paths to read, if this does nothing but look; None if it may do more."""
    name = plain_name(command.words[0])
    if any(not _known(word, name) for word in command.words):
        return None
    words = command.words[1:]
    if name in _TEXT or (name in _VERSIONED and words == (Word("--version"),)):
        return tuple(word for word in words if word.kind is Kind.GLOB)  # it tells which files there are
    if any(word.kind is Kind.STATUS for word in words):
        return None
    if name in _ANY_OPTION:
        return words
    if options := _OPTIONS.get(name):
        return _operands(options, words)
    special = _SPECIAL.get(name)
    return special(words) if special else None


def _known(word: Word, name: str) -> bool:
    """Whether it is one word, or names of files that no option can be among, or none that matters."""
    if word.kind is Kind.GLOB:
        return bool(_GLOB_OF_FILES.match(word.text)) or (
            ((name in _ANY_OPTION or name == "ls") and bool(_GLOB_BY_ENDING.fullmatch(word.text)))
            or (name == "grep" and bool(_GLOB_OF_GREP.fullmatch(word.text)))
        )
    return word.kind is not Kind.DYNAMIC


def _operands(options: Options, words: Sequence[Word]) -> tuple[Word, ...] | None:
    """What is no option, provided that every option is a known one. A value that stands apart counts as an operand:
    so nothing is missed should the command not take it as a value."""
    found: list[Word] = []
    rest = iter(words)
    for word in rest:
        if word.text == "--":
            found += rest
        elif not word.text.startswith("-") or word.text == "-":
            found.append(word)
        elif not _harmless(options, word.text):
            return None
    if options.operands is not None and len(found) > options.operands:
        return None
    return tuple(found)


def _harmless(options: Options, text: str) -> bool:
    if text.startswith("--"):
        name, equals, _ = text[2:].partition("=")
        return name in options.longs_valued or (name in options.longs and not equals)
    if options.numbers and text[1:].isdecimal():
        return True
    for letter in text[1:]:
        if letter in options.valued:
            return True  # The rest of the word is its value, or the next word.
        if letter not in options.letters:
            return False
    return True


def _git(words: Sequence[Word]) -> tuple[Word, ...] | None:
    if words[:1] in ((Word("--no-pager"),), (Word("-P"),)):
        words = words[1:]
    texts = [word.text for word in words]
    if texts in (["remote"], ["remote", "-v"], ["stash", "list"], ["tag"], ["tag", "-l"], ["tag", "--list"]):
        return ()
    if not texts or texts[0] not in _GIT or any(re.search(r"%(?:G|\(signature)", text) for text in texts):
        return None  # To check a signature git runs a program.
    return _operands(_GIT[texts[0]], words[1:])


def _grep(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """Any option is harmless, but those that follow links out of the workspace."""
    return None if any(_FOLLOWS.match(word.text) for word in words) else _without_pattern(words, words)


def _ls(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """Any option is harmless, but those that follow links out of the workspace."""
    return None if any(_SEES_THROUGH.match(word.text) for word in words) else tuple(words)


def _rg(words: Sequence[Word]) -> tuple[Word, ...] | None:
    operands = _operands(_RG, words)
    return None if operands is None else _without_pattern(words, operands)


def _without_pattern(words: Sequence[Word], found: Sequence[Word]) -> tuple[Word, ...]:
    """The first word that is no option is the pattern, and no path, unless an option holds the pattern."""
    first = next((at for at, word in enumerate(found) if not word.text.startswith("-")), None)
    # After `--`, or a lone `-`, a pattern may begin like an option: then any of them may be the path.
    unclear = any(word.text in ("-", "--") for word in words)
    if first is None or unclear or any(_PATTERN_IN_OPTION.match(word.text) for word in words):
        return tuple(found)
    return (*found[:first], *found[first + 1 :])


def _find(words: Sequence[Word]) -> tuple[Word, ...] | None:
    starts = next((at for at, word in enumerate(words) if word.text[:1] in ("-", "!", "(")), len(words))
    paths = list(words[:starts])
    rest = iter(words[starts:])
    for word in rest:
        if word.text in _FIND_VALUED:
            value = next(rest, None)
            paths += [value] if value and word.text == "-newer" else []
        elif word.text not in _FIND_BARE:
            return None
    return tuple(paths)


def _sed(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """Only `sed -n 10,20p FILE…`: other scripts can write and run."""
    if len(words) < 2 or words[0] != Word("-n") or not words[1].literal or not _SED_PRINT.fullmatch(words[1].text):
        return None
    return None if any(word.text.startswith("-") for word in words[2:]) else tuple(words[2:])


def _tree(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """A value goes with an option of its own alone: of `-Lo 1 x`, x is a file to write."""
    rest: list[Word] = []
    values = iter(words)
    for word in values:
        if word in (Word("-I"), Word("-L"), Word("-P")):
            if next(values, Word("-")).text.startswith("-"):
                return None
        else:
            rest.append(word)
    return _operands(_TREE, rest)


def _date(words: Sequence[Word]) -> tuple[Word, ...] | None:
    return () if all(word.text.startswith("+") or word.text in ("-u", "-R", "-I") for word in words) else None


def _all(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """Every word is a path or harmless. Without any, `set` shows all variables and `cd` goes home."""
    return tuple(words) or None


def _command(words: Sequence[Word]) -> tuple[Word, ...] | None:
    return () if words[:1] in ((Word("-v"),), (Word("-V"),)) else None


def _no_words(words: Sequence[Word]) -> tuple[Word, ...] | None:
    return None if words else ()


def _status(words: Sequence[Word]) -> tuple[Word, ...] | None:
    return () if all(word.text.isdecimal() for word in words) else None


_SPECIAL = {
    "[": _all,
    "break": _status,
    "cd": _all,
    "command": _command,
    "continue": _status,
    "date": _date,
    "egrep": _grep,
    "exec": _no_words,
    "exit": _status,
    "fgrep": _grep,
    "find": _find,
    "git": _git,
    "grep": _grep,
    "ls": _ls,
    "rg": _rg,
    "sed": _sed,
    "set": _all,
    "test": _all,
    "tree": _tree,
    "wait": _no_words,
}
