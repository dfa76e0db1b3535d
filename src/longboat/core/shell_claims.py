"""A shell command held against the rules: every simple command, every redirection and every setting of it.

Owns what bash needs beyond other tools. A word that is only known when it runs never helps to allow, and may always
turn out to be what is denied.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from longboat.core.claims import Claim, Gap
from longboat.core.looking import only_looks
from longboat.core.rules import CommandPattern, PathPattern, Rule, below
from longboat.core.shell import Command, Kind, Redirection, Script, Word, plain_name
from longboat.core.shell_words import names

HARMLESS_NAMES = names(
    """CI CLICOLOR CLICOLOR_FORCE COLUMNS DEBUG FORCE_COLOR LANG LC_ALL LC_CTYPE LINES NODE_ENV NO_COLOR PYTHONHASHSEED
    PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED RUST_BACKTRACE RUST_LOG TERM TZ VERBOSE"""
)
"""What a command may set without a rule that says so: none of these makes a program load or run anything."""

_NEVER_WIDE = names(
    """awk chmod chown cp curl dd doas env find kill ln mv rm rmdir rsync scp sed set ssh sudo tar tee truncate wget
    xargs"""
)
"""“… and anything after it” is not offered for these."""
_WIDE_BY_SECOND_WORD = names(
    """apt bash brew cargo dash docker gh git go kubectl make node npm npx perl php pip pnpm podman python python3 ruby
    sh systemctl uv uvx yarn"""
)
"""For these only behind a subcommand or a file."""

_DEVICES = frozenset({"/dev/null", "/dev/stderr", "/dev/stdin", "/dev/stdout"})
_LOCAL_NAME = re.compile(r"(?!npm_)[a-z][a-z0-9_]*(?<!_proxy)")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_:./@-]*")
_WEB_ADDRESS = re.compile(r"\b(?:https?|ssh|git)://[^\s,]*")
_HIDDEN_GLOB = re.compile(r"(?:\A|/)\.[^/]*[*?\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellClaim(Claim):
    script: Script
    moves: tuple[str, ...]
    """Where it changes its directory to."""

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
        for path in self.paths:
            yield from self.path_gaps("bash", posixpath.normpath(path))
        yield from self._doubts()
        if any(rule.pattern is None for rule in self.allowing("bash")):
            return  # The whole of bash was allowed, in so many words.
        if self.script.opaque:
            yield Gap(why=f"This command cannot be checked: {self.script.opaque}.")
        yield from self._settings()
        for redirection in self.script.redirections:
            yield from self._redirection_gaps(redirection)
        for command in self.script.commands:
            yield from self._command_gaps(command)

    def named(self) -> tuple[str, ...]:
        """The paths inside the workspace that its words and redirections may name."""
        words = [word for command in self.script.commands for word in command.words if word.kind is not Kind.DYNAMIC]
        texts = [part for word in words for part in _possible_paths(_before_glob(word))]
        texts += [each.target.text for each in self.script.redirections if each.target.literal]
        paths = (posixpath.normpath(posixpath.join(base, text)) for text in texts for base in self._bases())
        return tuple(dict.fromkeys(path for path in paths if below(path, self.directory) is not None))

    def _doubts(self) -> Iterator[Gap]:
        """What a deny rule may turn out to meet. Not even a rule for the whole of bash helps here."""
        script = self.script
        for rule in self.rules.deny:
            lost = len(self.moves) > 1
            if rule.concerns("edit") and any(
                each.writes and (lost or not each.target.literal) for each in script.redirections
            ):
                yield Gap(why=f"It may write what {rule.text} denies: the place is only known when it runs.")
            if not rule.concerns("bash") or not isinstance(rule.pattern, CommandPattern):
                continue
            if script.opaque:
                yield Gap(why=f"It may do what {rule.text} denies: {script.opaque}.")
            elif any(map(rule.pattern.may_refuse, (*script.commands, *script.shadows))):
                yield Gap(why=f"It may do what {rule.text} denies: some of it is only known when it runs.")

    def _settings(self) -> Iterator[Gap]:
        names = [name for name in self.script.variables if not _LOCAL_NAME.fullmatch(name)]
        for name in (*names, *self.script.exported):
            if name not in HARMLESS_NAMES:
                yield Gap(why=f"It sets {name} for what follows.")
        if len(self.moves) > 1:
            yield Gap(why="It changes its directory more than once.")

    def _bases(self) -> tuple[str, ...]:
        """Where relative paths may begin: here, and where it goes. If it goes on from there, it is asked anyway."""
        return (self.directory, *map(self.absolute, self.moves[:1]))

    def _places_of(self, target: Word) -> tuple[str, ...]:
        if not target.literal or target.text in _DEVICES:
            return ()
        return tuple(dict.fromkeys(posixpath.normpath(posixpath.join(base, target.text)) for base in self._bases()))

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
        stray = next((word for word in command.words[1:] if self._strays(word)), None)
        shown = shlex.join(word.text for word in command.words)[:200]
        settings = [each for each in command.assignments if each.name not in HARMLESS_NAMES]
        if stray:
            why = f"{stray.text} is, or may be, outside the workspace."
        elif settings:
            why = f"It sets {settings[0].name} for {shown}."
        else:
            why = f"No rule allows {shown}."
        yield Gap(why=why, narrow=_narrow(command), wide="" if stray or settings else _wide(command))

    def _only_looks_inside(self, command: Command) -> bool:
        paths = only_looks(command)
        if paths is None or any(each.name not in HARMLESS_NAMES for each in command.assignments):
            return False
        if self.moves and plain_name(command.words[0]) == "git":
            return False  # Another directory can bring its own git configuration, and that runs commands.
        return not any(self._strays(word) or self._hidden(word) for word in paths)

    def _hidden(self, word: Word) -> bool:
        """Whether a rule denies the view of this file, or may deny one of these files."""
        denials = [rule for rule in self.rules.deny if rule.concerns("view")]
        if word.kind is Kind.GLOB:
            return bool(denials and self.moves) or any(_may_name(word.text, rule) for rule in denials)
        return any(self.on_path(rule, path) for rule in denials for path in self._places_of(word))

    def _allowed(self, pattern: CommandPattern, command: Command) -> bool:
        """Whether the pattern fits, and names whatever is outside the workspace."""
        if not pattern.allows(command, harmless=HARMLESS_NAMES):
            return False
        for at, word in enumerate(command.words):
            named = at < len(pattern.words) and (
                pattern.words[at].exact or self._strays(Word(pattern.words[at].pieces[0]))
            )
            if not named and (at > 0 or plain_name(word) == word.text) and self._strays(word):
                return False
        return True

    def _strays(self, word: Word) -> bool:
        """Whether a word may be a path that leads out of the workspace."""
        if word.kind is Kind.DYNAMIC:
            return False  # Nothing is known: only an open end of a rule takes it.
        if word.kind is Kind.GLOB and _HIDDEN_GLOB.search(word.text):
            return True
        return any(self._outside(path) for path in _possible_paths(word.text))

    def _outside(self, path: str) -> bool:
        if path.startswith("~"):
            return True
        if path in _DEVICES:
            return False
        return any(
            below(posixpath.normpath(posixpath.join(base, path)), self.directory) is None for base in self._bases()
        )


def moves_of(script: Script) -> tuple[str, ...]:
    moves = (command.words for command in script.commands if plain_name(command.words[0]) in ("cd", "pushd"))
    return tuple(words[1].text for words in moves if len(words) > 1)


def _may_name(glob: str, rule: Rule) -> bool:
    """Whether a glob of the shell may stand for what the rule names."""
    if not isinstance(rule.pattern, PathPattern) or not rule.pattern.exact:
        return True
    return fnmatchcase(rule.pattern.source, glob.removeprefix("./"))


def _before_glob(word: Word) -> str:
    return word.text if word.literal else re.split(r"[^/]*[*?\[]", word.text, maxsplit=1)[0]


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
    if not _PLAIN_WORD.fullmatch(name) or name in _NEVER_WIDE:
        return ""
    words = [name]
    for word in command.words[1:3]:
        if not word.literal or not _PLAIN_WORD.fullmatch(word.text):
            break
        words.append(word.text)
        if word.text not in ("run", "exec"):
            break
    if len(words) == 1 and name in _WIDE_BY_SECOND_WORD:
        return ""
    return "" if words[-1] in ("run", "exec") else f"bash({' '.join(words)} *)"
