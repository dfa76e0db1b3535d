"""Which shell commands are dangerous: they delete, publish, run unseen text, or reach beyond the workspace.

Owns the list, and the sentence for each kind. A danger changes how a request looks and how it can be answered, never
whether it is asked: a dangerous command that is missing here is still asked. So it lists what people would want to look
at twice, and leaves out everyday commands. Must not know rules or where the workspace is.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import pairwise

from longboat.permissions.shell.databases import deletes_data
from longboat.permissions.shell.paths import DEVICES
from longboat.permissions.shell.scope import SHELLS, file_name, from_subcommand, is_recursive
from longboat.permissions.shell.script import RUNNERS, Command, Word, parse
from longboat.permissions.shell.sending import Sent, what_is_sent
from longboat.permissions.shell.syntax import names


class Danger(StrEnum):
    """Worst first: if several apply, the first one is shown."""

    UNSEEN = "It runs code that you cannot see in advance."
    ADMINISTRATOR = "It runs as another user, such as root."
    SYSTEM = "It can damage the whole machine."
    GUARDED = "It could change files that control what is allowed to run."
    DELETES_OUTSIDE = "It permanently deletes files outside the workspace."
    OUTSIDE = "It could change files outside the workspace."
    CLOUD = "It deletes cloud resources or infrastructure."
    DATABASE = "It deletes or overwrites data in a database."
    REWRITES_REMOTE = "It overwrites or deletes work in a remote repository."
    LEAKS = "It could send a file or a secret to another computer."
    DELETES = "It permanently deletes files."
    DISCARDS = "It discards work that git cannot restore."
    OVERWRITES = "It overwrites files, and nothing can restore them."
    DESTROYS = "It deletes containers, images, networks or volumes."
    UNREVIEWED = "It changes infrastructure without showing you the plan first."
    RELEASES = "It publishes a package that others can install, which is hard to undo."
    DEPLOYS = "It changes infrastructure or services that are in use."
    UPLOADS = "It sends data to another computer."
    PUBLISHES = "It publishes to a remote server."
    OWNERS = "It changes the owner or permissions of whole directories."
    SHUTDOWN = "It shuts down or restarts the machine."
    PROCESSES = "It stops processes or services."
    UNKNOWN = "Longboat cannot tell what this command does."


def worst(dangers: Iterable[str]) -> str:
    """The one to tell of several; empty if there is none."""
    known = list(Danger)
    return min((Danger(each) for each in dangers if each), key=known.index, default="")


_ADMINISTRATORS = names("doas pkexec runuser su sudo")
_SYSTEM = names("blkdiscard cryptsetup fdisk mke2fs mkswap parted sfdisk wipefs")
_SHUTDOWN = names("halt init poweroff reboot shutdown telinit")
DELETING = names("del rimraf rm rmdir shred srm trash trash-put unlink wipe")
_ENDING = names("kill killall pkill xkill")
_PROGRAMS = names("bun deno lua node perl php python python2 python3 ruby tclsh")
"""They run what they read where no word names a file."""
_EVALUATING = names(". eval source")
_CONTAINERS = (
    *("rm", "rmi", "container rm", "image rm", "network rm", "volume rm"),
    *("builder prune", "container prune", "image prune", "network prune", "system prune", "volume prune"),
)
_TERRAFORM = ("destroy", "state rm", "workspace delete")
_SUBCOMMANDS: dict[Danger, dict[str, tuple[str, ...]]] = {
    Danger.CLOUD: {
        "fly": ("destroy", "apps destroy", "volumes destroy"),
        "gh": ("repo delete", "release delete", "secret delete", "api"),
        "helm": ("uninstall", "delete"),
        "kubectl": ("delete", "drain"),
        "pulumi": ("destroy",),
        "terraform": _TERRAFORM,
        "tofu": _TERRAFORM,
        "vercel": ("remove", "rm"),
    },
    Danger.DESTROYS: {"docker": _CONTAINERS, "podman": _CONTAINERS},
    Danger.RELEASES: {
        "cargo": ("publish", "yank"),
        "gem": ("push", "yank"),
        "npm": ("publish", "unpublish", "deprecate"),
        "pnpm": ("publish",),
        "poetry": ("publish",),
        "twine": ("upload",),
        "uv": ("publish",),
        "yarn": ("publish", "npm publish"),
    },
    Danger.DEPLOYS: {
        "firebase": ("deploy",),
        "fly": ("deploy",),
        "gcloud": ("app deploy", "functions deploy", "run deploy"),
        "helm": ("install", "rollback", "upgrade"),
        "kubectl": ("apply", "create", "patch", "replace", "scale", "set"),
        "pulumi": ("up",),
        "terraform": ("apply",),
        "tofu": ("apply",),
        "vercel": ("deploy",),
    },
    Danger.PUBLISHES: {
        "docker": ("push",),
        "gh": ("pr create", "pr merge", "pr close", "release create", "repo create", "gist create", "workflow run"),
        "podman": ("push",),
    },
    Danger.SHUTDOWN: {"systemctl": ("reboot", "poweroff", "halt")},
    Danger.PROCESSES: {"service": (), "systemctl": ("stop", "disable", "kill", "mask", "restart")},
}
"""By the words behind the name; with none, any will do. Options between them are skipped."""
_DELETES_IN_CLOUD = re.compile(r"(?:batch-)?(?:delete|deregister|destroy|purge|rb|remove|rm|terminate)(?:-.*)?")
_UNASKED = {
    **dict.fromkeys(("terraform", "tofu"), re.compile(r"--?auto-approve(?:=true)?")),
    "pulumi": re.compile(r"-[a-z]*y|--yes|--skip-preview"),
}
"""Options with which a change is made without a look at the plan."""
_FORCED = re.compile(r"-[a-zA-Z]*f[a-zA-Z]*|--force(?:-with-lease|-if-includes)?(?:=.*)?|--mirror|--prune|--delete|-d")
_SENT = {Sent.NOTHING: "", Sent.DATA: Danger.UPLOADS, Sent.SECRET: Danger.LEAKS}
_RUN_NEXT = {
    **dict.fromkeys(("bunx", "npx", "uvx"), ""),
    **dict.fromkeys(("hatch", "pdm", "pipx", "pixi", "poetry", "rye", "uv"), "run"),
    **dict.fromkeys(("bundle", "npm", "pnpm", "yarn"), "exec"),
    "bun": "x",
}
"""Programs that run the command behind this word."""
_CONTAINER_RUNNERS = names("docker docker-compose kubectl podman")
"""What they run with `exec` works on data that others use, unlike what `docker run` does in a new container."""
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
    yield _SENT[what_is_sent(name, command.words[1:])]
    yield Danger.DATABASE if deletes_data(name, texts) else ""
    for danger, programs in _SUBCOMMANDS.items():
        if _has_subcommand(texts, programs.get(name)):
            yield danger
    if name in _UNASKED and any(map(_UNASKED[name].fullmatch, texts)) and {"apply", "up"} & set(texts):
        yield Danger.UNREVIEWED


def _by_name(name: str, command: Command) -> str:
    if name in _ADMINISTRATORS:
        return Danger.ADMINISTRATOR
    if name in _SYSTEM or name.startswith("mkfs"):
        return Danger.SYSTEM
    if name in _SHUTDOWN:
        return Danger.SHUTDOWN
    if name in DELETING:
        return Danger.DELETES
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
    elif name in RUNNERS or (name in _CONTAINER_RUNNERS and Word("exec") in words[:_MAX_RUN]):
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


def _rsync(texts: Sequence[str]) -> str:
    return Danger.DELETES if any(text.startswith(("--delete", "--remove-source-files")) for text in texts) else ""


def _tar(texts: Sequence[str]) -> str:
    return Danger.DELETES if "--remove-files" in texts else ""


def _find(texts: Sequence[str]) -> str:
    return Danger.DELETES if "-delete" in texts else ""


def _dd(texts: Sequence[str]) -> str:
    targets = [text[3:] for text in texts if text.startswith("of=") and text[3:] not in DEVICES]
    if any(target.startswith("/dev/") for target in targets):
        return Danger.SYSTEM
    return Danger.OVERWRITES if targets else ""


def _owners(texts: Sequence[str]) -> str:
    return Danger.OWNERS if is_recursive(texts) else ""


def _truncate(texts: Sequence[str]) -> str:
    return Danger.OVERWRITES


def _cloud(texts: Sequence[str]) -> str:
    """`aws ec2 terminate-instances`, `gcloud compute instances delete`, `az group delete`: behind a service's name."""
    said = [text for text in texts if not text.startswith("-")]
    deletes = any(map(_DELETES_IN_CLOUD.fullmatch, said[1:_MAX_RUN])) or ("sync" in said and "--delete" in texts)
    return Danger.CLOUD if deletes else ""


def _bucket(texts: Sequence[str]) -> str:
    return Danger.CLOUD if {"rb", "rm"} & set(texts[:_MAX_RUN]) else ""


def _heroku(texts: Sequence[str]) -> str:
    return Danger.CLOUD if any(re.search(r":(?:delete|destroy|reset)\b", text) for text in texts[:_MAX_RUN]) else ""


def _compose(texts: Sequence[str]) -> str:
    """`docker compose down -v` deletes the volumes, with the data in them."""
    down = "down" in texts and {"-v", "--volumes"} & set(texts)
    return Danger.DESTROYS if down or "rm" in texts else ""


def _docker(texts: Sequence[str]) -> str:
    return _compose(texts[texts.index("compose") :]) if "compose" in texts[:_MAX_RUN] else ""


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
    **dict.fromkeys(("aws", "az", "gcloud"), _cloud),
    **dict.fromkeys(("chgrp", "chmod", "chown"), _owners),
    "dd": _dd,
    **dict.fromkeys(("docker", "podman"), _docker),
    "docker-compose": _compose,
    "find": _find,
    "git": _git,
    "gsutil": _bucket,
    "heroku": _heroku,
    "rsync": _rsync,
    "tar": _tar,
    "truncate": _truncate,
}
