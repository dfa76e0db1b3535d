"""Paths that no file system takes, or takes with trouble (D10)."""

from pathlib import Path

PATHS = {
    "256 characters": "a" * 256,
    "128 characters of two bytes": "é" * 128,
    "a long name below": "sub/" + "a" * 256,
    "a long name below what is not there": "not/there/" + "a" * 256,
    "4,096 characters": "a/" * 2_048,
    "5,000 characters": "/" + "b/" * 2_500,
    "2,000 levels": "a/" * 2_000,
    "2,000 levels up": "../" * 2_000 + "no-such-place",
    "NUL": "a\0b",
    "half a surrogate pair": "a\ud800b",
    "an undecodable byte": "a\udcffb",
    "a loop of links": "loop",
    "through a loop of links": "loop/file",
    "through a file": "file/below",
    "a pipe": "pipe",
    "control characters": "a\x1b[31m\n\r\tb",
    "nothing": "",
    "blanks": "   ",
    "a missing home": "~nobody-of-this-name/x",
}


def make_obstacles(directory: Path) -> None:
    """What some of them lead to."""
    import os

    (directory / "sub").mkdir()
    (directory / "file").write_text("text\n")
    (directory / "loop").symlink_to("loop")
    os.mkfifo(directory / "pipe")
