"""What commands may do beyond what their words say, which a rule's pattern does not cover even if it matches.

Owns the git options that change how git works, the ways to run a command that no word names, and the commands that
change whole trees of files that no word names. Must not know rules or where the workspace is.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from longboat.permissions.guarded_files import GUARDED
from longboat.permissions.shell.script import Command, plain_name
from longboat.permissions.shell.syntax import Assignment, names

_HARMLESS_FOR_GIT = names("--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects --version --help")
_SUBCOMMANDS_OF_GIT = names(
    """add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap
    check-ref-format checkout checkout-index cherry cherry-pick clean clone commit commit-graph commit-tree config
    count-objects describe diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack
    for-each-ref for-each-repo format-patch fsck gc grep hash-object help index-pack init interpret-trailers log
    ls-files ls-remote ls-tree maintenance merge merge-base merge-file merge-tree mergetool mktag mktree mv name-rev
    notes pack-objects pack-refs patch-id prune pull push range-diff read-tree rebase reflog remote repack replace
    rerere reset restore rev-list rev-parse revert rm send-email shortlog show show-branch show-index show-ref
    sparse-checkout stage stash status stripspace submodule switch symbolic-ref tag unpack-objects update-index
    update-ref update-server-info var verify-commit verify-pack verify-tag version whatchanged worktree write-tree"""
)
"""Git accepts no alias for these. Any other word may be one."""
_PLACES_FOR_GIT = ("-C", "--git-dir", "--work-tree", "--namespace")
"""Options that choose another repository. Its configuration cannot rename subcommands either."""
_RUNNING_INPUT = names("at batch crontab newgrp parallel runuser screen script su tmux")
SHELLS = names("ash bash csh dash fish ksh mksh rbash sh tcsh zsh")
_COMMAND_IN_VARIABLE = re.compile(
    r"""BASH_ENV|BASH_FUNC_.*|BASHOPTS|BROWSER|ENV|HOME|LESSCLOSE|LESSOPEN|MAKEFLAGS|PROMPT_COMMAND|PS[0-4]|SHELLOPTS
    |(?:[A-Z_]*_)?ASKPASS|GIT_(?!AUTHOR_|COMMITTER_|OPTIONAL_LOCKS|TERMINAL_PROMPT|TRACE).*""",
    re.VERBOSE,
)
_PAGER_OR_EDITOR = re.compile(r"VISUAL|(?:[A-Z_]*_)?(?:EDITOR|PAGER)")
_ONE_PROGRAM = re.compile(r"[A-Za-z0-9_.:-]*")
_RUNNING_OPTIONS = {
    "git": re.compile(r"--(?:ext-d|open-f|upload-p)[a-z-]*(?:=.*)?", re.DOTALL),
    "rg": re.compile(r"--(?:pre|hostname-bin)(?:=.*)?", re.DOTALL),
    "sort": re.compile(r"--com[a-z-]*(?:=.*)?", re.DOTALL),
}
_WRITING_OPTIONS = {
    "git": re.compile(r"--ou[a-z-]*(?:=.*)?", re.DOTALL),
    "sort": re.compile(r"-[A-Za-z0-9]*o.*|--o[a-z-]*(?:=.*)?", re.DOTALL),
}
"""Of programs that otherwise only read. Abbreviated long names count if the program accepts them."""
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
WRITING = names(
    """bsdtar chgrp chmod chown cp curl dd ditto gtar install ln mkdir mkfifo mv patch rsync sed tar tee touch truncate
    unzip wget"""
)
"""They change the files that their words name."""
_REMOVERS = names("mv rm rmdir shred trash unlink")
_MODE_CHANGERS = names("chgrp chmod chown")
_REMOVERS_OF_GIT = names("checkout clean mv restore rm")
_VALUED_OF_GIT = names("-C -c --attr-source --config-env --git-dir --namespace --super-prefix --work-tree")
_PATCHERS_OF_GIT = names("am apply")
_READS_PATCH = re.compile(r"--(?:check|numstat|stat|summary)")
_NAMED_BY_SERVER = {
    "curl": re.compile(r"-[A-Za-z]*J|--remote-header-name"),
    "wget": re.compile(r"-[A-Za-z]*[irm]|--(?:content-d|input-f|mirror|page-r|recursive|trust-s)"),
}
"""Options with which the server, or a list, chooses the names of the files that a download writes."""
_FINDS_BY_NAME = frozenset({"-iname", "-name"})
_FIND_JOINS = names("! -not -o -or , (")
_GUARDED_NAMES = [part for name in GUARDED for part in name.split("/")]
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


def unexpected_option(command: Command) -> int | None:
    """The position of the first option that writes or runs something, in a program that is not expected to."""
    name = plain_name(command.words[0])
    options = [table[name] for table in (_RUNNING_OPTIONS, _WRITING_OPTIONS) if name in table]
    words = enumerate(command.words)
    return next((at for at, word in words if any(each.fullmatch(word.text) for each in options)), None)


def may_be_alias(command: Command) -> bool:
    """Whether git may be told by its configuration to run another subcommand than the one that is named."""
    if file_name(command) != "git":
        return False
    rest = [word.text for word in command.words[1:] if word.text not in _HARMLESS_FOR_GIT]
    while rest and rest[0].startswith(_PLACES_FOR_GIT):
        rest = rest[1:] if "=" in rest[0] else rest[2:]
    return bool(rest) and rest[0] not in _SUBCOMMANDS_OF_GIT


def runs_input(command: Command) -> bool:
    """Whether this may give what it reads to a shell, or to a program that an option names."""
    options = _RUNNING_OPTIONS.get(file_name(command))
    named = options is not None and any(options.fullmatch(word.text) for word in command.words)
    return named or file_name(command) in _RUNNING_INPUT


def is_reading_shell(command: Command) -> bool:
    """Whether this is a shell that runs what it reads from a pipe or a file, as a runner may start one."""
    operands = [word.text for word in command.words[1:] if not word.text.startswith(("-", "+"))]
    return file_name(command) in SHELLS and (not operands or operands[0].startswith("/dev/"))


def file_name(command: Command) -> str:
    """The name of its program without the directory; empty where it is not known."""
    return plain_name(command.words[0]).rpartition("/")[2].casefold()


def may_carry_command(setting: Assignment) -> bool:
    """Whether a variable can hold a command that some program runs. The name of a pager or an editor alone is none."""
    if _PAGER_OR_EDITOR.fullmatch(setting.name):
        return not (setting.value.literal and _ONE_PROGRAM.fullmatch(setting.value.text))
    return bool(_COMMAND_IN_VARIABLE.fullmatch(setting.name))


def paths_written(command: Command) -> tuple[str, ...]:
    """The directories, or what may be some, into which it puts a tree of files whose names are not known."""
    texts = [word.text for word in command.words[1:]]
    name = plain_name(command.words[0])
    if name == "ln":
        return tuple(texts[:-1])  # A link to a tree is another name for everything in it.
    if name == "git":
        patches = from_subcommand(texts)[:1] and from_subcommand(texts)[0] in _PATCHERS_OF_GIT
        return (".",) if patches and not any(map(_READS_PATCH.match, texts)) else ()
    if name in _NAMED_BY_SERVER:
        return (".",) if any(map(_NAMED_BY_SERVER[name].match, texts)) else ()
    if name in _COPIERS:
        return tuple(texts) if name in ("ditto", "rsync") or is_recursive(texts) else ()
    if name not in _UNPACKERS or not _extracts(name, texts):
        return ()
    # Into the directory of such an option, whichever word that is; else into this one.
    return tuple(texts) if any(text.startswith(_UNPACKERS[name]) for text in texts) else (".",)


def paths_removed(command: Command) -> tuple[str, ...]:
    """The paths, or what may be some, that it removes, moves or resets, with everything below them."""
    texts = [word.text for word in command.words[1:]]
    match plain_name(command.words[0]):
        case "mv":
            # The last word is where they are moved to, unless an option says where.
            return tuple(texts if any(re.match(r"-[A-Za-z]*t|--t", text) for text in texts) else texts[:-1])
        case name if name in _REMOVERS or (name in _MODE_CHANGERS and is_recursive(texts)):
            return tuple(texts)
        case "find" if "-delete" in texts and _may_find_guarded(texts):
            # The places to search stand before the first test.
            tests = next((at for at, text in enumerate(texts) if text.startswith(("-", "(", "!"))), len(texts))
            return tuple(texts[:tests]) or (".",)
        case "git":
            return _removals_of_git(texts)
    return ()


def changes_named_files(command: Command) -> bool:
    """Whether it changes the files that its words name."""
    name = file_name(command)
    if name == "sed":
        return any(word.text.startswith(("-i", "--in-place")) for word in command.words)
    return name in WRITING or name in _REMOVERS


def _may_find_guarded(texts: Sequence[str]) -> bool:
    """Whether `find` with these tests may find a guarded file: only a name that fits none rules it out."""
    patterns = [text for test, text in pairwise(texts) if test in _FINDS_BY_NAME]
    if not patterns or _FIND_JOINS & set(texts):
        return True
    return all(any(fnmatchcase(name, pattern.casefold()) for name in _GUARDED_NAMES) for pattern in patterns)


def is_recursive(texts: Sequence[str]) -> bool:
    """Whether one of its options makes it go down into directories."""
    return any(map(_RECURSIVE.match, texts))


def _removals_of_git(texts: Sequence[str]) -> tuple[str, ...]:
    subcommand, *rest = from_subcommand(texts) or [""]
    if subcommand not in _REMOVERS_OF_GIT:
        return ()
    # `:/` and `:(top)` are the root.
    paths = ["." if text.startswith(":") else text for text in rest if not text.startswith("-")]
    return tuple(paths) if paths or subcommand != "clean" else (".",)


def sets_git_config(command: Command) -> bool:
    """Whether it changes the configuration of git, and with it the programs that git runs."""
    texts = from_subcommand([word.text for word in command.words[1:]])
    if plain_name(command.words[0]) == "git" and texts[:1] == ["init"]:
        return any(text.startswith("--te") for text in texts)  # A template brings hooks.
    if plain_name(command.words[0]) != "git" or texts[:1] != ["config"]:
        return False
    reads = len(texts) == 2 and not texts[1].startswith("-")
    return not reads and texts[1:2] != [] and texts[1] not in _READS_GIT_CONFIG


def from_subcommand(texts: Sequence[str]) -> list[str]:
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
