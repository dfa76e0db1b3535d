"""Checks a shell command against the rules: every simple command, every redirection and every variable it sets.

Owns the checks that only bash needs. A word that is only known when the command runs is never a reason to allow it, and
may always turn out to be denied.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longboat.permissions.assessment import Gap, Risk, guarded_gap
from longboat.permissions.guarded_files import is_guarded
from longboat.permissions.overlap import may_hold
from longboat.permissions.rules import CommandPattern, Glob, PathPattern, Rule, relative_to
from longboat.permissions.shell.guarded_paths import GuardedPaths
from longboat.permissions.shell.harmless import EXACT_FORMS, harmless_paths
from longboat.permissions.shell.offers import HARMLESS_NAMES, is_destructive, narrow_rule, text_rule, wide_rule
from longboat.permissions.shell.paths import GLOB_SIGN, possible_paths
from longboat.permissions.shell.reach import Reach, find_reach
from longboat.permissions.shell.scope import (
    is_reading_shell,
    may_be_alias,
    may_carry_command,
    options_of_git,
    runs_input,
    sets_git_config,
    unexpected_option,
)
from longboat.permissions.shell.script import Command, Kind, Redirection, Word, plain_name
from longboat.permissions.shell.syntax import Assignment, names
from longboat.wire.asks import NEEDS_APPROVAL
from longboat.wire.tools import Governs

_PRINTING = names(": echo printf true false seq sleep")
"""Commands that only print their arguments; they neither read nor write files."""

_OUTSIDE = "It would run without read-only protection, so it could write files and use the network."

_LOCAL_NAME = re.compile(r"(?!npm_)[a-z][a-z0-9_]*(?<!_proxy)")
_MAGIC_OF_GIT = re.compile(r"\A:(?:\([^)]*\)|[!^/]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellAssessment(GuardedPaths):
    doubt: str
    """Why even reading the git repository may run something."""
    unwalled: bool
    """The command asks to run without the wall, so a rule is needed even if it only reads."""
    has_wall: bool
    only_read: frozenset[str] = frozenset()
    """Paths that it only reads."""

    def denials(self) -> Iterator[Rule]:
        for rule in self.rules.deny:
            if self._denies_command(rule) or any(self._denies_file(rule, each) for each in self.script.redirections):
                yield rule

    def _denies_command(self, rule: Rule) -> bool:
        if not rule.names(self.tool):
            return False
        match rule.pattern:
            case None:
                return True
            case CommandPattern():
                return any(map(rule.pattern.refuses, (*self.script.commands, *self.script.shadows)))
            case Glob():
                return rule.pattern.fits(self._text)
            case _:
                return False

    def _denies_file(self, rule: Rule, redirection: Redirection) -> bool:
        if not (rule.governs_changes if redirection.writes else rule.governs_reading):
            return False
        return any(self.on_path(rule, path) for path in self.places_of(redirection.target))

    def gaps(self) -> Iterator[Gap]:
        yield from self.gaps_of_all()
        for redirection in self.script.redirections:
            yield from self.redirection_gaps(redirection)
        for command in self.script.commands:
            yield from self.command_gaps(command)

    def gaps_of_all(self) -> Iterator[Gap]:
        """Gaps of the command as a whole, not of a single command or redirection."""
        yield from self._led_gaps()
        yield from self._doubts()
        if self._named_as_text:
            return
        yield from self.base_gaps()
        if self.script.opaque:
            yield Gap(why=f"This command cannot be checked: {self.script.opaque}.", risk=Risk.UNKNOWN)
        if self.whole:
            yield from self._settings_outside()
        else:
            yield from self._settings()
        if not self.whole and not self.script.commands and (self.unwalled or not self._may_be_harmless):
            yield Gap(why=_OUTSIDE)

    def _led_gaps(self) -> Iterator[Gap]:
        """Gaps of the paths that its words lead to on the disk."""
        for path in map(posixpath.normpath, self.paths):
            inside = relative_to(path, self.directory) is not None
            if is_guarded(path) and path in self.only_read:
                yield from self.path_gaps(self._for_files(False), path)
            elif not (inside and self.whole) or is_guarded(path):
                yield from self.path_gaps(self._for_files(True) if inside and self._writes else self.tool, path)

    def _for_files(self, writes: bool) -> str:
        """The tool whose rules hold for files that a command writes, or reads."""
        return self.rules.tool_for(Governs.WRITING if writes else Governs.READING)

    @property
    def whole(self) -> Rule | None:
        """The rule that allows the whole of bash: anything that stays inside the workspace and can be read."""
        return next((rule for rule in self.allowing(self.tool) if rule.pattern is None), None)

    @property
    def _named_as_text(self) -> bool:
        """Whether a rule allows this text, letter by letter, whatever it may turn out to do. A grant does not where the
        text may change a guarded file."""
        return any(map(self._is_text_rule, self.rules.allow)) or (
            any(map(self._is_text_rule, self.grants)) and not self.may_change_guarded
        )

    def _is_text_rule(self, rule: Rule) -> bool:
        return rule.names(self.tool) and isinstance(rule.pattern, Glob) and rule.pattern.fits(self._text)

    @property
    def _text(self) -> str:
        """The command as the rule for a text has it: the same text means other things in other directories."""
        place = relative_to(self.start, self.directory)
        text = self.argument.strip(" \t\n")  # Any other blank is a letter to bash.
        return text if place in (".", None) else f"cd {shlex.quote(place)} && {text}"

    def rule_for_all(self) -> str:
        return "" if self.may_change_guarded else text_rule(self.tool, self._text)

    def doubts(self) -> Iterator[Gap]:
        yield from self._doubts()
        for redirection in self.script.redirections:
            yield from self._redirection_doubts(redirection)
        for command in self.script.commands:
            yield from self._command_doubts(command)

    def _doubts(self) -> Iterator[Gap]:
        """What a deny rule may turn out to meet, of no single part. No rule that allows helps here."""
        for rule in self.rules.deny:
            if (rule.governs_changes or rule.governs_reading) and (
                path := next((path for path in self.paths if self.on_path(rule, path)), None)
            ):
                yield _denied_gap(f"It leads to {path}, which the deny rule {rule.text} covers.")
            if not rule.names(self.tool) or not isinstance(rule.pattern, CommandPattern):
                continue
            if self.script.opaque:
                yield _denied_gap(f"It could do what {rule.text} denies: {self.script.opaque}.")
            elif any(_may_do(rule.pattern, each) or is_reading_shell(each) for each in self.script.shadows):
                yield _may_turn_out(rule)
            elif setting := next(filter(may_carry_command, self._all_settings()), None):
                yield _denied_gap(f"It could do what {rule.text} denies: {setting.name} can name a command to run.")

    def _redirection_doubts(self, redirection: Redirection) -> Iterator[Gap]:
        target = redirection.target
        for rule in self.rules.deny:
            if redirection.writes and rule.governs_changes and (len(self.moves) > 1 or not target.literal):
                yield _denied_gap(f"It could write what {rule.text} denies: the target is only known when it runs.")
            hides = rule.governs_reading and not redirection.writes and not target.literal
            if hides and self.may_be(target, rule):
                yield _denied_gap(f"It reads {target.text[:200]}, which the deny rule {rule.text} may cover.")

    def _command_doubts(self, command: Command) -> Iterator[Gap]:
        for rule in self.rules.deny:
            if word := next(self._denied_words(rule, command), None):
                yield _denied_gap(f"It names {word.text[:200]}, which the deny rule {rule.text} may cover.")
            if self.script.opaque or not rule.names(self.tool) or not isinstance(rule.pattern, CommandPattern):
                continue
            if _may_do(rule.pattern, command):
                yield _may_turn_out(rule)

    def _denied_words(self, rule: Rule, command: Command) -> Iterator[Word]:
        """The words of a command that name what a rule denies to the tools for files. Who only looks edits nothing."""
        looks = harmless_paths(command) is not None
        if rule.pattern is None or not (rule.governs_reading or (rule.governs_changes and not looks)):
            return
        git = plain_name(command.words[0]) == "git"
        yield from (word for word in command.words[1:] if self.may_be(_pathspec(word) if git else word, rule))

    def _all_settings(self) -> Iterator[Assignment]:
        """All that it sets, for one command or for what follows."""
        yield from self.script.settings
        for command in (*self.script.commands, *self.script.shadows):
            yield from command.assignments
        written = {each.name for each in self.script.settings}
        for name in self.script.variables:
            if name not in written:
                yield Assignment(name, Word("", Kind.DYNAMIC))

    def _settings(self) -> Iterator[Gap]:
        names = [name for name in self.script.variables if not _LOCAL_NAME.fullmatch(name)]
        for name in (*names, *self.script.exported):
            if name not in HARMLESS_NAMES:
                yield Gap(why=f"It sets {name} for the commands that follow.")
        if shown := next(filter(_shows_value, self.script.settings), None):
            yield Gap(why=f"It sets {shown.name} to {shown.value.text[:200]}, which a program could print.")
        if self.script.decisive:
            variable = self.script.decisive[0][:200]
            yield Gap(why=f"What it does depends on {variable}, so its result could reveal that value.")
        if len(self.moves) > 1:
            yield Gap(why="It changes directory more than once.")

    def _settings_outside(self) -> Iterator[Gap]:
        for each in _written(self.script.settings):
            if self._leads_out(each.value):
                told = f"{each.name} to {each.value.text[:200]}"
                why = f"It sets {told}, which may be outside the workspace."
                yield Gap(why=why, risk=Risk.OUTSIDE)

    @property
    def _writes(self) -> bool:
        return any(each.writes and self.places_of(each.target) for each in self.script.redirections)

    def redirection_gaps(self, redirection: Redirection) -> Iterator[Gap]:
        yield from self._redirection_doubts(redirection)
        if self._named_as_text:
            return
        target = redirection.target
        if redirection.writes and not target.literal and (name := self.guarded_in(target)):
            yield guarded_gap(name)
        elif not target.literal:
            why = f"It redirects to {target.text}, which is only known when it runs."
            yield Gap(why=why, brief="only known when it runs", risk=Risk.UNKNOWN)
        for path in self.places_of(target):
            if not (self.whole and relative_to(path, self.directory) is not None) or is_guarded(path):
                yield from self.path_gaps(self._for_files(redirection.writes), path)

    def command_gaps(self, command: Command) -> Iterator[Gap]:
        yield from self._command_doubts(command)
        if self._named_as_text or self.rule_for(command):
            return
        if self._is_harmless(command) and not self.unwalled:
            if self.script.fed and not self.whole:
                why = f"It could print {self.script.fed[0]}, which is only known when it runs."
                yield Gap(why=why, narrow=narrow_rule(self.tool, command))
            return
        stray = self._stray(command)
        outside = _outside(stray) if stray else ""
        if guarded := self.guarded_word(command):
            yield guarded_gap(guarded, outside)
        elif limit := outside or self._limit(command):
            risk = Risk.OUTSIDE if outside else Risk.USUAL
            yield Gap(
                why=limit, narrow="" if self._is_git_away(command) else narrow_rule(self.tool, command), risk=risk
            )
        else:
            why = _OUTSIDE if self.unwalled and self._is_harmless(command) else self._why(command)
            brief = NEEDS_APPROVAL if why == _needs_approval(command) else ""
            risk = Risk.DESTRUCTIVE if is_destructive(command) else Risk.USUAL
            yield Gap(
                why=why,
                narrow=narrow_rule(self.tool, command),
                wide=wide_rule(self.tool, command),
                brief=brief,
                risk=risk,
            )

    def rule_for(self, command: Command) -> Rule | None:
        """The rule that allows this command."""
        guarded, whole = bool(self.guarded_word(command)), self.whole
        granted = whole is not None and whole not in self.rules.allow
        barred = guarded if granted else bool(self.named_guarded(command))
        if whole and not barred and not self._stray(command):
            return whole
        return next(
            (
                rule
                for rule in self.allowing(self.tool, guarded=guarded)
                if isinstance(rule.pattern, CommandPattern) and self._allowed(rule.pattern, command)
            ),
            None,
        )

    def rule_for_redirection(self, redirection: Redirection) -> Rule | None:
        """The rule that allows this redirection, if it needs one."""
        tool = self._for_files(redirection.writes)
        places = self.places_of(redirection.target)
        fitting = (rule for rule in self.allowing(tool) if any(self.on_path(rule, path) for path in places))
        return next(fitting, self.whole if places else None)

    def _stray(self, command: Command) -> Word | None:
        """The first word that is or may be a path outside of the workspace. Beside a rule for the whole of bash that is
        the command's name too, and a rule for the place is enough."""
        name, *words = command.words
        if self.whole:
            words += [each.value for each in _written(command.assignments)]
            words = [name, *words] if plain_name(name) == name.text else words
        return next((word for word in words if self._leads_out(word) and not _is_text(command, word)), None)

    def _leads_out(self, word: Word) -> bool:
        return self.strays(word) and not (self.whole and word.literal and self._is_named(word.text))

    def _is_named(self, text: str) -> bool:
        """Whether rules name the places outside that this may be."""
        places = [path for path in possible_paths(text) if self.outside(path)]
        return not any(place.startswith("~") for place in places) and not any(
            any(self.path_gaps(self.tool, path)) for place in places for path in self.from_bases(place)
        )

    def _limit(self, command: Command) -> str:
        """Why no wider rule than this exact command can be offered."""
        settings = [each for each in command.assignments if each.name not in HARMLESS_NAMES or _shows_value(each)]
        if settings:
            return f"It sets {settings[0].name} for {_quote_command(command)}."
        if self._is_git_away(command):
            return "It runs git outside the project's root directory; hooks or config there could run other programs."
        return ""

    def _why(self, command: Command) -> str:
        shown = _quote_command(command)
        if self.doubt and harmless_paths(command) is not None and plain_name(command.words[0]) == "git":
            return f"{shown} may do more than read: {self.doubt}."
        if self._shows_hidden(command):
            return f"{shown} could show files that a rule denies."
        return _needs_approval(command)

    def _is_git_away(self, command: Command) -> bool:
        """Another directory may have its own git configuration, which can run commands."""
        return self.elsewhere and plain_name(command.words[0]) == "git"

    @property
    def _may_be_harmless(self) -> bool:
        """Without a wall to contain a command wrongly taken for harmless, only a few exact commands are."""
        return self.has_wall or self.argument in EXACT_FORMS

    def _is_harmless(self, command: Command) -> bool:
        return self._may_be_harmless and self._only_looks_inside(command)

    def _only_looks_inside(self, command: Command) -> bool:
        paths = harmless_paths(command)
        if paths is None or any(each.name not in HARMLESS_NAMES or _shows_value(each) for each in command.assignments):
            return False
        if self._is_git_away(command) or (self.doubt and plain_name(command.words[0]) == "git"):
            return False
        if self._shows_hidden(command):
            return False
        return not any(self.strays(word) or self._hidden(word) for word in paths)

    def _hidden(self, word: Word) -> bool:
        """Whether a rule denies the view of this file, or may deny one of these files."""
        return any(self.may_be(word, rule) for rule in self.rules.deny if rule.governs_reading)

    def _shows_hidden(self, command: Command) -> bool:
        """Whether it shows files that it does not name, and a rule may deny the view of some."""
        denials = [rule for rule in self.rules.deny if rule.governs_reading]
        shown = find_reach(command, harmless_paths(command) or ()) if denials else ()
        return any(self._may_hold(reach, rule) for reach in shown for rule in denials)

    def _may_hold(self, reach: Reach, rule: Rule) -> bool:
        if not isinstance(rule.pattern, PathPattern):
            return True
        if reach.like_a_file and rule.pattern.source.startswith("**"):
            return False  # It would be in any directory; nothing says that this is one.
        return any(
            may_hold(place, rule.pattern, self.directory, deep=reach.deep) for place in self.from_bases(reach.place)
        )

    def _allowed(self, pattern: CommandPattern, command: Command) -> bool:
        """Whether the pattern fits, and names whatever is outside the workspace."""
        if not pattern.allows(command, harmless=HARMLESS_NAMES) or self._beyond(pattern, command):
            return False
        for at, word in enumerate(command.words):
            named = at < len(pattern.words) and (
                pattern.words[at].exact
                or self.strays(start := Word(pattern.words[at].pieces[0]))
                or is_guarded(start.text)
            )
            if named or _is_text(command, word) or (at == 0 and plain_name(word) != word.text):
                continue
            if self.strays(word) or self.guarded_in(word):
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
        if sets_git_config(command) and Glob(("config",)) not in pattern.words:
            return True
        unexpected = unexpected_option(command)
        if unexpected is not None and not (unexpected < len(exact) and exact[unexpected]):
            return True
        if not pattern.open and all(exact):
            return False
        return self.changes_everything(command) or bool(self.downloaded_guarded(command))


def _pathspec(word: Word) -> Word:
    """A word as git may read it: with patterns of its own, quoted or not."""
    text = _MAGIC_OF_GIT.sub("", word.text)
    return Word(text, Kind.GLOB) if word.literal and GLOB_SIGN.search(text) else Word(text, word.kind)


def _may_turn_out(rule: Rule) -> Gap:
    return _denied_gap(f"It could do what {rule.text} denies: some of it is only known when it runs.")


def _denied_gap(why: str) -> Gap:
    return Gap(why=why, risk=Risk.DENIED)


def _may_do(pattern: CommandPattern, command: Command) -> bool:
    """Whether a command may turn out to be of this form, or to run one that is."""
    if pattern.may_refuse(command) or runs_input(command):
        return True
    return may_be_alias(command) and (not pattern.words or pattern.words[0].fits("git"))


def _outside(word: Word) -> str:
    known = word.literal and not word.text.startswith("~")
    return f"{word.text[:200]} {'is' if known else 'may be'} outside the workspace."


def _needs_approval(command: Command) -> str:
    return f"Running {_quote_command(command)} needs your approval."


def _quote_command(command: Command) -> str:
    return shlex.join(word.text for word in command.words)[:200]


def _is_text(command: Command, word: Word) -> bool:
    """Whether this word is no path, whatever it becomes."""
    return word.kind is Kind.DYNAMIC and plain_name(command.words[0]) in _PRINTING


def _shows_value(setting: Assignment) -> bool:
    """Whether a program or bash itself may print the value: an unknown locale is named, a time zone shown."""
    return setting.name in HARMLESS_NAMES and setting.value.kind is Kind.DYNAMIC


def _written(settings: Sequence[Assignment]) -> list[Assignment]:
    """Those that may matter, and of which it can be read to what."""
    known = (each for each in settings if each.value.literal or each.value.text.startswith("~"))
    return [each for each in known if each.name not in HARMLESS_NAMES]
