"""Which shell commands only read. Each is listed with the options that are known to be harmless, and no others.

Owns the commands that bash may run without a rule. When in doubt a command is left out: a question to the user costs
less than a mistake. Must not know rules or where the workspace is: it says which words are paths; the caller checks
them.
"""

import re
from collections.abc import Sequence

from longboat.permissions.shell.option_tables import COREUTILS, DATE, GIT, GREP, LS, OTHER_READERS, RG, TREE
from longboat.permissions.shell.options import CommandLine, Options, read_command_line
from longboat.permissions.shell.script import Command, Kind, Word, plain_name
from longboat.permissions.shell.syntax import names

_SED_PRINT = re.compile(r"[0-9]+(?:,(?:[0-9]+|\$))?p(?:;[0-9]+(?:,(?:[0-9]+|\$))?p)*")
_GLOB_OF_FILES = re.compile(r"(?:\./)?[A-Za-z0-9_]")
_GLOB_BY_ENDING = re.compile(r"\*\.[A-Za-z0-9]+")
_GLOB_OF_GREP = re.compile(r"--(?:include|exclude|exclude-dir)=[A-Za-z0-9_.*?-]+")

_TEXT = names(": echo false id nproc printf pwd seq sleep tr true uname whoami")
"""These never read, write or run a file, whatever their arguments."""

_VERSIONED = frozenset({"gcc", "git", "make", "node", "python", "python3"})

FIND_BARE = names(
    "-not ! -a -and -o -or ( ) -empty -executable -ls -mount -print -print0 -prune -quit -readable -writable -xdev"
)
FIND_VALUED = names(
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
"""Complete commands that are harmless even without the read-only wall."""


def harmless_paths(command: Command) -> tuple[Word, ...] | None:
    """The words that may be paths to read, if this does nothing but look; None if it may do more."""
    name = plain_name(command.words[0])
    if any(not _known(word, name) for word in command.words):
        return None
    words = command.words[1:]
    if name in _TEXT or (name in _VERSIONED and words == (Word("--version"),)):
        return tuple(word for word in words if word.kind is Kind.GLOB)  # it tells which files there are
    if any(word.kind is Kind.STATUS for word in words):
        return None
    if options := COREUTILS.get(name) or OTHER_READERS.get(name):
        return _named_files(options, words)
    special = _SPECIAL.get(name)
    return special(words) if special else None


def _known(word: Word, name: str) -> bool:
    """Whether it is one word, or names of files that no option can be among, or none that matters."""
    if word.kind is Kind.GLOB:
        return bool(_GLOB_OF_FILES.match(word.text)) or (
            ((name in COREUTILS or name == "ls") and bool(_GLOB_BY_ENDING.fullmatch(word.text)))
            or (name == "grep" and bool(_GLOB_OF_GREP.fullmatch(word.text)))
        )
    return word.kind is not Kind.DYNAMIC


def _named_files(options: Options, words: Sequence[Word]) -> tuple[Word, ...] | None:
    """The operands, and the values of options that may be paths."""
    line = read_command_line(options, words)
    return None if line is None else (*line.operands, *line.paths(options))


def _git(words: Sequence[Word]) -> tuple[Word, ...] | None:
    if words[:1] in ((Word("--no-pager"),), (Word("-P"),)):
        words = words[1:]
    texts = [word.text for word in words]
    if texts in (["remote"], ["remote", "-v"], ["stash", "list"], ["tag"], ["tag", "-l"], ["tag", "--list"]):
        return ()
    options = GIT.get(texts[0]) if texts else None
    line = read_command_line(options, words[1:]) if options else None
    if options is None or line is None:
        return None
    if any(word.text.startswith("-") for word in line.operands):
        return None  # `git blame -- FILE --output=X` moves its words about, and takes the last one for an option.
    if not all(runs_nothing(texts[0], value.text) for value in line.values("format", "pretty")):
        return None
    return (*line.operands, *line.paths(options))


def _grep(words: Sequence[Word]) -> tuple[Word, ...] | None:
    line = read_command_line(GREP, words)
    if line is None:
        return None
    return (*_searched(line, has_pattern=line.has("e", "regexp", "f", "file")), *line.paths(GREP))


def _ls(words: Sequence[Word]) -> tuple[Word, ...] | None:
    return _named_files(LS, words)


def _rg(words: Sequence[Word]) -> tuple[Word, ...] | None:
    line = read_command_line(RG, words)
    if line is None:
        return None
    return (*_searched(line, has_pattern=line.has("e", "regexp", "files", "type-list")), *line.paths(RG))


def _searched(line: CommandLine, *, has_pattern: bool) -> tuple[Word, ...]:
    """The operands without the pattern, which is the first unless an option holds one. A glob stands for any number of
    words, so the files behind its first one are searched."""
    is_pattern = not has_pattern and bool(line.operands) and line.operands[0].literal
    return line.operands[1:] if is_pattern else line.operands


def _find(words: Sequence[Word]) -> tuple[Word, ...] | None:
    starts = next((at for at, word in enumerate(words) if word.text[:1] in ("-", "!", "(")), len(words))
    paths = list(words[:starts])
    rest = iter(words[starts:])
    for word in rest:
        if word.text in FIND_VALUED:
            value = next(rest, None)
            if value is None:
                return None
            paths += [value] if word.text == "-newer" else []
        elif word.text not in FIND_BARE:
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
    return _named_files(TREE, rest)


def _date(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """An operand without a plus sets the clock."""
    line = read_command_line(DATE, words)
    return () if line is not None and all(word.text.startswith("+") for word in line.operands) else None


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


_ANY_WORD = r"[A-Za-z0-9_=,:;.*+ -]*"
_PERSON = r"[ac](?:n|N|e|E|l|L|d|D|r|t|i|I|s|h)"
_OF_COMMITS = re.compile(
    rf"""%% | %[-+ ]?(?:
        n | x[0-9A-Fa-f]{{2}} | [HhTtPpDdSesfbBNm] | {_PERSON} | g[DdsnNeE]
        | C(?:red|green|blue|reset | \({_ANY_WORD}\)) | w\({_ANY_WORD}\) | (?:<|>|>>|><)\|?\({_ANY_WORD}\)
        | \((?:trailers|decorate)(?::[^()%]*)?\)
    )""",
    re.VERBOSE,
)
_ATOMS = r"""
    HEAD|align|authordate|authoremail|authorname|author|body|color|committerdate|committeremail|committername|committer
    |contents|creatordate|creator|deltabase|else|end|if|numparent|objectname|objectsize|objecttype|parent|push|refname
    |subject|symref|then|tree|upstream|worktreepath
"""
_OF_REFS = re.compile(rf"%(?:%|[0-9A-Fa-f]{{2}}|\(\*?(?:{_ATOMS})(?::{_ANY_WORD})?\))", re.VERBOSE)


def runs_nothing(subcommand: str, text: str) -> bool:
    """Whether this value of `--format` or `--pretty` has no placeholder but known ones."""
    known = _OF_REFS if subcommand == "branch" else _OF_COMMITS
    return "%" not in known.sub("", text)
