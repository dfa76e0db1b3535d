"""Guarded files: files with rules, hooks or configuration. A change to one of them changes what is allowed to run.

Owns their list. No grant covers a guarded file, and no answer offers a rule for one: only a rule that a person wrote
and that names the file allows a change. Must not know rules, nor look at the disk.

`.gitattributes` and `.gitmodules` are not here: they only choose among programs that `.git/config` names.
"""

import re

GUARDED_DIRECTORIES = (".agents", ".claude", ".config/longboat", ".git", ".local/share/longboat")
"""Including everything in them. `.git` is a file in a worktree."""
GUARDED_FILES = (".mcp.json", "longboat.json", "longboat/credentials.json", "longboat/trusted.json")
"""Those in `longboat/` may be anywhere: `XDG_CONFIG_HOME` chooses where it is."""
GUARDED = (*GUARDED_DIRECTORIES, *GUARDED_FILES)

READ_ONLY_IN_SANDBOX = (*(name for name in GUARDED if name != ".git"), ".git/config", ".git/hooks")
"""git itself must be able to write the rest of `.git`."""

_NAMES = "|".join(map(re.escape, GUARDED))
_IN_PATH = re.compile(rf"(?:\A|/)(?:{_NAMES})(?:/|\Z)")
_IN_TEXT = re.compile(rf"(?<![\w.-])(?:{_NAMES})(?![\w.-])")
_QUOTES = re.compile(r"""['"\\]""")
_BRACES = re.compile(r"\{([^{}]*)\}")
_SEQUENCE = re.compile(r"([!-~])\.\.([!-~])(?:\.\.-?\d+)?")
_MAX_BRACES = 500
"""A word that expands to more than this is treated as possibly guarded."""


def is_guarded(path: str) -> bool:
    """Whether this is a guarded file or is in a guarded directory. Some file systems ignore case."""
    return _IN_PATH.search(path.casefold()) is not None


def mentions_guarded(text: str) -> bool:
    """Whether a text that cannot be parsed as a command contains the name of a guarded file."""
    return _IN_TEXT.search(_QUOTES.sub("", text).casefold()) is not None


def holds_guarded(path: str, directory: str) -> bool:
    """Whether the workspace `directory`, where guarded files lie, is this path or below it."""
    return directory == path or directory.startswith(path.rstrip("/") + "/")


def source_may_be_guarded(source: str) -> bool:
    """Whether a word that is only known when it runs, given as it is written, has the name of a guarded file in it or
    lists one in braces."""
    todo, seen = [_QUOTES.sub("", source)], 0
    while todo:
        word, seen = todo.pop(), seen + 1
        braces = _BRACES.search(word)
        if seen > _MAX_BRACES or (braces is None and any(map(is_guarded, re.split(r"[=:,]", word)))):
            return True
        if braces is not None:
            todo += [word[: braces.start()] + choice + word[braces.end() :] for choice in _choices(braces.group(1))]
    return False


def _choices(braces: str) -> list[str]:
    if sequence := _SEQUENCE.fullmatch(braces):
        first, last = sorted(map(ord, sequence.groups()))
        return [chr(letter) for letter in range(first, last + 1)]
    return braces.split(",")
