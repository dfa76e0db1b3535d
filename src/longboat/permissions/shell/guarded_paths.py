"""The guarded files that a shell command may change: those its words name, those it implies, and those no one can rule
out because only the run tells where it writes.

Owns that question. Must not know what is allowed beyond rules that name a guarded file, nor look at the disk.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from longboat.permissions.assessment import Gap
from longboat.permissions.guarded_files import holds_guarded, is_guarded, mentions_guarded, source_may_be_guarded
from longboat.permissions.rules import relative_to
from longboat.permissions.shell.harmless import harmless_paths
from longboat.permissions.shell.paths import ShellPaths, possible_paths
from longboat.permissions.shell.scope import changes_named_files, paths_removed, paths_written, sets_git_config
from longboat.permissions.shell.script import Command, Kind, Word, plain_name

_DOWNLOADERS = frozenset({"curl", "wget"})
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNKNOWN = re.compile(r"[$`~*?\[<>…]")
"""Signs of a word that may become anything. Of braces alone, all that they may become is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedPaths(ShellPaths):
    def guarded_word(self, command: Command) -> str:
        """The guarded file that a command which does more than look names or implies, if no rule names it; “.” where it
        changes the whole workspace. Empty where there is none."""
        if named := self.named_guarded(command):
            return named
        if harmless_paths(command) is not None:
            return ""
        return "." if self.changes_everything(command) else ".git/config" if sets_git_config(command) else ""

    def named_guarded(self, command: Command) -> str:
        """The guarded file that its words or the variables that it sets name."""
        values = [each.value for each in command.assignments]
        words = () if harmless_paths(command) is not None else command.words[1:]
        return next(filter(None, map(self.guarded_in, (*values, *words))), "") or self.downloaded_guarded(command)

    def downloaded_guarded(self, command: Command) -> str:
        """The guarded file that a download may write, named after the last part of its address."""
        if plain_name(command.words[0]) not in _DOWNLOADERS:
            return ""
        names = (Word(_file_in_address(word.text), word.kind) for word in command.words[1:])
        return next(filter(None, map(self.guarded_in, names)), "")

    def changes_everything(self, command: Command) -> bool:
        """Whether it removes or overwrites files with names that no word shows, all over the workspace."""
        texts = (*paths_written(command), *paths_removed(command))
        places = (*(path for text in texts for path in self.paths_in(text)), *(self.paths if texts else ()))
        return any(holds_guarded(path, self.directory) for path in places)

    def guarded_in(self, word: Word) -> str:
        """The guarded file that a word may name, if no rule does."""
        if word.kind is Kind.DYNAMIC:
            return word.text if source_may_be_guarded(word.text) else ""
        for path in (path for text in possible_paths(word.text) for path in self.from_bases(text)):
            if is_guarded(path) and any(self.path_gaps(self.tool, path)):
                return relative_to(path, self.directory) or path
        return ""

    def base_gaps(self) -> Iterator[Gap]:
        """Whether it runs, and does more than look, in a guarded directory."""
        if any(harmless_paths(command) is None for command in self.script.commands):
            for base in filter(is_guarded, self.bases()):
                yield from self.path_gaps(self.tool, base)

    @property
    def may_change_guarded(self) -> bool:
        """Whether it may change a guarded file, so that no grant allows its text."""
        targets = [each.target for each in self.script.redirections if each.writes]
        return (
            any(map(self.guarded_in, targets))
            or any(map(self.guarded_word, self.script.commands))
            or any(self.base_gaps())
            or (self._is_vague and mentions_guarded(self.argument))
            or self._writes_unseen(targets)
        )

    @property
    def _is_vague(self) -> bool:
        """Whether some of what it changes is only known when it runs."""
        words = [each.target for each in self.script.redirections]
        for command in self.script.commands:
            words += command.words if harmless_paths(command) is None else ()
        return bool(self.script.opaque) or any(word.kind is Kind.DYNAMIC for word in words)

    def _writes_unseen(self, targets: list[Word]) -> bool:
        """Whether only the run tells which files it writes: `cp a $X`, `> $X`, `cd $X && cp a b`."""
        writers = [command for command in self.script.commands if changes_named_files(command)]
        words = [*targets, *(word for command in writers for word in command.words[1:])]
        return any(map(_is_unknown, words)) or (bool(words) and self._roams)

    @property
    def _roams(self) -> bool:
        """Whether only the run tells in which directory its commands run."""
        moves = [each for each in self.script.commands if plain_name(each.words[0]) in ("cd", "popd", "pushd")]
        words = [word for move in moves for word in move.words[1:]]
        settings = (*self.script.settings, *(each for move in moves for each in move.assignments))
        return (
            len(moves) > 1
            or any(not word.literal or word.text.startswith(("-", "+")) for word in words)
            or any(each.name == "CDPATH" for each in settings)
        )


def _is_unknown(word: Word) -> bool:
    return word.kind is Kind.DYNAMIC and ("{" not in word.text or _UNKNOWN.search(word.text) is not None)


def _file_in_address(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), posixpath.basename(text))
