"""`longboat init`: write a first AGENTS.md."""

import sys
from pathlib import Path

import click

from longboat.cli.options import local_cwd_option

FILE_NAME = "AGENTS.md"


@click.command(short_help="Draft an AGENTS.md for this project.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@local_cwd_option
def init(force: bool, cwd: str) -> None:
    """Inspect the project and write a draft of AGENTS.md: what it is, how to build and test it, where things are.

    Agents read it at the start of every turn. The draft is made without a model: correct it, and add what the files do
    not say.

    \b
    longboat init
    """
    from longboat.cli.console import safe
    from longboat.cli.main import Failure
    from longboat.context.init import draft_agents_md

    file = Path(cwd) / FILE_NAME
    name = safe(click.format_filename(file))
    there = file.exists() or file.is_symlink()
    if there and not force:
        if not sys.stdin.isatty():
            raise Failure(f"{name} already exists.", "Use --force to replace it.")
        click.confirm(f"{name} already exists. Replace it?", abort=True, err=True)
    draft = draft_agents_md(Path(cwd))
    try:
        # Exclusive creation unless replacing was confirmed: the file may have appeared meanwhile.
        with open(file, "w" if there else "x", encoding="utf-8") as out:
            out.write(draft)
    except FileExistsError:
        raise Failure(f"{name} already exists.", "Use --force to replace it.") from None
    click.echo(f"Wrote {name}. Review it, and add what an agent cannot learn from the files.")
