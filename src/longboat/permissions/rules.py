"""Permission rules such as `bash(npm test *)` and `edit(src/**)`: how they are written, and what they match.

Owns the syntax and the matching of one rule. What a pattern means depends on the traits of the tool that it is for: the
caller passes them. Must not know any tool, the order in which rules are checked, nor what is allowed without one: that
is `permissions`.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from longboat.permissions.shell.script import Assignment, Command, Word, plain_name
from longboat.wire.tools import UNKNOWN, Governs, ToolTraits

Traits = Mapping[str, ToolTraits]
"""Of the tools that rules may name, by name. A pattern for any other tool, such as an MCP server's, is a plain glob."""

_RULE = re.compile(r"([a-z][a-z0-9_]*|mcp__[A-Za-z0-9_.*-]+)(?:\((.+)\))?", re.DOTALL)
_URL = re.compile(r"(https?://)([^/?#\\@\s]+)([/?#].*)?", re.DOTALL)
_SET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_TEXT = re.compile(r"=\s")
"""The start of a pattern that matches one exact text; a star in it is a plain star."""
_PIECE = re.compile(r"""'[^']*'|"(?:[^"\\$`]|\\.)*"|\\.|\*|[^\s'"\\*;|&<>()$`]+""", re.DOTALL)
_IN_QUOTES = re.compile(r'\\([$`"\\])')
_GLOB_SIGN = re.compile(r"/\*\*/|/\*\*\Z|\*\*/|\*\*|\*|\?|\\.|[^*?\\/]+|/|\\", re.DOTALL)


class RuleInvalid(ValueError):
    """An invalid rule. The message names it and says how to write one."""

    def __init__(self, rule: object, why: str) -> None:
        super().__init__(
            f'Permission rule {rule!r} cannot be used: {why}. Write a tool, such as "view", or a tool and a pattern, '
            'such as "bash(npm test *)", "edit(src/**)" or "fetch(https://docs.python.org/*)".'
        )


@dataclass(frozen=True, slots=True)
class Glob:
    """A text with `*` for anything: the pieces around the stars."""

    pieces: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return len(self.pieces) == 1

    def fits(self, text: str) -> bool:
        """In time linear in the text, for any number of stars."""
        if self.exact:
            return text == self.pieces[0]
        first, *middle, last = self.pieces
        if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
            return False
        at, end = len(first), len(text) - len(last)
        for piece in middle:
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """One simple command: what it sets, its words, and whether more words may follow."""

    settings: tuple[tuple[str, Glob], ...]
    words: tuple[Glob, ...]
    open: bool

    def allows(self, command: Command, *, harmless: frozenset[str]) -> bool:
        """Whether the command is surely of this form. A word that is not known fits nothing but the open end."""
        words = command.words
        if len(words) < len(self.words) or (len(words) > len(self.words) and not self.open):
            return False
        return all(
            _surely(glob, word.literal, plain_name(word) if at == 0 else word.text)
            for at, (glob, word) in enumerate(zip(self.words, words, strict=False))
        ) and all(each.name in harmless or self._sets(each) for each in command.assignments)

    def refuses(self, command: Command) -> bool:
        """Whether the command is of this form, under whatever path or spelling its name is given."""
        count = len(self.words)
        words = command.words
        if (
            len(words) < count
            or (len(words) > count and not self.open)
            or not all(word.literal for word in words[:count])
        ):
            return False
        texts = [_bare_name(words[0]), *(word.text for word in words[1:count])][:count]
        whole = [words[0].text, *texts[1:]][:count]
        return self._settings_met(command) and any(
            all(glob.fits(text) for glob, text in zip(self.words, form, strict=True)) for form in (texts, whole)
        )

    def may_refuse(self, command: Command) -> bool:
        """Whether the command may turn out to be of this form: through a word that is only known when it runs, or
        with options between its name and the words that the rule names."""
        return self._may_be(command.words) or self._behind_options(command.words)

    def _may_be(self, words: Sequence[Word]) -> bool:
        """A word that is not known may stand for any words. `places` are the globs that may come next."""
        end = len(self.words)
        places = {0}
        for at, word in enumerate(words):
            if not word.literal:
                places = set(range(min(places), end + 1))
                continue
            text = _bare_name(word) if at == 0 else word.text
            ahead = {place + 1 for place in places if place < end and self.words[place].fits(text)}
            places = ahead | ({end} if self.open and end in places else set())
            if not places:
                return False
        return end in places

    def _behind_options(self, words: Sequence[Word]) -> bool:
        if len(self.words) < 2 or not words[1:] or not words[1].text.startswith("-"):
            return False
        if words[0].literal and not self.words[0].fits(_bare_name(words[0])):
            return False
        rest = iter(words[1:])
        return all(any(not word.literal or glob.fits(word.text) for word in rest) for glob in self.words[1:])

    def _sets(self, assignment: Assignment) -> bool:
        return any(
            name == assignment.name
            and _surely(glob, assignment.value.literal or glob.pieces == ("", ""), assignment.value.text)
            for name, glob in self.settings
        )

    def _settings_met(self, command: Command) -> bool:
        return all(
            any(each.name == name and glob.fits(each.value.text) for each in command.assignments)
            for name, glob in self.settings
        )


def _surely(glob: Glob, known: bool, text: str) -> bool:
    # `build/*` must not take `build/../../x`.
    return known and glob.fits(text) and (glob.exact or ".." not in text.split("/"))


def _bare_name(word: Word) -> str:
    return posixpath.basename(word.text).casefold()


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A path below the workspace, or an absolute one: `*` stays in its directory, `**` does not."""

    source: str
    regex: re.Pattern[str]

    @property
    def absolute(self) -> bool:
        return self.source.startswith("/")

    def signs(self) -> list[str]:
        """What it is made of: `**` with the slashes around it, `*`, `?`, an escaped letter, plain text."""
        return _GLOB_SIGN.findall(self.source)

    def fits(self, path: str, directory: str) -> bool:
        """`path` is absolute and normalized."""
        if not self.absolute:
            inside = relative_to(path, directory)
            return inside is not None and self.regex.fullmatch(inside) is not None
        return self.regex.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class UrlPattern:
    scheme: str
    host: Glob
    rest: Glob

    def fits(self, url: str) -> bool:
        found = _URL.fullmatch(url)
        if not found or found.group(1) != self.scheme:
            return False
        rest = found.group(3) or "/"
        if not self.rest.exact and re.search(r"/(?:\.|%2e){2}(?:[/?#]|\Z)", rest, re.IGNORECASE):
            return False
        return self.host.fits(found.group(2).lower()) and self.rest.fits(rest)


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    tool: Glob
    pattern: CommandPattern | PathPattern | UrlPattern | Glob | None = None
    """None is the whole tool."""
    governs: Governs = Governs.NOTHING
    """Which calls of other tools it holds for."""

    def names(self, tool: str) -> bool:
        return self.tool.fits(tool)

    def concerns(self, tool: str, traits: ToolTraits) -> bool:
        """Whether it is a rule for this tool. One rule is enough for all the tools whose rules govern changes."""
        return self.names(tool) or (self.governs_changes and traits.governs in _CHANGING)

    @property
    def governs_changes(self) -> bool:
        return self.governs in _CHANGING

    @property
    def governs_reading(self) -> bool:
        return self.governs is Governs.READING


_CHANGING = (Governs.EDITING, Governs.WRITING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    tools: Traits = field(default_factory=dict)

    @classmethod
    def parse(cls, *, tools: Traits, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> "Rules":
        """Raises RuleInvalid."""
        return cls(allow=parse_rules(allow, tools), deny=parse_rules(deny, tools), tools=tools)

    def traits_of(self, tool: str) -> ToolTraits:
        return self.tools.get(tool, UNKNOWN)

    def tool_for(self, governs: Governs) -> str:
        """The name of the rule to offer for such a call: of the first tool whose rules govern it."""
        return next((name for name, traits in self.tools.items() if traits.governs is governs), "")


def relative_to(path: str, directory: str) -> str | None:
    """`path` relative to `directory`, if it is inside."""
    if path == directory:
        return "."
    root = directory.rstrip("/") + "/"
    return path[len(root) :] if path.startswith(root) else None


def parse_rules(rules: Iterable[str], tools: Traits) -> tuple[Rule, ...]:
    """Raises RuleInvalid."""
    return tuple(parse_rule(rule, tools) for rule in rules)


def parse_rule(rule: str, tools: Traits) -> Rule:
    """Raises RuleInvalid."""
    found = _RULE.fullmatch(rule.strip()) if isinstance(rule, str) else None
    if not found:
        raise RuleInvalid(rule, "it is not a tool name with an optional pattern in parentheses")
    tool, pattern = found.groups()
    if "*" in tool and pattern is not None:
        raise RuleInvalid(rule, "a tool name with * cannot have a pattern")
    traits = tools.get(tool, UNKNOWN)
    try:
        return Rule(
            rule.strip(),
            Glob(tuple(tool.split("*"))),
            None if pattern is None else _pattern(traits, pattern.strip()),
            traits.governs,
        )
    except _Malformed as error:
        raise RuleInvalid(rule, str(error)) from None


class _Malformed(Exception):
    pass


def _pattern(traits: ToolTraits, text: str) -> CommandPattern | PathPattern | UrlPattern | Glob:
    if not text:
        raise _Malformed("the pattern is empty")
    if traits.command and _TEXT.match(text):
        return Glob((text[1:].strip(),))
    if traits.command:
        return _command_pattern(text)
    if traits.about_paths:
        return _path_pattern(text)
    if traits.url:
        return _url_pattern(text)
    return Glob(tuple(text.split("*")))


def _command_pattern(text: str) -> CommandPattern:
    words = _words(text)
    settings: list[tuple[str, Glob]] = []
    while words and _SET.match(words[0].pieces[0]):
        first, *more = words.pop(0).pieces
        name, _, value = first.partition("=")
        settings.append((name, Glob((value, *more))))
    open_end = bool(words) and words[-1].pieces == ("", "")
    if open_end:
        words.pop()
    if words and words[0].pieces[0].endswith(":") and not words[0].exact:
        raise _Malformed("“:*” has no meaning here; write a space and *")
    if not words and not open_end:
        raise _Malformed("it does not name a command")
    return CommandPattern(tuple(settings), tuple(words), open_end)


def _words(text: str) -> list[Glob]:
    """The words of a pattern. A star in quotes is a plain star."""
    words: list[Glob] = []
    at = 0
    while at < len(text):
        if text[at] in " \t":
            at += 1
            continue
        pieces = [""]
        while at < len(text) and text[at] not in " \t":
            found = _PIECE.match(text, at)
            if not found:
                raise _Malformed(
                    f"{text[at]!r} is not allowed in the pattern of a simple command; quote it if it is part of a word"
                )
            at = found.end()
            if found.group() == "*":
                pieces.append("")
            else:
                pieces[-1] += _unquoted(found.group())
        words.append(Glob(tuple(pieces)))
    return words


def _unquoted(piece: str) -> str:
    if piece[0] == "'":
        return piece[1:-1]
    if piece[0] == '"':
        return _IN_QUOTES.sub(r"\1", piece[1:-1])
    return piece[1:] if piece[0] == "\\" else piece


def _path_pattern(text: str) -> PathPattern:
    if text.startswith("~"):
        raise _Malformed("~ is not expanded; write the absolute path")
    if ".." in text.split("/"):
        raise _Malformed("“..” is not allowed in a pattern; write an absolute path for files outside the workspace")
    source = text.removeprefix("./")
    if source.endswith("/"):
        source += "**"
    return PathPattern(source, re.compile("".join(_translated(sign) for sign in _GLOB_SIGN.findall(source)), re.DOTALL))


_TRANSLATED = {"/**/": "/(?:.*/)?", "/**": "(?:/.*)?", "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _translated(sign: str) -> str:
    plain = sign[1:] if len(sign) == 2 and sign[0] == "\\" else sign
    return _TRANSLATED.get(sign) or re.escape(plain)


def _url_pattern(text: str) -> UrlPattern:
    found = _URL.fullmatch(text)
    if not found:
        raise _Malformed("it is not a URL that begins with https:// or http://")
    scheme, host, rest = found.groups()
    if rest is None and "*" in host:
        raise _Malformed("a * in a host name needs a / after it, or it would match other hosts too")
    if not rest:
        rest = "/"
    return UrlPattern(scheme, Glob(tuple(host.lower().split("*"))), Glob(tuple(rest.split("*"))))
