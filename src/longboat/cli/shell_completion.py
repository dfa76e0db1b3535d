"""Shell completion for ids and models. Asks a running server but never starts one. On any error it offers nothing:
no one wants an error message from pressing Tab."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from longboat.cli.options import resolve_directory

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from longboat.cli.connection import Connection

Named = Iterable[tuple[str, str]]
"""Pairs of a name and its description."""
OFFERED = 20


def sessions(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from longboat.client import calls
    from longboat.wire.listings import Archived

    def find(connection: "Connection", workspace_id: str) -> Named:
        page = connection.send(calls.sessions(workspace_id, limit=OFFERED, archived=Archived.INCLUDED))
        return ((each.id, each.title) for each in page.items)

    return _complete_names(ctx, incomplete, find)


def runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from longboat.client import calls

    def find(connection: "Connection", workspace_id: str) -> Named:
        page = connection.send(calls.runs(workspace_id, limit=OFFERED))
        return ((each.run_id, each.prompt) for each in page.items)

    return _complete_names(ctx, incomplete, find)


def permissions(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from longboat.client import calls

    def find(connection: "Connection", workspace_id: str) -> Named:
        return ((each.id, each.title) for each in connection.send(calls.permissions(workspace_id)).items)

    return _complete_names(ctx, incomplete, find)


def questions(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from longboat.client import calls

    def find(connection: "Connection", workspace_id: str) -> Named:
        return ((each.id, each.text) for each in connection.send(calls.questions(workspace_id)).items)

    return _complete_names(ctx, incomplete, find)


def models(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The models configured for the directory."""
    from longboat.cli.models import describe
    from longboat.errors import LongboatError

    try:
        overview = describe(_directory(ctx))
    except (LongboatError, OSError):
        return []
    return _items(((model, "") for each in overview.providers for model in each.models), incomplete)


def _complete_names(
    ctx: click.Context, incomplete: str, find: "Callable[[Connection, str], Named]"
) -> "list[CompletionItem]":
    from longboat.cli.connection import Connection
    from longboat.errors import LongboatError

    try:
        connection = Connection()
        return _items(find(connection, connection.join(_directory(ctx)).id), incomplete)
    except (LongboatError, OSError):
        return []


def _items(known: Named, incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    from longboat.cli.console import one_line

    return [CompletionItem(name, help=one_line(about, 60)) for name, about in known if name.startswith(incomplete)]


def _directory(ctx: click.Context) -> str:
    return resolve_directory(ctx.params.get("cwd") or ".")
