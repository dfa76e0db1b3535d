"""Which shell commands are dangerous: they delete, publish, run unseen text, or reach beyond the workspace.

Owns the list, and the sentence for each kind. A danger changes how a request looks and how it can be answered, never
whether it is asked: a dangerous command that is missing here is still asked. So it lists what people would want to look
at twice, and leaves out everyday commands. Must not know rules or where the workspace is.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import pairwise

from longboat.permissions.shell.scope import SHELLS, file_name, from_subcommand, is_recursive
from longboat.permissions.shell.script import RUNNERS, Command, Word, parse
from longboat.permissions.shell.syntax import names


class Danger(StrEnum):
    """The worst first: of several, the first is the one that is told."""

    UNSEEN = "It runs code that nobody can see in advance."
    ADMINISTRATOR = "It runs as another user, such as root."
    SYSTEM = "It can damage the whole machine."
    GUARDED = "It could change files that control what is allowed to run."
    OUTSIDE = "It could change files outside the workspace."
    REWRITES_REMOTE = "It overwrites or deletes work in a remote repository."
    DELETES = "It permanently deletes files."
    DISCARDS = "It discards work that git cannot restore."
    DESTROYS = "It deletes resources that other programs use, such as containers or databases."
    UPLOADS = "It sends data to another computer."
    PUBLISHES = "It publishes to a remote server."
    OWNERS = "It changes the owner or permissions of whole directories."
    PROCESSES = "It stops processes or services."
    UNKNOWN = "Longboat cannot tell what this command does."


def worst(dangers: Iterable[str]) -> str:
    """The one to tell of several; empty if there is none."""
    known = list(Danger)
    return min((Danger(each) for each in dangers if each), key=known.index, default="")


_ADMINISTRATORS = names("doas pkexec runuser su sudo")
_SYSTEM = names(
    "blkdiscard cryptsetup fdisk halt init mke2fs mkswap parted poweroff reboot sfdisk shutdown telinit wipefs"
)
_DELETING = names("del rimraf rm rmdir shred srm trash trash-put unlink wipe")
_SENDING = names("ftp lftp nc ncat netcat rclone scp sftp socat ssh telnet")
_ENDING = names("kill killall pkill xkill")
_PROGRAMS = names("bun deno lua node perl php python python2 python3 ruby tclsh")
"""They run what they read where no word names a file."""
_EVALUATING = names(". eval source")
_PUBLISHING: dict[str, tuple[str, ...]] = {
    "cargo": ("publish", "yank"),
    "docker": ("push",),
    "firebase": ("deploy",),
    "fly": ("deploy",),
    "gem": ("push", "yank"),
    "gh": ("pr create", "pr merge", "pr close", "release create", "repo create", "gist create", "workflow run"),
    "helm": ("install", "upgrade"),
    "kubectl": ("apply", "create", "patch", "replace", "scale", "set"),
    "npm": ("publish", "unpublish", "deprecate"),
    "pnpm": ("publish",),
    "podman": ("push",),
    "poetry": ("publish",),
    "pulumi": ("up",),
    "terraform": ("apply",),
    "tofu": ("apply",),
    "twine": ("upload",),
    "uv": ("publish",),
    "vercel": ("deploy",),
    "yarn": ("publish", "npm publish"),
}
_CONTAINERS = (
    *("rm", "rmi", "container rm", "image rm", "network rm", "volume rm"),
    *("builder prune", "container prune", "image prune", "network prune", "system prune", "volume prune"),
)
_DESTROYING: dict[str, tuple[str, ...]] = {
    "docker": _CONTAINERS,
    "gh": ("repo delete", "release delete", "secret delete", "api"),
    "helm": ("uninstall", "delete"),
    "kubectl": ("delete", "drain"),
    "podman": _CONTAINERS,
    "pulumi": ("destroy",),
    "terraform": ("destroy",),
    "tofu": ("destroy",),
}
_SERVICES = {"systemctl": ("stop", "disable", "kill", "mask", "restart", "reboot", "poweroff", "halt"), "service": ()}
"""By the words behind the name. Options between them are skipped."""

_SENT_BY_CURL = re.compile(
    r"-[A-Za-z]*[dFT].*|--(?:data|form|json|upload-file)[a-z-]*(?:=.*)?|-[A-Za-z]*X.+|--request=.+", re.DOTALL
)
_SENT_BY_WGET = re.compile(r"--(?:post|body)-(?:data|file)(?:=.*)?|--method(?:=.*)?", re.DOTALL)
_READING_METHODS = names("GET HEAD OPTIONS")
_REMOTE = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//).*|rsync://.*", re.DOTALL)
_FORCED = re.compile(r"-[a-zA-Z]*f[a-zA-Z]*|--force(?:-with-lease|-if-includes)?(?:=.*)?|--mirror|--prune|--delete|-d")
_RUN_NEXT = {
    **dict.fromkeys(("bunx", "npx", "uvx"), ""),
    **dict.fromkeys(("hatch", "pdm", "pipx", "pixi", "poetry", "rye", "uv"), "run"),
    **dict.fromkeys(("bundle", "npm", "pnpm", "yarn"), "exec"),
    "bun": "x",
}
"""Programs that run the command behind this word."""
_RUNS_TEXT = re.compile(r"-[A-Za-z]*c|--command")
_MAX_RUN = 8
"""So far into the words of a runner the command that it runs is looked for."""


def danger_of(command: Command) -> str:
    """Why it is dangerous, in one sentence; empty if it is not."""
    inner = [each for text in _texts_run(command) for each in parse(text).commands]
    known = [run for each in (command, *inner) for run in (each, *_commands_run(each))]
    return worst(danger for each in known for danger in _dangers(each))


def _texts_run(command: Command) -> Iterable[str]:
    """What it hands to a shell, as far as it is written there: of shells and options that the parser does not read."""
    name, words = file_name(command), command.words[1:]
    if name == "eval" and all(word.literal for word in words):
        yield " ".join(word.text for word in words)
    elif name == "trap" and words and words[0].literal:
        yield words[0].text
    elif name in SHELLS:
        behind = pairwise(words)
        yield from (word.text for option, word in behind if _RUNS_TEXT.fullmatch(option.text) and word.literal)


def _dangers(command: Command) -> Iterable[str]:
    name, texts = file_name(command), [word.text for word in command.words[1:]]
    yield _by_name(name, command)
    yield _TESTS[name](texts) if name in _TESTS else ""
    for table, danger in ((_PUBLISHING, Danger.PUBLISHES), (_DESTROYING, Danger.DESTROYS)):
        if _has_subcommand(texts, table.get(name)):
            yield danger
    if _has_subcommand(texts, _SERVICES.get(name)):
        yield Danger.PROCESSES


def _by_name(name: str, command: Command) -> str:
    if name in _ADMINISTRATORS:
        return Danger.ADMINISTRATOR
    if name in _SYSTEM or name.startswith("mkfs"):
        return Danger.SYSTEM
    if name in _DELETING:
        return Danger.DELETES
    if name in _SENDING:
        return Danger.UPLOADS
    return Danger.PROCESSES if name in _ENDING else _by_input(name, command)


def _by_input(name: str, command: Command) -> str:
    """Whether it runs what a pipe or an expansion gives it, and no word names."""
    words = command.words[1:]
    operands = [word for word in words if not word.text.startswith(("-", "+")) or not word.literal]
    if not name:
        return Danger.UNKNOWN
    if name in _EVALUATING:
        return Danger.UNSEEN if any(not word.literal for word in words) else ""
    if name in SHELLS:
        reads = not operands or operands[0].text.startswith("/dev/") or Word("-s") in words
        if not reads:
            return "" if operands[0].literal else Danger.UNSEEN
        return Danger.UNSEEN if command.piped else Danger.UNKNOWN
    unseen = name in _PROGRAMS and command.piped and (not words or words[-1] == Word("-"))
    return Danger.UNSEEN if unseen else ""


def _commands_run(command: Command) -> Iterable[Command]:
    """What it runs, of the programs that the parser does not look through."""
    name, words = file_name(command), command.words[1:]
    if name in _RUN_NEXT:
        start = next((at for at, word in enumerate(words) if word.text == _RUN_NEXT[name]), -1)
        words = words[start + 1 :] if start >= 0 or not _RUN_NEXT[name] else ()
        begin = next((at for at, word in enumerate(words) if not word.text.startswith("-")), len(words))
        yield from [Command(words[begin:])] if words[begin:] else []
    elif name in RUNNERS:
        yield from (Command(words[at:]) for at in range(min(len(words), _MAX_RUN)) if words[at].literal)


def _has_subcommand(texts: Sequence[str], known: tuple[str, ...] | None) -> bool:
    """Whether the words begin with one of these. None: there are none; empty: any will do."""
    if known is None or not known:
        return known is not None
    starts = [" ".join(_words(texts[at:])) + " " for at in _starts(texts)]
    return any(said.startswith(f"{each} ") for said in starts for each in known)


def _words(texts: Sequence[str]) -> list[str]:
    return [text for text in texts[:_MAX_RUN] if not text.startswith("-")]


def _starts(texts: Sequence[str]) -> Iterable[int]:
    """Where the subcommand may be: behind options, each of which may have a value."""
    for at, text in enumerate(texts[:_MAX_RUN]):
        yield at
        if not text.startswith("-") and (at == 0 or not texts[at - 1].startswith("-")):
            return


def _curl(texts: Sequence[str]) -> str:
    for text, after in zip(texts, [*texts[1:], ""], strict=True):
        method = after if text in ("-X", "--request") else text.partition("=")[2] if "--request=" in text else ""
        if method:
            if method.upper() not in _READING_METHODS:
                return Danger.UPLOADS
        elif _SENT_BY_CURL.fullmatch(text) and not re.fullmatch(r"-X(?:GET|HEAD)", text):
            return Danger.UPLOADS
    return ""


def _wget(texts: Sequence[str]) -> str:
    return Danger.UPLOADS if any(map(_SENT_BY_WGET.fullmatch, texts)) else ""


def _rsync(texts: Sequence[str]) -> str:
    if any(text.startswith(("--delete", "--remove-source-files")) for text in texts):
        return Danger.DELETES
    return Danger.UPLOADS if texts and _REMOTE.fullmatch(texts[-1]) else ""


def _tar(texts: Sequence[str]) -> str:
    return Danger.DELETES if "--remove-files" in texts else ""


def _find(texts: Sequence[str]) -> str:
    return Danger.DELETES if "-delete" in texts else ""


def _dd(texts: Sequence[str]) -> str:
    return Danger.SYSTEM if any(text.startswith("of=/dev/") for text in texts) else ""


def _owners(texts: Sequence[str]) -> str:
    return Danger.OWNERS if is_recursive(texts) else ""


def _truncate(texts: Sequence[str]) -> str:
    return Danger.DELETES


def _database(texts: Sequence[str]) -> str:
    return Danger.DESTROYS


def _aws(texts: Sequence[str]) -> str:
    said = [text for text in texts if not text.startswith("-")]
    if "s3" not in said[:3]:
        return ""  # options before it may have values
    said = said[said.index("s3") :]
    return Danger.DESTROYS if said[1:2] in (["rm"], ["rb"]) else Danger.UPLOADS if said[1:2] != ["ls"] else ""


def _git(texts: Sequence[str]) -> str:
    subcommand, *rest = from_subcommand(texts) or [""]
    test = _GIT_TESTS.get(subcommand)
    return test(rest) if test else ""


def _push(rest: Sequence[str]) -> str:
    forced = any(map(_FORCED.fullmatch, rest)) or any(text.startswith(("+", ":")) for text in rest)
    return Danger.REWRITES_REMOTE if forced else Danger.PUBLISHES


def _has(*options: str) -> Callable[[Sequence[str]], str]:
    """A test whether one of these options or words is there: then work is discarded. One letter may stand among
    others."""
    letters = "".join(option[1] for option in options if re.fullmatch(r"-[A-Za-z]", option))
    short = re.compile(rf"-[A-Za-z]*[{letters}][A-Za-z]*") if letters else None

    def test(rest: Sequence[str]) -> str:
        found = any(text in options or (short is not None and short.fullmatch(text)) for text in rest)
        return Danger.DISCARDS if found else ""

    return test


def _checkout(rest: Sequence[str]) -> str:
    """Of files, or with force; `git checkout BRANCH` refuses to overwrite."""
    return Danger.DISCARDS if "--" in rest or "." in rest else _has("-f", "--force")(rest)


def _restore(rest: Sequence[str]) -> str:
    staged_only = any(text in ("--staged", "-S") for text in rest) and not {"-W", "--worktree"} & set(rest)
    return "" if staged_only else Danger.DISCARDS


def _clean(rest: Sequence[str]) -> str:
    return "" if any(re.fullmatch(r"-[a-zA-Z]*n[a-zA-Z]*|--dry-run", text) for text in rest) else Danger.DELETES


def _removed(rest: Sequence[str]) -> str:
    return "" if "--cached" in rest else Danger.DELETES


def _always(rest: Sequence[str]) -> str:
    return Danger.DISCARDS


_GIT_TESTS: dict[str, Callable[[Sequence[str]], str]] = {
    "branch": _has("-D", "-f", "--force"),
    "checkout": _checkout,
    "clean": _clean,
    "filter-branch": _always,
    "filter-repo": _always,
    "gc": _has("--prune=now", "--prune=all"),
    "push": _push,
    "reflog": _has("delete", "expire"),
    "reset": _has("--hard", "--merge", "--keep"),
    "restore": _restore,
    "rm": _removed,
    "send-email": lambda rest: Danger.UPLOADS,
    "stash": _has("clear", "drop"),
    "switch": _has("-f", "--force", "--discard-changes"),
    "update-ref": _has("-d"),
    "worktree": _has("-f", "--force"),
}
_TESTS: dict[str, Callable[[Sequence[str]], str]] = {
    "aws": _aws,
    "chgrp": _owners,
    "chmod": _owners,
    "chown": _owners,
    "curl": _curl,
    "dd": _dd,
    "dropdb": _database,
    "dropuser": _database,
    "find": _find,
    "git": _git,
    "rsync": _rsync,
    "tar": _tar,
    "truncate": _truncate,
    "wget": _wget,
}
