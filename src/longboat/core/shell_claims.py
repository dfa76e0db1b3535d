"""A shell command held against the rules: every simple command, every redirection and every setting of it.

Owns what bash needs beyond other tools. A word that is only known when it runs never helps to allow, and may always
turn out to be what is denied.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from fnmatch import fnmatchcase

from longboat.core.claims import Claim, Gap, is_guarded
from longboat.core.looking import only_looks, searches
from longboat.core.rules import CommandPattern, PathPattern, Rule, below
from longboat.core.shell import RUNNERS, Command, Kind, Redirection, Script, Word, plain_name
from longboat.core.shell_words import names

HARMLESS_NAMES = names(
    """CI CLICOLOR CLICOLOR_FORCE COLUMNS DEBUG FORCE_COLOR LANG LC_ALL LC_CTYPE LINES NODE_ENV NO_COLOR PYTHONHASHSEED
    PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED RUST_BACKTRACE RUST_LOG TERM TZ VERBOSE"""
)
"""What a command may set without a rule that says so: none of these makes a program load or run anything."""

_NEVER_WIDE = names(
    """at awk batch chmod chown chroot cp curl dd doas ed emacs env ex expect find kill ln mv nc nsenter osascript rm
    rmdir rsync scp screen sed set socat ssh su sudo tar tclsh tee tmux truncate unshare vi vim watch wget xargs"""
)
"""“… and anything after it” is not offered for these."""
_WIDE_BY_SECOND_WORD = names(
    """apt bash brew bun bunx bundle cargo conda dash deno docker dotnet gh git go gradle hatch java julia kubectl lua
    make mvn nix node npm npx pdm perl php pip pipx pixi pnpm podman poetry python python3 rake rye Rscript ruby sh
    systemctl tox uv uvx yarn"""
)
"""For these only behind a subcommand or a file."""

_BY_TOPIC = frozenset({"apt", "brew", "gh", "git", "make", "systemctl"})
"""Their second word is a command of their own or a thing, and no program that they run."""
_RUN_NEXT = frozenset({"dlx", "exec", "run", "shell", "tool", "x"})

_PRINTING = names(": echo printf true false seq sleep")
"""What these are given they print, and no file is read or written."""

_DEVICES = frozenset({"/dev/null", "/dev/stderr", "/dev/stdin", "/dev/stdout"})
_LOCAL_NAME = re.compile(r"(?!npm_)[a-z][a-z0-9_]*(?<!_proxy)")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_:./@-]*")
_WEB_ADDRESS = re.compile(r"\b(?:https?|ssh|git)://(?!\S*\.\.)[^\s,]*")
_HIDDEN_GLOB = re.compile(r"(?:\A|/)\.[^/]*[*?\[]")
_GLOB_SIGN = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A path that a command may name, absolute. Not normalized: behind a link `..` leads elsewhere."""

    path: str
    _: KW_ONLY
    glob: bool = False
    """It is a pattern, and stands for whatever fits it."""
    looks: bool = False
    """It is named by what does nothing but look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellClaim(Claim):
    script: Script
    start: str
    """Where it runs: the root of the workspace, or a directory below."""
    moves: tuple[str, ...]
    """Where it changes its directory to."""
    doubt: str
    """Why a look at the git repository may run something."""

    def denials(self) -> Iterator[Rule]:
        for rule in self.rules.deny:
            if self._denies_command(rule) or any(self._denies_file(rule, each) for each in self.script.redirections):
                yield rule

    def _denies_command(self, rule: Rule) -> bool:
        if not rule.concerns("bash"):
            return False
        match rule.pattern:
            case None:
                return True
            case CommandPattern():
                return any(map(rule.pattern.refuses, (*self.script.commands, *self.script.shadows)))
            case _:
                return False

    def _denies_file(self, rule: Rule, redirection: Redirection) -> bool:
        if not rule.concerns("edit" if redirection.writes else "view"):
            return False
        return any(self.on_path(rule, path) for path in self._places_of(redirection.target))

    def gaps(self) -> Iterator[Gap]:
        whole = any(rule.pattern is None for rule in self.allowing("bash"))
        for path in map(posixpath.normpath, self.paths):
            inside = below(path, self.directory) is not None
            if not (inside and whole):
                yield from self.path_gaps("write" if inside and self._writes else "bash", path)
        yield from self._doubts()
        if whole:
            return  # The whole of bash was allowed, in so many words.
        if self.script.opaque:
            yield Gap(why=f"This command cannot be checked: {self.script.opaque}.")
        yield from self._settings()
        for redirection in self.script.redirections:
            yield from self._redirection_gaps(redirection)
        if any(only_looks(command) is None for command in self.script.commands):
            for base in filter(is_guarded, self._bases()):
                yield from self.path_gaps("bash", base)
        for command in self.script.commands:
            yield from self._command_gaps(command)

    def named(self) -> tuple[NamedPath, ...]:
        """The paths inside the workspace that its words and redirections may name."""
        found = [
            self._named(word, looks=only_looks(each) is not None)
            for each in self.script.commands
            for word in each.words
        ]
        found += [self._named(each.target, looks=not each.writes) for each in self.script.redirections]
        return tuple(
            dict.fromkeys(
                path
                for paths in found
                for path in paths
                if below(posixpath.normpath(path.path), self.directory) is not None
            )
        )

    def _named(self, word: Word, *, looks: bool) -> Iterator[NamedPath]:
        for text in () if word.kind is Kind.DYNAMIC else _possible_paths(word.text):
            glob = word.kind is Kind.GLOB and bool(_GLOB_SIGN.search(text))
            for base in self._bases():
                yield NamedPath(posixpath.join(base, text), glob=glob, looks=looks)

    def _doubts(self) -> Iterator[Gap]:
        """What a deny rule may turn out to meet. Not even a rule for the whole of bash helps here."""
        script = self.script
        for rule in self.rules.deny:
            lost = len(self.moves) > 1
            if rule.concerns("edit") and any(
                each.writes and (lost or not each.target.literal) for each in script.redirections
            ):
                yield Gap(why=f"It may write what {rule.text} denies: the place is only known when it runs.")
            if (rule.concerns("edit") or rule.concerns("view")) and (
                path := next((path for path in self.paths if self.on_path(rule, path)), None)
            ):
                yield Gap(why=f"It leads to {path}, and {rule.text} is denied.")
            if word := next((word for each in script.commands for word in self._denied_words(rule, each)), None):
                yield Gap(why=f"It names {word.text[:200]}, and {rule.text} is denied.")
            if not rule.concerns("bash") or not isinstance(rule.pattern, CommandPattern):
                continue
            if script.opaque:
                yield Gap(why=f"It may do what {rule.text} denies: {script.opaque}.")
            elif any(map(rule.pattern.may_refuse, (*script.commands, *script.shadows))):
                yield Gap(why=f"It may do what {rule.text} denies: some of it is only known when it runs.")

    def _denied_words(self, rule: Rule, command: Command) -> Iterator[Word]:
        """The words of a command that name what a rule denies to the tools for files. Who only looks edits nothing."""
        looks = only_looks(command) is not None
        if rule.pattern is None or not (rule.concerns("view") or (rule.concerns("edit") and not looks)):
            return
        for word in command.words[1:]:
            paths = [path for text in _possible_paths(word.text) if text for path in self._from_bases(text)]
            if word.literal and any(self.on_path(rule, path) for path in paths):
                yield word

    def _settings(self) -> Iterator[Gap]:
        names = [name for name in self.script.variables if not _LOCAL_NAME.fullmatch(name)]
        for name in (*names, *self.script.exported):
            if name not in HARMLESS_NAMES:
                yield Gap(why=f"It sets {name} for what follows.")
        if len(self.moves) > 1:
            yield Gap(why="It changes its directory more than once.")

    def _bases(self) -> tuple[str, ...]:
        """Where relative paths may begin: here, and where it goes. If it goes on from there, it is asked anyway."""
        return (self.start, *(posixpath.normpath(posixpath.join(self.start, move)) for move in self.moves[:1]))

    @property
    def _elsewhere(self) -> bool:
        return bool(self.moves) or self.start != self.directory

    def _places_of(self, target: Word) -> tuple[str, ...]:
        if not target.literal or target.text in _DEVICES:
            return ()
        return tuple(dict.fromkeys(self._from_bases(target.text)))

    @property
    def _writes(self) -> bool:
        return any(each.writes and self._places_of(each.target) for each in self.script.redirections)

    def _from_bases(self, text: str) -> Iterator[str]:
        return (posixpath.normpath(posixpath.join(base, text)) for base in self._bases())

    def _redirection_gaps(self, redirection: Redirection) -> Iterator[Gap]:
        target = redirection.target
        if not target.literal:
            yield Gap(why=f"It redirects to {target.text}, a place that is only known when it runs.")
        for path in self._places_of(target):
            yield from self.path_gaps("write" if redirection.writes else "view", path)

    def _command_gaps(self, command: Command) -> Iterator[Gap]:
        patterns = [rule.pattern for rule in self.allowing("bash") if isinstance(rule.pattern, CommandPattern)]
        if self._only_looks_inside(command) or any(self._allowed(pattern, command) for pattern in patterns):
            return
        stray = next((word for word in command.words[1:] if self._strays(word) and not _is_text(command, word)), None)
        guarded = next((word for word in command.words[1:] if self._guarded(word)), None)
        shown = shlex.join(word.text for word in command.words)[:200]
        settings = [each for each in command.assignments if each.name not in HARMLESS_NAMES]
        if stray:
            why = f"{stray.text[:200]} is, or may be, outside the workspace."
        elif guarded:
            why = f"{guarded.text} decides what may run here."
        elif settings:
            why = f"It sets {settings[0].name} for {shown}."
        elif self.doubt and only_looks(command) is not None and plain_name(command.words[0]) == "git":
            why = f"{shown} may do more than look: {self.doubt}."
        else:
            why = f"No rule allows {shown}."
        yield Gap(why=why, narrow=_narrow(command), wide="" if stray or guarded or settings else _wide(command))

    def _only_looks_inside(self, command: Command) -> bool:
        paths = only_looks(command)
        if paths is None or any(each.name not in HARMLESS_NAMES for each in command.assignments):
            return False
        if (self._elsewhere or self.doubt) and plain_name(command.words[0]) == "git":
            return False  # Another directory can bring its own git configuration, and that runs commands.
        if self._searches_hidden(command, paths):
            return False
        return not any(self._strays(word) or self._hidden(word) for word in paths)

    def _hidden(self, word: Word) -> bool:
        """Whether a rule denies the view of this file, or may deny one of these files."""
        denials = [rule for rule in self.rules.deny if rule.concerns("view")]
        if word.kind is Kind.GLOB:
            return bool(denials and self._elsewhere) or any(_may_name(word.text, rule) for rule in denials)
        paths = [path for text in _possible_paths(word.text) for path in self._from_bases(text)]
        return any(self.on_path(rule, path) for rule in denials for path in paths)

    def _searches_hidden(self, command: Command, paths: Sequence[Word]) -> bool:
        """Whether it reads all that is in a directory, and a rule may deny the view of some of that."""
        if not searches(command):
            return False
        texts = [word.text for word in paths if not word.text.startswith("-")] or ["."]
        places = [path for text in texts for path in self._from_bases(text)]
        denials = [rule for rule in self.rules.deny if rule.concerns("view")]
        return any(_may_hold(place, rule, self.directory) for rule in denials for place in places)

    def _allowed(self, pattern: CommandPattern, command: Command) -> bool:
        """Whether the pattern fits, and names whatever is outside the workspace."""
        if not pattern.allows(command, harmless=HARMLESS_NAMES):
            return False
        for at, word in enumerate(command.words):
            named = at < len(pattern.words) and (
                pattern.words[at].exact
                or self._strays(start := Word(pattern.words[at].pieces[0]))
                or is_guarded(start.text)
            )
            if named or _is_text(command, word) or (at == 0 and plain_name(word) != word.text):
                continue
            if self._strays(word) or self._guarded(word):
                return False
        return True

    def _guarded(self, word: Word) -> bool:
        """Whether a word may be a path that decides what may run, and that no rule names."""
        return any(
            is_guarded(path) and any(self.path_gaps("bash", path))
            for text in (() if word.kind is Kind.DYNAMIC else _possible_paths(word.text))
            for path in self._from_bases(text)
        )

    def _strays(self, word: Word) -> bool:
        """Whether a word may be a path that leads out of the workspace."""
        if word.kind is Kind.DYNAMIC:
            return True
        if word.kind is Kind.GLOB and _HIDDEN_GLOB.search(word.text):
            return True
        return any(self._outside(path) for path in _possible_paths(word.text))

    def _outside(self, path: str) -> bool:
        if path.startswith("~"):
            return True
        if path in _DEVICES:
            return False
        return any(below(each, self.directory) is None for each in self._from_bases(path))


def moves_of(script: Script) -> tuple[str, ...]:
    moves = (command.words for command in script.commands if plain_name(command.words[0]) in ("cd", "pushd"))
    return tuple(words[1].text for words in moves if len(words) > 1)


def _is_text(command: Command, word: Word) -> bool:
    """Whether this word is no path, whatever it becomes."""
    return word.kind is Kind.DYNAMIC and plain_name(command.words[0]) in _PRINTING


def _may_name(glob: str, rule: Rule) -> bool:
    """Whether a glob of the shell may stand for what the rule names."""
    if not isinstance(rule.pattern, PathPattern) or not rule.pattern.exact:
        return True
    return fnmatchcase(rule.pattern.source, glob.removeprefix("./"))


def _may_hold(place: str, rule: Rule, directory: str) -> bool:
    """Whether what the rule names may be in this directory."""
    if not isinstance(rule.pattern, PathPattern):
        return True
    known = re.split(r"[*?\\]", posixpath.join(directory, rule.pattern.source), maxsplit=1)[0]
    return known.startswith(place.rstrip("/") + "/") or place.startswith(known)


def _possible_paths(text: str) -> Iterator[str]:
    """The parts of a word that a program may take for a path: `x`, `--file=x`, `-fx`, `a:x`, `@x`."""
    if "file:" in text.casefold():
        yield "/"
    text = _WEB_ADDRESS.sub("", text)
    if text.startswith("-") and not text.startswith("--"):
        yield text[2:]
    yield from re.split(r"[=:@,]", text)


def _narrow(command: Command) -> str:
    """The rule for exactly this command."""
    settings = [each for each in command.assignments if each.name not in HARMLESS_NAMES]
    values = [each.value for each in settings]
    name = plain_name(command.words[0])
    if not all(word.literal for word in (*command.words, *values)) or "=" in name:
        return ""
    words = [name, *(word.text for word in command.words[1:])]
    return (
        f"bash({' '.join([*(f'{each.name}={shlex.quote(each.value.text)}' for each in settings), shlex.join(words)])})"
    )


def _wide(command: Command) -> str:
    """The rule for this command, its subcommand and anything after it."""
    name = plain_name(command.words[0])
    if not _PLAIN_WORD.fullmatch(name) or name in _NEVER_WIDE | RUNNERS:
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
    if len(words) == 1 and name in _WIDE_BY_SECOND_WORD:
        return ""
    return "" if words[-1] in _RUN_NEXT else f"bash({' '.join(words)} *)"
