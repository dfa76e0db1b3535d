"""Answers pending permission requests and questions one by one at the terminal, for `longboat permissions` and
`longboat questions`.

Owns the conversation with the person. Must not know what an answer means: the server does.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from longboat.cli import asks
from longboat.cli.asks import Ask
from longboat.cli.console import one_line
from longboat.cli.options import own_name
from longboat.client import calls
from longboat.errors import AlreadyAnswered, NotFound
from longboat.wire.asks import Permission, Question
from longboat.wire.inbox import InboxItem
from longboat.wire.requests import AnswerPermission, AnswerQuestion
from longboat.wire.typed_answers import texts_in

if TYPE_CHECKING:
    from longboat.cli.connection import Connection

_MORE = "  [Enter] decide later  [q]uit"


def answer_pending(connection: "Connection", pending: Iterable[InboxItem], *, everywhere: bool = False) -> None:
    """Show each request and ask for an answer. An empty line leaves it pending; q, or the end of the input, ends.
    `everywhere`: say which workspace each is in."""
    for item in pending:
        ask = item.permission or item.question
        assert ask is not None
        click.echo(f"\n{one_line(item.workspace_path)}" if everywhere else "")
        for line in asks.render_ask(ask):
            click.echo(line)
        answer = _answer_for(ask)
        if answer is None:
            return
        if answer:
            _send(connection, item.workspace_id, ask, answer)


def _answer_for(ask: Ask) -> str | None:
    """The line that answers it; empty to leave it, None to end."""
    while True:
        click.echo(f"{asks.choices_of(ask)}{_MORE}")
        try:
            line = input("> ").strip()
        except EOFError:
            click.echo("")
            return None
        if line.lower() in ("q", "quit"):
            return None
        if line == "?":
            for told in (*asks.help_of(ask), *asks.render_ask(ask, whole=True, parts=True)):
                click.echo(told)
        elif not line or asks.is_answer(ask, line):
            return line
        else:
            click.echo(f"  {asks.describe_misreading(ask, line)}")


def _send(connection: "Connection", workspace_id: str, ask: Ask, line: str) -> None:
    try:
        match ask:
            case Question():
                answer = AnswerQuestion(answer=texts_in(ask, line), client_id=own_name())
                connection.send(calls.answer_question(workspace_id, ask.id, answer))
                click.echo("Answered.")
            case Permission() if word := asks.word_of(ask, line):
                given = AnswerPermission(answer=word.answer, wide=word.wide, reason=word.reason, client_id=own_name())
                answered = connection.send(calls.answer_permission(workspace_id, ask.id, given))
                click.echo(asks.describe_answer(answered))
    except (AlreadyAnswered, NotFound) as late:
        click.echo(late.message)
