"""JSON with comments and trailing commas, and the line on which each value stands.

Owns the text. Must not know what a configuration means. Comments and trailing commas are blanked out in place, so that
every offset, and with it every line, stays the one the user sees in the editor.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

Path = tuple[str | int, ...]

_STRING = r'"(?:\\.|[^"\\\n])*"'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/|(/\*)", re.DOTALL)
_TRAILING = re.compile(rf"({_STRING})|,(?=\s*[}}\]])")
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\],:]|[^\s{{}}\[\],:\"]+")
_NOT_BLANK = re.compile(r"[^\r\n]")


class JsoncError(ValueError):
    """The text is not JSON, even with comments allowed."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> Any:
    """The value that the text spells."""
    plain = _plain(text)

    def refuse(constant: str) -> NoReturn:
        at = next(match.start() for match in _TOKEN.finditer(plain) if match.group() == constant)
        raise JsoncError(f"not valid JSON: {constant} is not a number here", _line(plain, at))

    try:
        return json.loads(plain, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise JsoncError(f"not valid JSON: {error.msg} (column {error.colno})", error.lineno) from None
    except RecursionError:
        raise JsoncError("not valid JSON: nested too deeply", 1) from None


def lines(text: str) -> dict[Path, int]:
    """The line of each key and each array item of a text that parses."""
    plain = _plain(text)
    tokens = ((match.group(), _line(plain, match.start())) for match in _TOKEN.finditer(plain))
    where: dict[Path, int] = {}
    _walk(next(tokens), tokens, (), where)
    return where


def _walk(first: tuple[str, int], tokens: Iterator[tuple[str, int]], path: Path, where: dict[Path, int]) -> None:
    token, line = first
    where.setdefault(path, line)
    if token == "{":
        for token, line in tokens:
            if token == "}":
                return
            if token != ",":
                key = (*path, json.loads(token))
                where[key] = line
                next(tokens)  # the colon
                _walk(next(tokens), tokens, key, where)
    elif token == "[":
        index = 0
        for item in tokens:
            if item[0] == "]":
                return
            if item[0] != ",":
                _walk(item, tokens, (*path, index), where)
                index += 1


def _plain(text: str) -> str:
    def blank(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        if match[2]:
            raise JsoncError("the comment that starts here is never closed with */", _line(text, match.start()))
        return _NOT_BLANK.sub(" ", match[0])

    uncommented = _COMMENT.sub(blank, text)

    def drop_comma(match: re.Match[str]) -> str:
        # "[,]" stays wrong: a comma trails only after a value.
        after_value = uncommented[: match.start()].rstrip()[-1:] not in ("", "[", "{", ",", ":")
        return match[1] or (" " if after_value else ",")

    return _TRAILING.sub(drop_comma, uncommented)


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
