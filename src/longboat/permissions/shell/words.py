"""The words of a bash command line: quotes, escapes and expansions, read strictly.

Owns how one word is parsed and what is known of it before the command runs. Anything it does not understand raises
`NotUnderstood` instead of being guessed: a permission depends on it. Must not know commands, lists and redirections;
the grammar implements `enclosed()` for the commands inside a substitution.
"""

import re
from collections.abc import Callable

from longboat.permissions.shell.syntax import MAX_DEPTH, MAX_WORDS, Command, Findings, Kind, NotUnderstood, Word

_PLAIN = re.compile(r"[A-Za-z0-9_./,:=+@%^!#\-\]}]+")
_QUOTED_RUN = re.compile(r'[^"\\$`]+')
_BODY_RUN = re.compile(r"[^\\$`]+")
_ESCAPE = re.compile(r"\\([abeEfnrtv\\'\"?]|x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3})")
_SIGNS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_PARAMETER = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_BRACED = re.compile(r"\$\{(?:#?[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])\}")
_CUT = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::[0-9]+(?::[0-9]+)?|\^\^?|,,?)\}")
_DEFAULTED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+)(:?[-+?=]|%%?|##?|//?)")
_HEREDOC_TEXT = re.compile(r"\$\(cat[ \t]+<<[ \t]*'([A-Za-z_]+)'\n")
_CLOSING = re.compile(r"[ \t\n]*\)")
_BRACKETS = re.compile(r"""\[[^][\s;|&()<>'"\\$`]+\]""")
_TILDE = re.compile(r"^~|[=:]~")
_UNSPLIT = re.compile(r"[A-Za-z0-9_./:@%+=,-]+")
_NUMERIC = re.compile(r"[0-9+\-*/% ]")

_AFTER_A_PLAIN_DOLLAR = frozenset(" \t\n/.,:;|)")
BLANK_OR_END = ("", " ", "\t", "\n")
_NOT_IN_BRACES = frozenset("'\"\\{<>\n")


def _together(one: Kind, other: Kind) -> Kind:
    if one is other or other is Kind.LITERAL:
        return one
    return other if one is Kind.LITERAL else Kind.DYNAMIC


def _spreads(bare: str) -> bool:
    """Whether braces may make several words of this."""
    _, brace, rest = bare.partition("{")
    return bool(brace) and ("," in rest or ".." in rest)


class Scanner:
    """A position in a text, and the ways to read on from it."""

    def __init__(self, text: str, *, found: Findings | None = None, depth: int = 0, offset: int = 0) -> None:
        """`offset`: where this text begins in the whole command."""
        self.text = text
        self.pos = 0
        self.offset = offset
        self.found = found or Findings(sets_ifs="IFS" in text)
        self.depth = depth

    def enclosed(self, text: str | None = None, at: int = 0) -> None:
        """Read the commands of a substitution: up to its `)`, or all of `text`, which begins at `at`, for the old
        backquoted form."""
        raise NotImplementedError

    def _count(self) -> None:
        self.found.words += 1
        if self.found.words > MAX_WORDS:
            raise NotUnderstood(f"it has more than {MAX_WORDS:,} words")

    def deeper(self, read: Callable[[], None]) -> None:
        self._count()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotUnderstood("it is nested too deeply")
        read()
        self.depth -= 1

    def char(self, ahead: int = 0) -> str:
        return self.text[self.pos + ahead : self.pos + ahead + 1]

    def word(self) -> Word | None:
        """The word that begins here; None where none does."""
        start = self.pos
        value, bare = "", ""
        kind = Kind.LITERAL
        while (sign := self.char()) and sign not in " \t\n;|&()":
            if sign in "<>" and (self.pos > start or self.char(1) != "("):
                break
            if self.text.startswith("\\\n", self.pos):
                raise NotUnderstood("a line is continued inside a word")
            piece, piece_kind, quoted = self._piece(sign)
            value += piece
            bare += "q" if quoted else piece
            kind = _together(kind, piece_kind)
        if self.pos == start:
            return None
        self._count()
        if self.char() in ("<", ">") and (self.char(1) == "(" or re.fullmatch(r"\{\w+\}", bare)):
            raise NotUnderstood("a redirection directly follows a word")
        if _TILDE.search(bare) or _spreads(bare):
            kind = Kind.DYNAMIC
        return Word(self.text[start : self.pos] if kind is Kind.DYNAMIC else value, kind)

    def _piece(self, sign: str) -> tuple[str, Kind, bool]:
        """A part of a word: its value or source, what is known of it, and whether it was quoted."""
        match sign:
            case "\\":
                known = self._escaped(), Kind.LITERAL
            case "'":
                known = self._single_quoted(), Kind.LITERAL
            case '"':
                known = self._double_quoted()
            case "$":
                known = self._dollar(quoted=False)
            case "`":
                known = self._backquoted()
            case "<" | ">":
                known = self._substituted()
            case "*" | "?" | "[":
                return *self._glob(sign), False
            case _:
                return self._plain(), Kind.LITERAL, False
        return *known, True

    def _glob(self, sign: str) -> tuple[str, Kind]:
        if sign == "[" and not _BRACKETS.match(self.text, self.pos):
            # A lone bracket is the name of a command. Behind a name bash reads on to the closing one, over blanks too.
            before = self.text[self.pos - 1] if self.pos else ""
            if (before and before not in " \t\n;|&(") or self.char(1) not in BLANK_OR_END:
                raise NotUnderstood("a bracket is not closed within its word")
            self.pos += 1
            return sign, Kind.LITERAL
        self.pos += 1
        return sign, Kind.GLOB

    def _plain(self) -> str:
        if run := _PLAIN.match(self.text, self.pos):
            self.pos = run.end()
            return run.group()
        sign = self.char()
        # Spaces of other scripts look like the end of a word to people, and are none to bash.
        if not sign.isprintable():
            raise NotUnderstood("it has an invisible or unusual character outside quotes")
        self.pos += 1
        return sign

    def _escaped(self) -> str:
        sign = self.char(1)
        if not sign:
            raise NotUnderstood("it ends with a backslash")
        self.pos += 2
        return sign

    def _single_quoted(self) -> str:
        end = self.text.find("'", self.pos + 1)
        if end < 0:
            raise NotUnderstood("a quote is not closed")
        value = self.text[self.pos + 1 : end]
        self.pos = end + 1
        return value

    def _double_quoted(self) -> tuple[str, Kind]:
        self.pos += 1
        value, kind = "", Kind.LITERAL
        while (sign := self.char()) != '"':
            if not sign:
                raise NotUnderstood("a quote is not closed")
            piece, piece_kind = self._quoted_piece(sign, _QUOTED_RUN, '$`"\\')
            value += piece
            kind = _together(kind, piece_kind)
        self.pos += 1
        return value, kind

    def body(self) -> None:
        """Read this text as the body of a heredoc whose delimiter is not quoted."""
        before = len(self.found.expanded)
        while sign := self.char():
            if self.text.startswith("\\\n", self.pos):
                raise NotUnderstood("a heredoc has a continued line")
            self._quoted_piece(sign, _BODY_RUN, "$`\\")
        self.found.fed += self.found.expanded[before:]

    def _quoted_piece(self, sign: str, run: re.Pattern[str], escapes: str) -> tuple[str, Kind]:
        if sign == "$":
            return self._dollar(quoted=True)
        if sign == "`":
            return self._backquoted()
        if sign == "\\":
            return self._quoted_escape(escapes), Kind.LITERAL
        found = run.match(self.text, self.pos)
        assert found is not None
        self.pos = found.end()
        return found.group(), Kind.LITERAL

    def _quoted_escape(self, escapes: str) -> str:
        sign = self.char(1)
        self.pos += 2
        if sign == "\n":
            return ""
        return sign if sign and sign in escapes else "\\" + sign

    def _dollar(self, *, quoted: bool) -> tuple[str, Kind]:
        start = self.pos
        sign = self.char(1)
        if sign == "(":
            if quoted and (text := self._quoted_heredoc()) is not None:
                return text, Kind.LITERAL
            return self._arithmetic() if self.char(2) == "(" else self._substituted()
        if sign == "{":
            self.deeper(self._braced)
        elif sign == "'" and not quoted:
            return self._ansi_c()
        elif found := _PARAMETER.match(self.text, self.pos):
            self.pos = found.end()
        elif sign in _AFTER_A_PLAIN_DOLLAR or (quoted and sign in ("'", '"')):
            self.pos += 1
            return "$", Kind.LITERAL
        else:
            raise NotUnderstood("it uses a dollar sign in an unusual way")
        return self._value_of(self.text[start : self.pos], quoted=quoted)

    def _value_of(self, source: str, *, quoted: bool) -> tuple[str, Kind]:
        """What `$x` or its like stands for."""
        if source == "$?":
            return source, Kind.STATUS
        known = self.found.known.get(source.removeprefix("$").removeprefix("{").removesuffix("}"))
        # Outside quotes a value is split at blanks, or wherever IFS says, and its signs stand for names of files.
        if known and (quoted or (known.literal and _UNSPLIT.fullmatch(known.text) and not self.found.sets_ifs)):
            return known.text, known.kind
        self.found.expanded.append(source)
        return source, Kind.DYNAMIC

    def _quoted_heredoc(self) -> str | None:
        """The text of `$(cat <<'EOF' …)`, the usual way to write a long message: all of it is known."""
        found = _HEREDOC_TEXT.match(self.text, self.pos)
        if not found:
            return None
        body = found.end() - 1
        end = self.text.find(f"\n{found.group(1)}\n", body)
        closed = _CLOSING.match(self.text, end + len(found.group(1)) + 2) if end >= 0 else None
        # Inside a substitution bash takes a line that only begins with the delimiter for the end as well.
        if not closed or self.text.find(f"\n{found.group(1)}", body, end) >= 0:
            return None
        self._count()
        self.found.commands.append(Command((Word("cat"),)))
        self.pos = closed.end()
        return self.text[body + 1 : end].rstrip("\n") if end > body else ""

    def _ansi_c(self) -> tuple[str, Kind]:
        found = _ANSI_C.match(self.text, self.pos)
        if not found:
            raise NotUnderstood("a quote is not closed")
        self.pos = found.end()
        value = _unescaped(found.group(1))
        return (found.group(), Kind.DYNAMIC) if value is None else (value, Kind.LITERAL)

    def _substituted(self) -> tuple[str, Kind]:
        """`$(…)`, `<(…)` or `>(…)`."""
        start = self.pos
        self.pos += 2
        self.enclosed()
        return self.text[start : self.pos], Kind.DYNAMIC

    def _backquoted(self) -> tuple[str, Kind]:
        start = self.pos
        end = self.text.find("`", start + 1)
        if end < 0:
            raise NotUnderstood("a backquote is not closed")
        inner = self.text[start + 1 : end]
        if "\\" in inner:
            raise NotUnderstood("it has a backslash inside backquotes")
        self.pos = end + 1
        self.enclosed(inner, start + 1)
        return self.text[start : self.pos], Kind.DYNAMIC

    def _arithmetic(self) -> tuple[str, Kind]:
        """`$((…))`. Bash runs what it finds in the value of a name there, so only numbers are vouched for."""
        start = self.pos
        self.pos += 1
        self.deeper(self.sum)
        return self.text[start : self.pos], Kind.DYNAMIC

    def sum(self) -> None:
        """`((…))`, from its first parenthesis."""
        self.pos += 2
        while not self.text.startswith("))", self.pos):
            sign = self.char()
            if sign in "'\"\\()<>;\n":
                raise NotUnderstood("it has an unusual kind of arithmetic")
            if sign in "$`":
                self._quoted_piece(sign, _BODY_RUN, "")
            else:
                self.pos += 1
            if not _NUMERIC.match(sign):
                self.found.reasons.append("it does arithmetic with variable names, which can run commands")
        self.pos += 2

    def _braced(self) -> None:
        """`${…}`."""
        if found := _BRACED.match(self.text, self.pos) or _CUT.match(self.text, self.pos):
            self.pos = found.end()
            return
        found = _DEFAULTED.match(self.text, self.pos)
        if not found:
            raise NotUnderstood("it has an unusual kind of parameter expansion")
        message = self.text[found.end() : self.text.find("}", found.end())]
        if found.group(2).endswith("?") and re.search(r"[$`]", message):
            raise NotUnderstood("it prints a value in a message")
        if found.group(2).endswith("?"):
            self.found.values.compare([f"${found.group(1)}"])  # It ends the script or not.
        if found.group(2).endswith("="):
            self.found.variables.append(found.group(1))
            self.found.values.set_by_default(found.group(1))
        self.pos = found.end()
        while (sign := self.char()) != "}":
            if sign in _NOT_IN_BRACES or not sign:
                raise NotUnderstood("it has an unusual kind of parameter expansion")
            if sign == "$" and self.char(1) in ("'", '"', "}"):
                raise NotUnderstood("it has an unusual kind of parameter expansion")
            if sign in "$`":
                self._quoted_piece(sign, _BODY_RUN, "")
            else:
                self.pos += 1
        self.pos += 1


def _unescaped(text: str) -> str | None:
    """What `$'…'` stands for; None where it is no plain text."""
    if re.sub(_ESCAPE, "", text).count("\\"):
        return None
    value = _ESCAPE.sub(_character, text)
    return value if all(sign.isprintable() or sign in "\t\n" for sign in value) else None


def _character(found: re.Match[str]) -> str:
    sign = found.group(1)
    if sign[0] in _SIGNS:
        return _SIGNS[sign[0]]
    number = int(sign[1:], 16) if sign[0] in "xuU" else int(sign, 8)
    return chr(number) if number < 0x80 else "\0"  # what else becomes of it depends on the locale
