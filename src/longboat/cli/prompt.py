"""The prompt: what was typed, and what was piped in besides."""

import os
import select
import stat
import sys

import click

from longboat.errors import EmptyPrompt

PATIENCE_S = 2.0


def read_prompt(words: tuple[str, ...]) -> str:
    """The words, followed by what is piped in. Without words, or with "-", what is piped in is all of it."""
    if words and words != ("-",):
        text = _joined(" ".join(words), _piped())
    elif sys.stdin is None or (not words and sys.stdin.isatty()):
        raise click.UsageError('Give a prompt: longboat run "…", or pipe one in.')
    else:
        text = sys.stdin.buffer.read().decode(errors="replace")
    if not text.strip():
        raise EmptyPrompt  # before a server is started and a session made for it
    return text


def _joined(typed: str, piped: str) -> str:
    return f"{typed}\n\n{piped}" if piped.strip() else typed


def _piped() -> str:
    """What a pipe or a file brings. Terminals, devices and sockets may be silent for ever and mean nothing by it."""
    if sys.stdin is None:
        return ""
    source = sys.stdin.fileno()
    mode = os.fstat(source).st_mode
    if not stat.S_ISFIFO(mode) and not stat.S_ISREG(mode):
        return ""
    if not select.select([source], [], [], PATIENCE_S)[0]:
        click.echo("Reading standard input until it ends … (`</dev/null` says that there is none)", err=True)
    return sys.stdin.buffer.read().decode(errors="replace")
