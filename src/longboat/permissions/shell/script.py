"""Parses a shell command for a permission: every simple command that it would run, every file that it redirects.

Owns which command runs which: `env`, `timeout`, `xargs`, `sh -c`, `find -exec` and the like are unwrapped to the
command inside. Anything the parser is not sure of makes the whole command `opaque`. Must not know rules. The result
holds only for bash, run non-interactively without start-up files: another shell may read the same text differently.

The parser is our own because a permission needs one that refuses what it does not know. The grammar of tree-sitter is
made for highlighting and skips unknown text, and 20 kB of `a|a|…` cost it 1 GB; bashlex lacks arithmetic, `case` and
`[[`.
"""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from longboat.permissions.shell.grammar import Grammar
from longboat.permissions.shell.syntax import (
    MAX_DEPTH,
    Assignment,
    Command,
    Kind,
    NotUnderstood,
    Redirection,
    Word,
    names,
)

__all__ = ["MAX_LENGTH", "RUNNERS", "Assignment", "Command", "Kind", "Redirection", "Script", "Word", "parse"]

MAX_LENGTH = 100_000

_SYSTEM_DIRECTORY = re.compile(r"\A(?:/usr)?/bin/(?=[^/])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SHELL_FLAGS = re.compile(r"-[celu]+")
_SET_FLAGS = re.compile(r"[-+][eu]*o?")
_PIPED = re.compile(r"/{1,2}(?:dev|proc)/")
"""A script in one of these directories is not a file: it comes from a pipe or another descriptor."""
_BEYOND_POSIX = re.compile(
    r"\$['\"]|\[\[|\(\(|<\(|>\(|<<<|&>|\|&|\+=|[0-9]{2}[<>]|\}[<>]|\b(?:coproc|function|select)\b"
)
"""What dash reads differently from bash."""

_EVALUATING = names(
    """. alias bind compgen complete compopt declare enable eval fc getopts hash history let local mapfile read
    readarray readonly shopt source trap typeset unalias unset"""
)
_OTHER_SHELLS = frozenset({"ash", "csh", "fish", "ksh", "mksh", "rbash", "tcsh", "zsh"})
RUNNERS = names(
    """busybox bwrap caffeinate choom chroot chrt cpulimit dbus-run-session entr fakeroot faketime firejail flock
    gdb ionice linux32 lldb ltrace nice nohup nsenter numactl parallel perf prlimit proot proxychains rlwrap
    runuser script setarch setpriv setsid softlimit ssh-agent stdbuf strace systemd-inhibit systemd-run taskset
    time timeout toybox unbuffer unshare valgrind watch xvfb-run"""
)
"""Commands that run what their words name. Those that cannot be unwrapped are allowed only by a rule of their own; deny
rules still see what they run."""
_RUNNING_NEXT = RUNNERS | names("bun bunx bundle npm npx pdm pipx pixi pnpm poetry rye uv uvx yarn")
_KEPT_QUIET = frozenset({"git", "rg"})
"""Commands that no variable can make run something else."""
_RUNNING_FOR_GIT = names("bisect difftool filter-branch for-each-repo mergetool rebase submodule")
"""Subcommands that run what their words name, or give it to a shell."""
_GIVING_TO_A_SHELL = names("entr flock parallel script ssh su watch")
_MAX_RUN = 12
"""So far into the words of a runner the name of what it runs is looked for."""
_ARGUMENTS = Word("{…}", Kind.DYNAMIC)
"""What `xargs` and `find` put in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    commands: tuple[Command, ...] = ()
    """Every simple command. All of them must be allowed."""
    shadows: tuple[Command, ...] = ()
    """Other forms of them, for refusals: what `sudo` runs, and the wrappers that were looked through."""
    redirections: tuple[Redirection, ...] = ()
    variables: tuple[str, ...] = ()
    """Names set in the shell itself, by statements, loops and `${…:=…}`."""
    exported: tuple[str, ...] = ()
    """Names set for all later commands."""
    settings: tuple[Assignment, ...] = ()
    """What is set in either way, where it is written to what."""
    fed: tuple[str, ...] = ()
    """Variables whose values commands read as their input, as written."""
    decisive: tuple[str, ...] = ()
    """Variables that it did not set, and whose values decide what it does, as written."""
    opaque: str = ""
    """Why the command cannot be checked. The other fields then hold what was found, and parts may be missing."""
    suspects: tuple[tuple[Command, str], ...] = ()
    """The commands that make it opaque, each with the reason."""


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """Where the inner command begins: after known options and `operands` words. Any other option is not understood."""

    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    operands: int = 0


def _wrapper(flags: str = "", valued: str = "", operands: int = 0) -> _Wrapper:
    return _Wrapper(names(flags), names(valued), operands)


WRAPPERS = {
    "builtin": _wrapper(),
    "command": _wrapper("-p"),
    "env": _wrapper("-i - --ignore-environment -0 --null", "-u --unset"),
    "exec": _wrapper(),
    "nice": _wrapper(valued="-n --adjustment"),
    "nohup": _wrapper(),
    "setsid": _wrapper("-c -f -w --ctty --fork --wait"),
    "stdbuf": _wrapper(valued="-i -o -e --input --output --error"),
    "time": _wrapper("-p"),
    "timeout": _wrapper("-v --verbose --foreground --preserve-status", "-k -s --kill-after --signal", operands=1),
    "xargs": _wrapper(
        "-0 --null -r --no-run-if-empty -t --verbose -x --exit",
        "-I -L -P -d -n -s --delimiter --max-args --max-chars --max-procs",
    ),
}
_SUDO = _wrapper("-n -S -E -H -b -k -A", "-u -g -h -p -C -r -t -D -R -T -U")


def parse(text: str) -> Script:
    """Never raises, and takes time in proportion to the text."""
    return _Reading(depth=0).all_of(text)


def plain_name(word: Word) -> str:
    """A command's name as rules know it; empty where it is not known."""
    return _SYSTEM_DIRECTORY.sub("", word.text) if word.literal else ""


class _Reading:
    """The findings so far."""

    def __init__(self, *, depth: int) -> None:
        self.commands: list[Command] = []
        self.shadows: list[Command] = []
        self.redirections: list[Redirection] = []
        self.variables: list[str] = []
        self.exported: list[str] = []
        self.settings: list[Assignment] = []
        self.fed: list[str] = []
        self.decisive: list[str] = []
        self.reasons: list[str] = []
        self.suspects: list[tuple[Command, str]] = []
        self._depth = depth

    def all_of(self, text: str) -> Script:
        if len(text) > MAX_LENGTH:
            self.reasons.append(f"it is longer than {MAX_LENGTH:,} characters")
        elif _CONTROL.search(text):
            self.reasons.append("it contains control characters")
        else:
            self._read(text)
        return Script(
            commands=tuple(self.commands),
            shadows=tuple(self.shadows),
            redirections=tuple(self.redirections),
            variables=tuple(self.variables),
            exported=tuple(self.exported),
            settings=tuple(self.settings),
            fed=tuple(self.fed),
            decisive=tuple(self.decisive),
            opaque=self.reasons[0] if self.reasons else "",
            suspects=tuple(self.suspects),
        )

    def _read(self, text: str) -> None:
        grammar = Grammar(text, depth=self._depth)
        try:
            grammar.read()
        except NotUnderstood as error:
            grammar.found.reasons.append(str(error))
        self.reasons += grammar.found.reasons
        self.redirections += grammar.found.redirections
        self.variables += grammar.found.variables
        self.settings += grammar.found.settings
        self.fed += grammar.found.fed
        self.decisive += grammar.found.values.decisive()
        for command in grammar.found.commands:
            self._look_through(command, self.commands, self._depth)

    def _look_through(self, command: Command, found: list[Command], depth: int) -> None:
        """Put what `command` runs into `found`; what hides it goes to the shadows."""
        try:
            if depth > MAX_DEPTH:
                raise NotUnderstood("it is nested too deeply")
            self._sort(command, found, depth)
        except NotUnderstood as error:
            self.reasons.append(str(error))
            self.suspects.append((command, str(error)))
            found.append(command)

    def _sort(self, command: Command, found: list[Command], depth: int) -> None:
        name = plain_name(command.words[0])
        if not name:
            raise NotUnderstood("the name of a command is only known when it runs")
        if name in _EVALUATING or name in _OTHER_SHELLS:
            raise NotUnderstood(f"“{name}” can run anything")
        match name:
            case "sudo" | "doas":
                found.append(command)
                self._shadow_of_sudo(command, depth)
            case "bash" | "sh" | "dash":
                self._shell(name, command, found, depth)
            case "find":
                found.append(command)
                for inner in _inside_find(command):
                    self._look_through(inner, found, depth + 1)
            case "export":
                self._export(command)
            case _ if name in WRAPPERS and not _only_asks(command):
                self._wrapped(name, command, found, depth)
            case _:
                _check_builtin(name, command)
                found.append(command)
                self._shadow_of_runner(name, command.words[1:], depth)

    def _wrapped(self, name: str, command: Command, found: list[Command], depth: int) -> None:
        inner = _inside(name, command)
        if inner is None:
            found.append(command)
            return
        self.shadows.append(command)
        before = len(found)
        self._look_through(inner, found, depth + 1)
        options = _operands(WRAPPERS[name], command.words)
        if name == "env" and options > 1 and any(plain_name(each.words[0]) in _KEPT_QUIET for each in found[before:]):
            found.append(Command(command.words[:options], span=command.span))

    def _shadow_of_sudo(self, command: Command, depth: int) -> None:
        start = _operands(_SUDO, command.words)
        while start < len(command.words) and ("=" in command.words[start].text or command.words[start].text == "--"):
            start += 1
        if inner := command.words[start:]:
            self._look_through(Command(inner), self.shadows, depth + 1)

    def _shadow_of_runner(self, name: str, words: tuple[Word, ...], depth: int) -> None:
        """Which of the words begins what it runs is not known: each may; or be a text for a shell."""
        known = [(at, word) for at, word in enumerate(words[:_MAX_RUN]) if word.literal]
        git_runs = name == "git" and any(word.text in _RUNNING_FOR_GIT for _, word in known)
        runs_next = name in _RUNNING_NEXT or git_runs
        if runs_next:
            self.shadows += [Command(words[at:]) for at, _ in known]
        for at, word in known if depth < MAX_DEPTH else ():
            behind_c = runs_next and at > 0 and words[at - 1].text in ("-c", "--call", "--command")
            if not (behind_c or git_runs or name in _GIVING_TO_A_SHELL):
                continue
            inner = _Reading(depth=depth + 1)
            inner._read(word.text.partition("=")[2] if word.text.startswith("--") else word.text)
            self.shadows += [*inner.commands, *inner.shadows]

    def _shell(self, name: str, command: Command, found: list[Command], depth: int) -> None:
        script, is_login = _shell_script(command.words)
        if script is None:
            found.append(command)
            return
        if is_login:
            # It runs the user's start-up files first.
            found.append(replace(command, words=(Word(name), Word("-l"))))
        if name != "bash" and _BEYOND_POSIX.search(script):
            raise NotUnderstood(f"“{name}” reads this differently from bash")
        self.shadows.append(command)
        inner = _Reading(depth=depth + 1)
        inner._read(script)
        if command.assignments and not inner.commands:
            found.append(command)  # What is set for the shell can make the shell itself run something.
        found += [_set_by(command, each) for each in inner.commands]
        self.suspects += [(_set_by(command, each), why) for each, why in inner.suspects]
        self.shadows += inner.shadows
        self.redirections += [replace(each, span=command.span) for each in inner.redirections]
        self.variables += inner.variables
        self.exported += inner.exported
        self.settings += inner.settings
        self.fed += inner.fed
        self.decisive += inner.decisive
        self.reasons += inner.reasons

    def _export(self, command: Command) -> None:
        if len(command.words) == 1:
            raise NotUnderstood("“export” prints all variables")
        for word in command.words[1:]:
            assigned = _ASSIGNED.match(word.text)
            if not (assigned and word.literal) or assigned.group(1) == "IFS":
                raise NotUnderstood("“export” does more than set plain values")
            self.exported.append(assigned.group(1))
            self.settings.append(Assignment(assigned.group(1), Word(assigned.group(2))))
        self.exported += [each.name for each in command.assignments]
        self.settings += command.assignments
        self.shadows.append(command)


def _set_by(outer: Command, inner: Command) -> Command:
    """What a shell runs, with what was set for the shell."""
    return replace(
        inner,
        assignments=outer.assignments + inner.assignments,
        span=outer.span,
        piped=outer.piped or inner.piped,
    )


def _operands(wrapper: _Wrapper, words: Sequence[Word]) -> int:
    """Where a wrapper's options end."""
    at = 1
    while at < len(words):
        word = words[at]
        if not word.literal:
            raise NotUnderstood(f"the options of “{words[0].text}” are only known when it runs")
        option, _, value = word.text.partition("=")
        if word.text == "--":
            return at + 1
        if word.text == "-" and "-" in wrapper.flags:  # `env -`: here the options end, for some; for others they go on
            if at + 1 < len(words) and words[at + 1].text.startswith("-"):
                raise NotUnderstood(f"what “{words[0].text} - {words[at + 1].text}” runs depends on the system")
            return at + 1
        if not option.startswith("-"):
            return at
        if word.text in wrapper.valued:
            at += 2
        elif word.text in wrapper.flags or _attached(wrapper, option, value):
            at += 1
        else:
            raise NotUnderstood(f"“{words[0].text} {option}” can hide what it runs")
    return at


def _attached(wrapper: _Wrapper, option: str, value: str) -> bool:
    """Whether this is an option with its value in one word: `--signal=KILL`, `-n5`, `nice -5`."""
    if option.startswith("--"):
        return bool(value) and option in wrapper.valued
    return len(option) > 2 and option[:2] in wrapper.valued


def _inside(name: str, command: Command) -> Command | None:
    """The command that a wrapper runs, if any."""
    wrapper = WRAPPERS[name]
    words = command.words
    start = _operands(wrapper, words) + wrapper.operands
    assignments = list(command.assignments)
    while name == "env" and start < len(words) and "=" in words[start].text:
        # Unlike a shell, it takes any text before the sign for a name.
        variable, _, value = words[start].text.partition("=")
        assignments.append(Assignment(variable, Word(value)))
        start += 1
    if not all(word.literal for word in words[:start]):
        # Outside quotes an expansion may become several words, and one of them the command.
        raise NotUnderstood(f"“{name}” runs something that is only known when it runs")
    inner = words[start:]
    if name == "xargs":
        inner = _filled(inner or (Word("echo"),), words[1:start])
    return replace(command, words=inner, assignments=tuple(assignments)) if inner else None


def _filled(words: tuple[Word, ...], options: Sequence[Word]) -> tuple[Word, ...]:
    """With the arguments from `xargs` at the end and wherever a mark of `-I` stands."""
    marks = {option.text[2:] for option in options if option.text.startswith("-I")}
    marks |= {after.text for option, after in pairwise(options) if option.text == "-I"}
    marks.discard("")
    return (*(_ARGUMENTS if any(mark in word.text for mark in marks) else word for word in words), _ARGUMENTS)


def _inside_find(command: Command) -> list[Command]:
    """The commands of `-exec` and its like."""
    inner: list[Command] = []
    words: list[Word] | None = None
    for word in command.words[1:]:
        if not (word.literal or (word.kind is Kind.GLOB and word.text[0].isalnum())):
            raise NotUnderstood("a part of “find” is only known when it runs")
        if words is None:
            words = [] if word.text in ("-exec", "-execdir", "-ok", "-okdir") else None
        elif word.text == ";" or (word.text == "+" and words and words[-1] is _ARGUMENTS):
            inner.append(replace(command, words=tuple(words)))
            words = None
        else:
            words.append(_ARGUMENTS if "{}" in word.text else word)
    if words is not None or not all(each.words for each in inner):
        raise NotUnderstood("a part of “find” is not closed")
    return inner


def _shell_script(words: Sequence[Word]) -> tuple[str | None, bool]:
    """The text behind `-c`, None if a file is run; and whether the start-up files of a login shell are run first."""
    shell = words[0].text
    command = is_login = False
    rest = list(words[1:])
    while rest and rest[0].literal and rest[0].text.startswith("-"):
        flags = rest.pop(0).text
        if flags.endswith("o") and rest[:1] == [Word("pipefail")]:
            rest.pop(0)
            flags = flags[:-1]
        if not _SHELL_FLAGS.fullmatch(flags):
            raise NotUnderstood(f"“{shell} {flags}” can hide what it runs")
        command = command or "c" in flags
        is_login = is_login or "l" in flags
    if not rest or not rest[0].literal or rest[0].text.startswith("+"):
        raise NotUnderstood(f"“{shell}” runs something that is only known when it runs")
    if not command and _PIPED.match(posixpath.normpath(rest[0].text)):
        raise NotUnderstood(f"“{shell}” runs whatever it gets as input")
    return (rest[0].text if command else None), is_login


def _only_asks(command: Command) -> bool:
    return command.words[1:2] in ((Word("-v"),), (Word("-V"),)) and plain_name(command.words[0]) == "command"


def _check_builtin(name: str, command: Command) -> None:
    """Some builtins do more than they seem to: change where or how the rest runs, set names, evaluate."""
    words = command.words[1:]
    texts = [word.text for word in words]
    known = all(word.literal for word in words)
    match name:
        case "cd" | "pushd":
            fine = known and len(words) == 1 and texts[0][:1] not in ("", "-", "+")
        case "popd":
            fine = False
        case "set":
            fine = known and all(_SET_FLAGS.fullmatch(text) or text == "pipefail" for text in texts)
        case "printf":
            # `%n` sets the variable that it is given.
            fine = all(word.literal and not re.search(r"\A-|%[^%A-Za-z]*[hlLjzt]*n", word.text) for word in words[:1])
        case "test" | "[":
            fine = known and not {"-v", "-R"} & set(texts)
        case "wait" | "jobs":
            fine = known and not any(text.startswith("-") for text in texts)
        case _:
            return
    if not fine:
        raise NotUnderstood(f"“{name}” changes what the rest of the command means")
