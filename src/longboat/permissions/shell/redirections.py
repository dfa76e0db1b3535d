"""What is between the words of a bash command line: blanks, comments, newlines, redirections and heredocs.

Owns which files are redirected and where the body of a heredoc begins and ends. Must not know commands; the grammar
implements `body_of_heredoc()`.
"""

import re
from dataclasses import dataclass

from longboat.permissions.shell.syntax import Findings, NotUnderstood, Redirection, Span, Word
from longboat.permissions.shell.words import BLANK_OR_END, Scanner

_REDIRECTION = re.compile(r"[0-9]{0,4}(<<<|<<-|<<|<>|<&-|>&-|<&|>&|>>|>\||<|>)|(&>>|&>)")
_DELIMITER = re.compile(r"""(?:'([\w.-]+)'|"([\w.-]+)"|(\\?)([\w.-]+))(?=[ \t\n;|&<>)]|\Z)""", re.ASCII)
_DUPLICATE = re.compile(r"[0-9]+-?|-")
_PLAIN_TARGET = re.compile(r"[A-Za-z0-9_./+-]+")


@dataclass(frozen=True, slots=True)
class _Heredoc:
    delimiter: str
    quoted: bool
    tabs: bool
    """Leading tabs are taken off (`<<-`)."""
    at: int


class Redirecting(Scanner):
    def __init__(self, text: str, *, found: Findings | None = None, depth: int = 0, offset: int = 0) -> None:
        super().__init__(text, found=found, depth=depth, offset=offset)
        self.heredocs: list[_Heredoc] = []
        """Those whose body begins after the next newline."""
        self.bodies = 0
        """How many of them were read."""
        self.substituted = False
        """Whether this is inside `$(…)` or one of its like."""

    def body_of_heredoc(self, text: str, at: int) -> None:
        """Read the body of a heredoc whose delimiter is not quoted. It begins at `at`."""
        raise NotImplementedError

    def gap(self) -> None:
        """Skip blanks, continued lines and a comment, but no newline."""
        while True:
            if self.char() in (" ", "\t"):
                self.pos += 1
            elif self.text.startswith("\\\n", self.pos):
                self._continuation()
            else:
                break
        if self.char() == "#":
            end = self.text.find("\n", self.pos)
            self.pos = len(self.text) if end < 0 else end

    def _continuation(self) -> None:
        """A backslash at a line's end, where a blank parts the tokens too: else bash joins what we would part."""
        before = self.text[self.pos - 1 : self.pos] if self.pos else ""
        if before not in BLANK_OR_END and self.char(2) not in BLANK_OR_END:
            raise NotUnderstood("a line is continued inside a word or an operator")
        self.pos += 2

    def newlines(self) -> None:
        self.gap()
        while self.char() == "\n":
            self._bodies()
            self.gap()

    def _bodies(self) -> None:
        """Take a newline, and the heredocs that begin after it."""
        heredocs, self.heredocs = self.heredocs, []
        if heredocs and "\n" in self.text[heredocs[0].at : self.pos]:
            raise NotUnderstood("a heredoc starts in the middle of a longer command")
        self.pos += 1
        for heredoc in heredocs:
            self._body_of(heredoc)

    def _body_of(self, heredoc: _Heredoc) -> None:
        start = self.pos
        while True:
            end = self.text.find("\n", self.pos)
            line = self.text[self.pos :] if end < 0 else self.text[self.pos : end]
            line = line.lstrip("\t") if heredoc.tabs else line
            if line == heredoc.delimiter:
                break
            if self.substituted and line.startswith(heredoc.delimiter):
                # For the sake of old scripts bash ends it here if there is a `)` further on.
                raise NotUnderstood("a heredoc inside a substitution may end before its delimiter")
            if end < 0:
                raise NotUnderstood("a heredoc is not closed")
            self.pos = end + 1
        self.bodies += 1
        body = self.text[start : self.pos]
        self.pos = len(self.text) if end < 0 else end + 1
        if not heredoc.quoted:
            self.body_of_heredoc(body, start)

    def redirection(self) -> bool:
        start = self.pos
        found = _REDIRECTION.match(self.text, start)
        if not found:
            return False
        sign = found.group(1) or found.group(2)
        if sign in ("<", ">") and self.text.startswith("(", found.end()):
            if found.group() == sign:
                return False  # A process substitution is a word.
            raise NotUnderstood("a redirection directly follows a word")
        self.pos = found.end()
        if sign in ("<&-", ">&-"):
            return True
        self.gap()
        if sign in ("<<", "<<-"):
            self._heredoc(tabs=sign == "<<-")
            return True
        before = len(self.found.expanded)
        target = self.word()
        if target is None:
            raise NotUnderstood("a redirection has no target")
        if sign == "<<<":
            self.found.fed += self.found.expanded[before:]
        else:
            self._redirect(sign, target, (self.offset + start, self.offset + self.pos))
        return True

    def _redirect(self, sign: str, target: Word, span: Span) -> None:
        if sign in ("<&", ">&"):
            if target.literal and _DUPLICATE.fullmatch(target.text):
                return
            # Bash expands the target of `>&` twice: quoted or not, nothing in it may be expandable.
            if sign == "<&" or not _PLAIN_TARGET.fullmatch(target.text):
                raise NotUnderstood("a redirection uses a descriptor that is only known when it runs")
        self.found.redirections.append(Redirection(target, writes=sign != "<", span=span))

    def _heredoc(self, *, tabs: bool) -> None:
        found = _DELIMITER.match(self.text, self.pos)
        if not found:
            raise NotUnderstood("a heredoc has an unusual kind of delimiter")
        single, double, escape, bare = found.groups()
        quoted = bare is None or bool(escape)
        self.heredocs.append(_Heredoc(single or double or bare, quoted, tabs, self.pos))
        self.pos = found.end()
