"""Texts that are slow to read for a reader that is not careful: each kind in any length.

Tests count the steps that they take, and the row `texts` the time.
"""

from collections.abc import Callable

JSONC: dict[str, Callable[[int], str]] = {
    "strings": lambda n: '{"a":[' + ",".join(['"a"'] * n) + "]}",
    "trailing commas": lambda n: "[" + "[1,]," * n + "1]",
    "commas in a row": lambda n: "[1" + " ," * n + "]",
    "blanks": lambda n: "[1" + " " * 5 * n + "]",
    "commas and blanks": lambda n: "[" + "1,     " * n + "]",
    "comments": lambda n: "/**/\n" * n + "1",
    "slashes": lambda n: "/ " * n,
    "an open string of quotes": lambda n: '"' + '\\"' * n,
    "open strings": lambda n: '"a\n' * n,
    "keys on lines of their own": lambda n: "{" + ",\n".join(f'"k{key}": 1' for key in range(n)) + "}",
    "deep and wide": lambda n: "[" * 900 + "1," * n + "1" + "]" * 900,
    "constants at the end": lambda n: "[" + "1," * n + "NaN]",
}

SHELL_PIECES = (
    *("(", "$(", "${", "${x:-", "((", "$((1+", "`", "'", '"', '"$(', "{ ", "[[ ", "[", "a|", "a&&", "a;", "a\n", "a "),
    *("<", "<<E ", "<<E\n", ">f ", "#", "\\", "\\\n", "x=", "f() ", "f() { ", "if ", "if a; then ", "for i in "),
    *("if a; then b; elif ", "case x in ", "case x in a) ", "! ", "time ", "coproc ", "{a,", "{", "~", "*", "$'", "@("),
    *("env ", "env A=B ", "sudo ", "xargs ", "find . -exec ", "bash -c ", "nice ", "<(", "a <<< ", "[[ ! ", "1+", "&"),
)


def repeated(piece: str, length: int) -> str:
    """The piece again and again, cut at the length."""
    return (piece * (length // len(piece) + 1))[:length]


def chat_line(pieces: int) -> list[bytes]:
    """One long line of a model's stream in many small pieces."""
    start = b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]'
    return [start, *[b" " * 100] * pieces, b"}\n\n"]
