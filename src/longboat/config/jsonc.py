"""Parses JSON with comments and trailing commas, and finds the line of each value.

Owns the text. Must not know what a configuration means. Comments and trailing commas are blanked out in place, so that
every offset and every line stays the one the user sees in the editor. Files are read on the event loop, and some come
from strangers: every pass here takes time in proportion to the text.
"""

import json
import math
import re
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

Path = tuple[str | int, ...]

MAX_DEPTH = 32
"""How deep `lines` looks. Longboat's keys are far above; below, a short text could have very many long paths."""

# Possessive, and whole without its closing quote: an open string is not looked at again from each quote inside it.
_STRING = r'"(?:\\.|[^"\\\n])*+"?'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/|(/\*)", re.DOTALL)
# "[,]" stays wrong: a comma trails only after a value.
_TRAILING = re.compile(rf"((?:{_STRING}|[^\s\[{{,:\"])\s*+),(?=\s*+[}}\]])|{_STRING}")
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\],:]|[^\s{{}}\[\],:\"]+")
_NOT_BLANK = re.compile(r"[^\r\n]")
_HALF = re.compile("[\ud800-\udfff]")


class JsoncError(ValueError):
    """The text is not JSON, even with comments allowed."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> Any:
    """The value of the text."""
    plain = _plain(text)

    def refuse(constant: str) -> NoReturn:
        raise JsoncError(f"not valid JSON: {constant} is not allowed as a number", _line_of(re.escape(constant), plain))

    def finite(number: str) -> float:
        if math.isinf(value := float(number)):
            raise JsoncError(
                f"not valid JSON: the number {number[:20]} is too large", _line_of(re.escape(number), plain)
            )
        return value

    try:
        value = json.loads(plain, parse_constant=refuse, parse_float=finite)
    except json.JSONDecodeError as error:
        raise JsoncError(f"not valid JSON: {error.msg} (column {error.colno})", error.lineno) from None
    except RecursionError:
        raise JsoncError("not valid JSON: nested too deeply", 1) from None
    except JsoncError:
        raise
    except ValueError:
        digits = sys.get_int_max_str_digits() + 1
        raise JsoncError(
            "not valid JSON: a number with too many digits", _line_of(rf"-?\d{{{digits}}}", plain)
        ) from None
    _refuse_halves(plain)
    return value


def _refuse_halves(plain: str) -> None:
    """JSON can contain half of a surrogate pair, which cannot be encoded as UTF-8."""
    for token, line in _tokens(plain) if "\\ud" in plain.lower() else ():
        if token.startswith('"') and (half := _HALF.search(json.loads(token))):
            spelled = f"\\u{ord(half[0]):x}"
            raise JsoncError(f"{spelled} is half of a surrogate pair; the other half is missing", line)


def lines(text: str) -> dict[Path, int]:
    """The line of each key and each array item of a text that parses, down to `MAX_DEPTH`."""
    tokens = _tokens(_plain(text))
    where: dict[Path, int] = {}
    _walk(next(tokens), tokens, (), where)
    return where


def _walk(first: tuple[str, int], tokens: Iterator[tuple[str, int]], path: Path, where: dict[Path, int]) -> None:
    token, line = first
    where.setdefault(path, line)
    if len(path) == MAX_DEPTH:
        _skip(token, tokens)
    elif token == "{":
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


def spans(text: str) -> dict[Path, tuple[int, int]]:
    """Where each value of a text that parses begins and ends, down to `MAX_DEPTH`."""
    tokens = _TOKEN.finditer(_plain(text))
    where: dict[Path, tuple[int, int]] = {}
    _measure(next(tokens), tokens, (), where)
    return where


def _measure(
    first: re.Match[str], tokens: Iterator[re.Match[str]], path: Path, where: dict[Path, tuple[int, int]]
) -> None:
    closing = {"{": "}", "[": "]"}.get(first.group())
    last = first
    index = 0
    while closing is not None and (last := next(tokens)).group() != closing:
        if last.group() == ",":
            continue
        key: str | int = index
        if closing == "}":
            key = json.loads(last.group())
            next(tokens)  # the colon
            last = next(tokens)
        _measure(last, tokens, (*path, key), where)
        index += 1
    if len(path) <= MAX_DEPTH:
        where[path] = (first.start(), last.end())


def _skip(first: str, tokens: Iterator[tuple[str, int]]) -> None:
    """To the end of the value that begins with `first`."""
    depth, token = 0, first
    while (depth := depth + (token in ("[", "{")) - (token in ("]", "}"))) > 0:
        token, _ = next(tokens)


def _plain(text: str) -> str:
    def blank(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        if match[2]:
            raise JsoncError("this comment is not closed with */", text.count("\n", 0, match.start()) + 1)
        return _NOT_BLANK.sub(" ", match[0])

    uncommented = _COMMENT.sub(blank, text)
    return _TRAILING.sub(lambda match: f"{match[1]} " if match[1] else match[0], uncommented)


def _tokens(plain: str) -> Iterator[tuple[str, int]]:
    """Each token and its line."""
    line, at = 1, 0
    for match in _TOKEN.finditer(plain):
        line += plain.count("\n", at, match.start())
        at = match.start()
        yield match.group(), line


def _line_of(beginning: str, plain: str) -> int:
    """The line of the first token that begins like this."""
    return next((line for token, line in _tokens(plain) if re.match(beginning, token)), 1)
