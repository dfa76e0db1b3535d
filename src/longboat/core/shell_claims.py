"""A shell command held against the rules: every simple command, every redirection and every setting of it.

Owns what bash needs beyond other tools. A word that is only known when it runs never helps to allow, and may always
turn out to be what is denied.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass

from longboat.core.claims import Claim, Gap, is_guarded
from longboat.core.looking import only_looks
from longboat.core.overlap import may_begin, may_hold, may_name
from longboat.core.rules import CommandPattern, PathPattern, Rule, below
from longboat.core.shell import Command, Kind, Redirection, Script, Word, plain_name
from longboat.core.shell_offers import HARMLESS_NAMES, narrow_rule, wide_rule
from longboat.core.shell_parts import names
from longboat.core.shell_reads import Reach, reaches
from longboat.core.shell_scope import landings, options_of_git

_PRINTING = names(": echo printf true false seq sleep")
"""What these are given they print, and no file is read or written."""

_DEVICES = frozenset({"/dev/null", "/dev/stderr", "/dev/stdin", "/dev/stdout"})
_LOCAL_NAME = re.compile(r"(?!npm_)[a-z][a-z0-9_]*(?<!_proxy)")
_WEB_ADDRESS = re.compile(r"\b(?:https?|ssh|git)://(?!\S*\.\.)[^\s,]*")
_HIDDEN_GLOB = re.compile(r"(?:\A|/)\.[^/]*[*?\[]")
_LETTERS = re.compile(r"[A-Za-z0-9]+")
_MAX_LETTERS = 40
_ROOTED = re.compile(r"(?<![\w.*?\]])/.*", re.DOTALL)
_MAGIC_OF_GIT = re.compile(r"\A:(?:\([^)]*\)|[!^/]*)")
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
        found: list[Iterator[NamedPath]] = []
        for command in self.script.commands:
            looks = only_looks(command) is not None
            found += [self._named(word, looks=looks) for word in command.words]
        found += [self._named_within(each) for each in self.script.commands]
        found += [self._named(each.target, looks=not each.writes) for each in self.script.redirections]
        return tuple(dict.fromkeys(path for paths in found for path in paths))

    def _named(self, word: Word, *, looks: bool) -> Iterator[NamedPath]:
        for text in () if word.kind is Kind.DYNAMIC else _possible_paths(word.text):
            glob = word.kind is Kind.GLOB and bool(_GLOB_SIGN.search(text))
            for path in (posixpath.join(base, text) for base in self._bases()):
                if below(posixpath.normpath(path), self.directory) is not None:
                    yield NamedPath(path, glob=glob, looks=looks)

    def _named_within(self, command: Command) -> Iterator[NamedPath]:
        """What is in the directories that it may name, where it shows the files right in them."""
        for reach in reaches(command, only_looks(command) or ()):
            for path in () if reach.deep else self._from_bases(reach.place):
                if below(path, self.directory) is not None:
                    place = re.sub(r"([*?\[])", r"[\1]", path)
                    yield from (NamedPath(f"{place}/{names}", glob=True, looks=True) for names in ("*", ".*"))

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
            read = (each.target for each in script.redirections if not each.writes and not each.target.literal)
            if rule.concerns("view") and (target := next((each for each in read if self._may_be(each, rule)), None)):
                yield Gap(why=f"It reads {target.text[:200]}, and {rule.text} is denied.")
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
        git = plain_name(command.words[0]) == "git"
        yield from (word for word in command.words[1:] if self._may_be(_pathspec(word) if git else word, rule))

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
        return len(self.moves) > 1 or any(base != self.directory for base in self._bases())

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
        if any(self._allowed(pattern, command) for pattern in patterns):
            return
        if self._only_looks_inside(command):
            if self.script.fed:
                why = f"{self.script.fed[0]} may be shown, and is only known when it runs."
                yield Gap(why=why, narrow=narrow_rule(command))
            return
        if limit := self._limit(command):
            yield Gap(why=limit, narrow="" if self._is_git_away(command) else narrow_rule(command))
        else:
            yield Gap(why=self._why(command), narrow=narrow_rule(command), wide=wide_rule(command))

    def _limit(self, command: Command) -> str:
        """Why nothing wider than this command could be allowed."""
        stray = next((word for word in command.words[1:] if self._strays(word) and not _is_text(command, word)), None)
        guarded = next((word for word in command.words[1:] if self._guarded(word)), None)
        settings = [each for each in command.assignments if each.name not in HARMLESS_NAMES]
        if stray:
            return f"{stray.text[:200]} is, or may be, outside the workspace."
        if guarded:
            return f"{guarded.text} decides what may run here."
        if settings:
            return f"It sets {settings[0].name} for {_shown(command)}."
        if self._is_git_away(command):
            return f"{_shown(command)} runs in another directory than the root, where git may be set to run more."
        return ""

    def _why(self, command: Command) -> str:
        shown = _shown(command)
        if self.doubt and only_looks(command) is not None and plain_name(command.words[0]) == "git":
            return f"{shown} may do more than look: {self.doubt}."
        if self._shows_hidden(command):
            return f"{shown} may show files that a rule denies the view of."
        return f"No rule allows {shown}."

    def _is_git_away(self, command: Command) -> bool:
        """Another directory can bring its own git configuration, and that runs commands."""
        return self._elsewhere and plain_name(command.words[0]) == "git"

    def _only_looks_inside(self, command: Command) -> bool:
        paths = only_looks(command)
        if paths is None or any(each.name not in HARMLESS_NAMES for each in command.assignments):
            return False
        if self._is_git_away(command) or (self.doubt and plain_name(command.words[0]) == "git"):
            return False
        if self._shows_hidden(command):
            return False
        return not any(self._strays(word) or self._hidden(word) for word in paths)

    def _hidden(self, word: Word) -> bool:
        """Whether a rule denies the view of this file, or may deny one of these files."""
        return any(self._may_be(word, rule) for rule in self.rules.deny if rule.concerns("view"))

    def _may_be(self, word: Word, rule: Rule) -> bool:
        """Whether a word may name what the rule names. Of words that are only known when it runs, those with braces
        alone can be told."""
        if not isinstance(rule.pattern, PathPattern):
            return rule.pattern is None
        match word.kind:
            case Kind.GLOB:
                return any(may_name(path, rule.pattern, self.directory) for path in self._paths_in(word.text))
            case Kind.DYNAMIC:
                start, brace, _ = word.text.partition("{")
                if not brace or re.search(r"[$`~'\"\\<>]", word.text):
                    return False
                return any(may_begin(path, rule.pattern, self.directory) for path in self._from_bases(start))
        return any(rule.pattern.fits(path, self.directory) for path in self._paths_in(word.text))

    def _paths_in(self, text: str) -> Iterator[str]:
        return (path for part in _possible_paths(text) if part for path in self._from_bases(part))

    def _shows_hidden(self, command: Command) -> bool:
        """Whether it shows files that it does not name, and a rule may deny the view of some."""
        denials = [rule for rule in self.rules.deny if rule.concerns("view")]
        shown = reaches(command, only_looks(command) or ()) if denials else ()
        return any(self._may_hold(reach, rule) for reach in shown for rule in denials)

    def _may_hold(self, reach: Reach, rule: Rule) -> bool:
        if not isinstance(rule.pattern, PathPattern):
            return True
        if reach.like_a_file and rule.pattern.source.startswith("**"):
            return False  # It would be in any directory; nothing says that this is one.
        return any(
            may_hold(place, rule.pattern, self.directory, deep=reach.deep) for place in self._from_bases(reach.place)
        )

    def _allowed(self, pattern: CommandPattern, command: Command) -> bool:
        """Whether the pattern fits, and names whatever is outside the workspace."""
        if not pattern.allows(command, harmless=HARMLESS_NAMES) or self._beyond(pattern, command):
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

    def _beyond(self, pattern: CommandPattern, command: Command) -> bool:
        """Whether it does more than the pattern says, although that fits."""
        if self._is_git_away(command):
            return True
        exact = [glob.exact for glob in pattern.words]
        options = options_of_git(command)
        if options and not (options.start < len(exact) and exact[options.start]):
            return True
        if not pattern.open and all(exact):
            return False
        places = (path for text in landings(command) for path in self._paths_in(text))
        return any(path == self.directory for path in places)

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


def _pathspec(word: Word) -> Word:
    """A word as git may read it: with patterns of its own, quoted or not."""
    text = _MAGIC_OF_GIT.sub("", word.text)
    return Word(text, Kind.GLOB) if word.literal and _GLOB_SIGN.search(text) else Word(text, word.kind)


def _shown(command: Command) -> str:
    return shlex.join(word.text for word in command.words)[:200]


def _is_text(command: Command, word: Word) -> bool:
    """Whether this word is no path, whatever it becomes."""
    return word.kind is Kind.DYNAMIC and plain_name(command.words[0]) in _PRINTING


def _possible_paths(text: str) -> Iterator[str]:
    """The parts of a word that a program may take for a path: `x`, `--file=x`, `-fx`, `a:x`, `@x`."""
    if "file:" in text.casefold():
        yield "/"
    text = _WEB_ADDRESS.sub("", text)
    if text.startswith("-") and not text.startswith("--"):
        # Letters of other options may stand before the one with the value: `-vfx`.
        letters = _LETTERS.match(text, 1)
        end = letters.end() if letters else 1
        yield from (text[at:] for at in range(2, min(end, _MAX_LETTERS) + 1))
        yield text[max(end, 2) :] if end <= _MAX_LETTERS else "/"
    if text.startswith("-") and (rooted := _ROOTED.search(text)):
        yield rooted.group()
    if text.startswith(("+", "%")):
        yield text[1:]
    parts = re.split(r"[=:@,;|'\"]", text)
    yield from parts if len(parts) == 1 else (text, *parts)
