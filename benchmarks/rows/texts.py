"""Texts that could be slow to read: one of eight times the length against eight of the short one."""

import functools
import statistics
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from benchmarks.harness import Row, compare, milliseconds, timed
from benchmarks.texts import JSONC, SHELL_PIECES, chat_line, repeated
from longboat.config import jsonc
from longboat.models.openai_refusal import Addressee
from longboat.models.openai_stream import StreamReader
from longboat.permissions.shell.script import parse

ROUNDS, TIMES = 5, 8
AT_MOST = 3
"""In proportion it is 1, and 8 where the time grows with the square."""
MODEL = Addressee(provider="mine", model="m", url="http://here/v1", has_key=True)

Pair = tuple[float, float]


def measure() -> list[Row]:
    commands = [functools.partial(repeated, piece) for piece in SHELL_PIECES]
    return [
        _slowest(
            f"a configuration of 8 times the length, the slowest of {len(JSONC)} kinds",
            _read_jsonc,
            JSONC.values(),
            5_000,
        ),
        _slowest(
            f"a shell command of 8 times the length, the slowest of {len(commands)} kinds", parse, commands, 3_000
        ),
        _slowest("a line of a model's answer in 8 times the pieces", _read_chat, [chat_line], 4_000),
    ]


def _slowest(work: str, read: Callable[[Any], object], kinds: Iterable[Callable[[int], Any]], size: int) -> Row:
    """The kind whose time grows most."""
    measured = [[_pair(read, make(size), make(size * TIMES)) for _ in range(ROUNDS)] for make in kinds]
    worst = max(measured, key=lambda rounds: statistics.median(long / short for short, long in rounds))
    return compare(work, worst, milliseconds, at_most=AT_MOST)


def _pair(read: Callable[[Any], object], short: Any, long: Any) -> Pair:
    return timed(lambda: [read(short) for _ in range(TIMES)]), timed(lambda: read(long))


def _read_jsonc(text: str) -> None:
    with suppress(jsonc.JsoncError):
        jsonc.parse(text)
        jsonc.lines(text)


def _read_chat(pieces: list[bytes]) -> None:
    reader = StreamReader(MODEL)
    for piece in pieces:
        list(reader.feed(piece))
