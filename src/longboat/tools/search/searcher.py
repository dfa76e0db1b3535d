"""A replacement for ripgrep, as a separate program, for machines without it; `glob` and `grep` use it.

It accepts the `rg` arguments that `ripgrep.py` passes and prints what `rg` would print, so that nothing else needs to
know which of the two ran. It is a process so that it can be killed: a model's regular expression can take forever.
"""

import argparse
import base64
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from fnmatch import translate
from typing import Any

from longboat.tools.files.text import NotText, decode, lines_of
from longboat.tools.search.tree import Tree

_MAX_BYTES = 256 * 2**20
_TAKEN_FOR_GRANTED = (
    "no-config",
    "no-messages",
    "no-require-git",
    "no-ignore-global",
    "crlf",
    "null",
    "text",
    "with-filename",
)
_FLAGS = ("files", "json", "files-with-matches", "count", "hidden", "no-ignore", "ignore-case", "fixed-strings")


def main() -> None:
    options = _parser().parse_args()
    try:
        pattern = _compiled(options)
    except re.error as error:
        sys.stderr.write(f"regex parse error: {error}\n")
        sys.exit(2)
    try:
        for path in _paths(options):
            sys.stdout.buffer.write(_answer(options, path, pattern))
        sys.stdout.flush()
    except MemoryError:
        sys.exit("a file is too large to search without ripgrep; install ripgrep")
    except BrokenPipeError:
        os._exit(0)  # no one reads on; a normal exit would try to flush again


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in (*_TAKEN_FOR_GRANTED, *_FLAGS):
        parser.add_argument(f"--{flag}", action="store_true")
    for option in ("glob", "type", "color"):
        parser.add_argument(f"--{option}")
    parser.add_argument("--type-add", action="append", default=[])
    parser.add_argument("--max-filesize", default="")
    parser.add_argument("--context", type=int, default=0)
    parser.add_argument("--regexp", default="")
    parser.add_argument("path")
    return parser


def _compiled(options: argparse.Namespace) -> re.Pattern[str]:
    pattern = re.escape(options.regexp) if options.fixed_strings else options.regexp
    return re.compile(pattern, re.IGNORECASE if options.ignore_case else 0)


def _paths(options: argparse.Namespace) -> Iterator[str]:
    """The files to look at, relative as ripgrep writes them."""
    if not os.path.isdir(options.path):
        yield options.path
        return
    root = os.path.realpath(options.path)
    names = [re.compile(translate(glob.partition(":")[2])) for glob in options.type_add]
    most = int(options.max_filesize.removesuffix("M") or 0) << 20
    for entry in Tree(root=root, hidden=options.hidden, ignored=options.no_ignore).files():
        if names and not any(name.match(entry.name) for name in names):
            continue
        if not most or entry.stat(follow_symlinks=False).st_size <= most:
            yield f"./{entry.path[len(root.rstrip('/')) + 1 :]}"


def _answer(options: argparse.Namespace, path: str, pattern: re.Pattern[str]) -> bytes:
    name = os.fsencode(path)
    if options.files:
        return name + b"\0"
    lines = _lines(path)
    matches = (index for index, line in enumerate(lines) if pattern.search(line))
    if options.files_with_matches:
        return name + b"\0" if next(matches, None) is not None else b""
    if options.count:
        count = sum(1 for _ in matches)
        return name + b"\0%d\n" % count if count else b""
    return b"".join(_events(name, lines, set(matches), pattern, options.context))


def _lines(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise MemoryError
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            return lines_of(decode(content).content)
    except (OSError, NotText):
        return []
    if b"\0" in content:
        return []
    return lines_of(content.decode("utf-8", "replace").removeprefix("\ufeff"))


def _events(
    name: bytes, lines: list[str], matches: set[int], pattern: re.Pattern[str], context: int
) -> Iterable[bytes]:
    around = {near for at in matches for near in range(max(at - context, 0), min(at + context + 1, len(lines)))}
    path = _data(name)
    for index in sorted(around):
        found = pattern.search(lines[index]) if index in matches else None
        submatches = [{"match": {"text": found[0]}}] if found else []
        data = {"path": path, "lines": {"text": lines[index]}, "line_number": index + 1, "submatches": submatches}
        yield _encode("match" if found else "context", data)


def _data(name: bytes) -> dict[str, str]:
    try:
        return {"text": name.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(name).decode()}


def _encode(kind: str, data: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "data": data}, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    main()
