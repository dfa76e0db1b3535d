"""A terminal that is closed while the app still draws (F2)."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from longboat.tui.terminal import Writer


@pytest.mark.timeout(20)
def test_who_writes_to_a_terminal_that_is_gone_is_not_held_up() -> None:
    ours, theirs = os.openpty()
    file = open(theirs, "w", encoding="utf-8")  # noqa: SIM115 — it cannot be closed without an error
    writer = Writer(file)
    writer.start()
    os.close(ours)
    for _ in range(200):
        writer.write("x" * 10_000)
    writer.stop()
    assert not writer.is_alive()
    with suppress(OSError):
        file.close()


def test_what_is_written_arrives(tmp_path: Path) -> None:
    with (tmp_path / "terminal").open("w") as file:
        writer = Writer(file)
        writer.start()
        writer.write("words")
        writer.stop()
    assert (tmp_path / "terminal").read_text() == "words"
