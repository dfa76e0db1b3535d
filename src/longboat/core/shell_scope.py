"""What a rule for a command does not cover although its pattern fits, unless it says so word by word.

Owns the options of git that change what git is, and the commands that put whole trees somewhere, with names that no
word shows. Must not know rules or where the workspace is.
"""

import re
from collections.abc import Sequence

from longboat.core.shell import Command, plain_name
from longboat.core.shell_parts import names

_HARMLESS_FOR_GIT = names("--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects --version --help")
_COPIERS = frozenset({"cp", "ditto", "rsync", "scp"})
_UNPACKERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("7z", "7za", "7zr"), ("-o",)),
    **dict.fromkeys(("bsdtar", "gtar", "tar"), ("-C", "--dir", "--cd")),
    **dict.fromkeys(("cpio", "jar", "pax"), ()),
    "patch": ("-d", "--dir"),
    "unar": ("-o",),
    "unzip": ("-d",),
}
"""Each with the options that choose another directory."""
_RECURSIVE = re.compile(r"-[A-Za-z]*[rRa]|--(?:r|a)")
_EXTRACTING = re.compile(r"-?[A-Za-z]*x|--(?:ex|g)")
_LISTING = re.compile(r"-?[A-Za-z]*[tcrud]|--(?:l|c|append|update|delete|diff|comp)")


def options_of_git(command: Command) -> range:
    """Where the options before the subcommand stand that choose another repository, configuration or program."""
    words = command.words
    if plain_name(words[0]) != "git":
        return range(0)
    end = 1
    while end < len(words) and words[end].text in _HARMLESS_FOR_GIT:
        end += 1
    if end == len(words) or not (words[end].text.startswith("-") or not words[end].literal):
        return range(0)
    return range(end, len(words))


def landings(command: Command) -> tuple[str, ...]:
    """The directories, or what may be some, into which it puts a tree of files whose names are not known."""
    texts = [word.text for word in command.words[1:]]
    name = plain_name(command.words[0])
    if name in _COPIERS:
        return tuple(texts) if name in ("ditto", "rsync") or any(map(_RECURSIVE.match, texts)) else ()
    if name not in _UNPACKERS or not _extracts(name, texts):
        return ()
    # Into the directory of such an option, whichever word that is; else into this one.
    return tuple(texts) if any(text.startswith(_UNPACKERS[name]) for text in texts) else (".",)


def _extracts(name: str, texts: Sequence[str]) -> bool:
    """Whether it may write files: anything but surely listing or packing."""
    match name:
        case "7z" | "7za" | "7zr":
            return texts[:1] not in (["a"], ["l"], ["t"])
        case "bsdtar" | "gtar" | "jar" | "tar":
            modes = [text for at, text in enumerate(texts) if at == 0 or text.startswith("-")]
            return any(map(_EXTRACTING.match, modes)) or not any(map(_LISTING.match, modes))
        case "unzip":
            return not any(re.match(r"-[A-Za-z]*[lptvzZ]", text) for text in texts)
    return True
