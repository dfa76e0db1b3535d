"""The rules that approving a shell command can add: exactly this command, or this command with anything after it.

Owns for which commands the wider form is offered, and which variables need no rule. Must not know what is already
allowed.
"""

import re
import shlex

from longboat.permissions.shell.scope import unexpected_option
from longboat.permissions.shell.script import RUNNERS, Command, plain_name
from longboat.permissions.shell.syntax import names

HARMLESS_NAMES = names(
    """CI CLICOLOR CLICOLOR_FORCE COLUMNS DEBUG FORCE_COLOR LANG LC_ALL LC_CTYPE LINES NODE_ENV NO_COLOR PYTHONHASHSEED
    PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED RUST_BACKTRACE RUST_LOG TERM TZ VERBOSE"""
)
"""Variables that a command may set without a rule: none of them makes a program load or run anything."""

_NEVER_WIDE = names(
    """7z 7za 7zr at awk batch bsdtar chmod chown chroot cp cpio curl dd ditto doas ed emacs env ex expect find gtar jar
    kill ln mv nc nsenter osascript patch pax rm rmdir rsync scp screen sed set socat ssh su sudo tar tclsh tee tmux
    truncate unar unshare unzip vi vim watch wget xargs"""
)
"""“… and anything after it” is not offered for these."""
_WIDE_BY_SECOND_WORD = names(
    """apt bash brew bun bunx bundle cargo conda dash deno docker dotnet gh git go gradle hatch java julia kubectl lua
    make mvn nix node npm npx pdm perl php pip pipx pixi pnpm podman poetry python python3 rake rye Rscript ruby sh
    systemctl tox uv uvx yarn"""
)
"""For these it is offered only after a subcommand or a file."""

_NEVER_WIDE_PAIRS = (["git", "config"], ["git", "apply"], ["git", "am"])
"""Any setting of git would be one for the programs that git runs; any patch, one for the files with the rules."""

_BY_TOPIC = frozenset({"apt", "brew", "gh", "git", "make", "systemctl"})
"""Their second word is a subcommand or an object, not a program that they run."""
_RUN_NEXT = frozenset({"dlx", "exec", "run", "shell", "tool", "x"})

MAX_TEXT = 1_000
"""Longer rules are not offered, because no one would read them."""

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_:./@-]*")


def narrow_rule(tool: str, command: Command) -> str:
    """The rule for exactly this command."""
    settings = [each for each in command.assignments if each.name not in HARMLESS_NAMES]
    values = [each.value for each in settings]
    name = plain_name(command.words[0])
    nameless = any(not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", each.name) for each in settings)
    if nameless or not all(word.literal for word in (*command.words, *values)) or "=" in name:
        return ""
    words = [name, *(word.text for word in command.words[1:])]
    set_before = [f"{each.name}={shlex.quote(each.value.text)}" for each in settings]
    return f"{tool}({' '.join([*set_before, shlex.join(words)])})"


def wide_rule(tool: str, command: Command) -> str:
    """The rule for this command, its subcommand and anything after it."""
    name = plain_name(command.words[0])
    if not _PLAIN_WORD.fullmatch(name) or name in _NEVER_WIDE | RUNNERS or unexpected_option(command) is not None:
        return ""
    words = [name]
    for word in command.words[1:3]:
        if not word.literal or not _PLAIN_WORD.fullmatch(word.text):
            break
        if word.text in _NEVER_WIDE | RUNNERS | _WIDE_BY_SECOND_WORD and name not in _BY_TOPIC:
            return ""  # It runs what runs anything.
        words.append(word.text)
        if word.text not in _RUN_NEXT:
            break
    if (len(words) == 1 and name in _WIDE_BY_SECOND_WORD) or words in _NEVER_WIDE_PAIRS:
        return ""
    return "" if words[-1] in _RUN_NEXT else f"{tool}({' '.join(words)} *)"


def is_destructive(command: Command) -> bool:
    """Whether it is one of those that delete, overwrite or publish, so that a person should see it first."""
    name, *words = [plain_name(command.words[0]), *(word.text for word in command.words[1:])]
    return name in _NEVER_WIDE or (name == "git" and "push" in words[:1])


def text_rule(tool: str, text: str) -> str:
    """The rule for exactly this text, of which it is not known what it does; empty where a person could not read it."""
    legible = len(text) <= MAX_TEXT and text.replace("\n", " ").replace("\t", " ").isprintable()
    return f"{tool}(= {text})" if legible and text else ""
