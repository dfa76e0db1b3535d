"""The reference for people: every command from its help, every key of longboat.json from the schema."""

import enum
import inspect
import typing
from pathlib import Path
from types import NoneType, UnionType
from typing import Any

import click
import msgspec
from markup import one_line, page, sentences, table

from longboat.cli.main import cli
from longboat.config.settings import Config

MORE = {
    "mcp": "mcp.md",
    "lsp": "lsp.md",
    "hooks": "context.md#hooks",
    "sandbox": "tools.md#sandbox",
    "limits": "concepts.md#limits",
    "models.large": "models.md#when-a-provider-fails",
    "permissions": "permissions.md#rules",
    "server.allowed_hosts": "deployment.md#behind-a-reverse-proxy",
}
"""Where a key of the configuration is explained at length."""


# Commands.


def prose(text: str) -> list[str]:
    """A help text in Markdown: what it does not want wrapped becomes a block of text."""
    blocks = []
    for block in inspect.cleandoc(text).split("\n\n"):
        if block.startswith("\b\n"):
            blocks.append("```text\n" + block.removeprefix("\b\n") + "\n```")
        else:
            blocks.append(one_line(block).replace("<", "&lt;").replace("*", "\\*"))
    return blocks


def options_of(command: click.Command, context: click.Context) -> str:
    shown = [param.get_help_record(context) for param in command.params if isinstance(param, click.Option)]
    return table(["option", "meaning"], [[as_code(record[0]), one_line(record[1])] for record in shown if record])


def as_code(text: str) -> str:
    """In a table. A pipe between backticks is shown with its backslash by some readers, and without by others."""
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def command_blocks(command: click.Command, context: click.Context, depth: int) -> list[str]:
    usage = "```text\n" + " ".join([context.command_path, *command.collect_usage_pieces(context)]) + "\n```"
    blocks = [f"{'#' * depth} {context.command_path}", usage, *prose(command.help or "")]
    if any(isinstance(param, click.Option) and not param.hidden for param in command.params):
        blocks.append(options_of(command, context))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            inner = click.Context(below, info_name=name, parent=context)
            blocks += command_blocks(below, inner, depth + 1)
    return blocks


def commands() -> str:
    context = click.Context(cli, info_name="longboat", color=False)
    _, *blocks = command_blocks(cli, context, 1)
    return page("# Commands", "The output of `--help`. Every command has `-h` and `--help`.", *blocks)


# Configuration.

KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}
CONFIGURATION = Path(__file__).with_name("configuration.md")
BEGIN, END = "<!-- keys -->\n", "<!-- /keys -->"


def limits(hint: Any) -> str:
    """What a value has to be, in words."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        meta = next(each for each in arguments[1:] if isinstance(each, msgspec.Meta))
        least, most = (meta.ge, meta.le) if meta.ge is not None else (meta.min_length, meta.max_length)
        return f"{limits(arguments[0])}, {least} to {most}"
    if origin in (typing.Union, UnionType):
        return " or ".join(limits(each) for each in arguments if each is not NoneType)
    if origin is tuple:
        return f"list of {limits(arguments[0])}s"
    words = arguments if origin is typing.Literal else [*hint] if isinstance(hint, enum.EnumType) else ()
    return ", ".join(f'`"{word}"`' for word in words) or KINDS.get(hint, "object")


def standard(field: msgspec.structs.FieldInfo) -> str:
    """The value of a key that is left out."""
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is None:
        return "–"
    return "`{}`" if isinstance(value, msgspec.Struct) else f"`{msgspec.json.encode(value).decode()}`"


def below(hint: Any) -> tuple[str, type[msgspec.Struct] | None]:
    """The section that a key holds, if any, and what is between their names: `.NAME` for one of many by name."""
    for each in [hint, *typing.get_args(hint)]:
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return ".NAME" if typing.get_origin(hint) is dict else "", each
    return "", None


def section(name: str, shape: type[msgspec.Struct]) -> list[str]:
    """The keys of a section, and the sections below it."""
    said, rows, inner = sentences(shape), [], []
    for field in msgspec.structs.fields(shape):
        path = f"{name}.{field.encode_name}".removeprefix(".")
        between, held = below(field.type)
        inner += section(path + between, held) if held else []
        more = MORE.get(path)
        meaning = said.get(field.name, "") + (f" [More]({more})." if more else "")
        rows.append([f"`{field.encode_name}`", standard(field), limits(field.type), meaning])
    head = [f"### {name or 'Top level'}", *([inspect.cleandoc(shape.__doc__ or "")] if name else [])]
    return [*head, table(["key", "default", "value", "meaning"], rows), *inner]


def configuration() -> str:
    """The page that is there, with its keys generated again."""
    before, begin, rest = CONFIGURATION.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    keys = ["<!-- Generated by docs/generate.py from src/longboat/config/settings.py. -->", "## Keys of longboat.json"]
    return before + begin + "\n\n".join([*keys, *section("", Config)]) + "\n\n" + end + after
