"""What a rule for a command does not cover although its pattern fits, unless it says so word by word.

Owns the options of git that change what git is, and the commands that change whole trees of files, with names that no
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
_REMOVERS = names("mv rm rmdir shred trash unlink")
_MODE_CHANGERS = names("chgrp chmod chown")
_REMOVERS_OF_GIT = names("checkout clean mv restore rm")
_VALUED_OF_GIT = names("-C -c --attr-source --config-env --git-dir --namespace --super-prefix --work-tree")
_READS_GIT_CONFIG = names("--get --get-all --get-color --get-regexp --get-urlmatch --list -l get list")
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


def removals(command: Command) -> tuple[str, ...]:
    """The paths, or what may be some, that it removes, moves or resets, with everything below them."""
    texts = [word.text for word in command.words[1:]]
    match plain_name(command.words[0]):
        case "mv":
            # The last word is where they are moved to, unless an option says where.
            return tuple(texts if any(re.match(r"-[A-Za-z]*t|--t", text) for text in texts) else texts[:-1])
        case name if name in _REMOVERS or (name in _MODE_CHANGERS and any(map(_RECURSIVE.match, texts))):
            return tuple(texts)
        case "git":
            return _removals_of_git(texts)
    return ()


def _removals_of_git(texts: Sequence[str]) -> tuple[str, ...]:
    subcommand, *rest = _from_subcommand(texts) or [""]
    if subcommand not in _REMOVERS_OF_GIT:
        return ()
    # `:/` and `:(top)` are the root.
    paths = ["." if text.startswith(":") else text for text in rest if not text.startswith("-")]
    return tuple(paths) if paths or subcommand != "clean" else (".",)


def sets_git_config(command: Command) -> bool:
    """Whether it changes the configuration of git, and with it the programs that git runs."""
    texts = _from_subcommand([word.text for word in command.words[1:]])
    if plain_name(command.words[0]) != "git" or texts[:1] != ["config"]:
        return False
    reads = len(texts) == 2 and not texts[1].startswith("-")
    return not reads and texts[1:2] != [] and texts[1] not in _READS_GIT_CONFIG


def _from_subcommand(texts: Sequence[str]) -> list[str]:
    """The words of git behind the options of git itself."""
    rest = list(texts)
    while rest and rest[0].startswith("-"):
        del rest[: 2 if rest[0] in _VALUED_OF_GIT else 1]
    return rest


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
